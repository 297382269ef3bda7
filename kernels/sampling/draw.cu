// Rows drawn by coin flips, all with one probability. In front: common.cuh, blocks.cuh, drawn.cuh, philox.cuh.

extern "C" __global__ void __launch_bounds__(DRAW_THREADS)
draw(const Stream *stream, u64 limit, f32 by, i32 n, i32 room, u16 *masks, i32 *starts, u32 *arrived, i32 *m, i32 *lost,
     Draw *log, i32 places, u32 *draws)
{
    const i32 chunks = chunks_of(n);
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const i32 place = chunk * DRAW_THREADS + threadIdx.x;
        u32 mask = 0;
        for (i32 part = 0; part < ROWS_OF_THREAD / 4; ++part) {
            const i64 row = (i64)place * ROWS_OF_THREAD + part * 4;
            if (row >= n)
                break;
            const uint4 words = philox(*stream, (u64)row / 4);
            mask |= (is_below(words.x, limit) && row < n ? 1u : 0u) << (part * 4);
            mask |= (is_below(words.y, limit) && row + 1 < n ? 2u : 0u) << (part * 4);
            mask |= (is_below(words.z, limit) && row + 2 < n ? 4u : 0u) << (part * 4);
            mask |= (is_below(words.w, limit) && row + 3 < n ? 8u : 0u) << (part * 4);
        }
        keep_mask(chunk, mask, masks, starts);
    }
    if (!last_block(arrived))
        return;
    place_chunks(chunks, room, starts, m, lost);
    if (threadIdx.x == 0)
        note_draw(log, places, draws, starts[chunks], 0, __float_as_uint(by));
}

// rows[0 .. m - 1] = the drawn rows, increasing.
extern "C" __global__ void __launch_bounds__(DRAW_THREADS)
compact(const u16 *masks, const i32 *starts, const i32 *m, i32 n, i32 *rows)
{
    const i32 chunks = *m > 0 ? chunks_of(n) : 0;
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const i32 place = chunk * DRAW_THREADS + threadIdx.x;
        u32 mask = masks[place], total;
        i32 at = starts[chunk] + (i32)block_scan((u32)__popc(mask), total);
        for (; mask != 0; mask &= mask - 1)
            rows[at++] = place * ROWS_OF_THREAD + __ffs((i32)mask) - 1;
    }
}
