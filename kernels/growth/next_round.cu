// What differs from round to round while rounds are repeated, counted on the device. In front: common.cuh.

// slot: of the round's first tree in a ring of ``slots``; then that of the next round. inputs (32,): the words that the
// host writes otherwise; those with a bit in ``counting``, the numbers of random streams, go up by one. scale: of the
// model, of which a round leaves the share ``kept``; factor, factor_of_others: of trees that have the length ``length``.
extern "C" __global__ void __launch_bounds__(32)
next_round(u32 *slot, i32 trees, i32 slots, u32 *inputs, u32 counting, f64 kept, f64 length, f64 *scale, f64 *factor,
           f64 *factor_of_others)
{
    const u32 word = threadIdx.x;
    if (counting >> word & 1)
        inputs[word] += 1;
    if (word == 0) {
        *slot = (*slot + (u32)trees) % (u32)slots;
        *scale *= kept;
        *factor = *factor_of_others = length / *scale;
    }
}
