// Where the trees of a round are recorded, counted on the device while rounds are repeated. In front: common.cuh.

// slot: of the round's first tree in a ring of ``slots``; then that of the next round.
extern "C" __global__ void __launch_bounds__(32)
next_slot(u32 *slot, i32 trees, i32 slots)
{
    if (threadIdx.x == 0)
        *slot = (*slot + (u32)trees) % (u32)slots;
}
