// Rows that are drawn: first as bits, then as a list. In front: common.cuh, blocks.cuh.
//
// masks: bit r of entry i says whether row 16 i + r is drawn. starts (chunks + 1,): drawn rows before each chunk of 4096.

enum { DRAW_THREADS = 256, ROWS_OF_THREAD = 16, CHUNK = DRAW_THREADS * ROWS_OF_THREAD };

enum Lost { NO_ROOM = 1, NO_NUMBER = 2 }; // what ``lost`` says: more rows than there is room for; a score is no number

static __device__ __forceinline__ i32 chunks_of(i32 n)
{
    return (n + CHUNK - 1) / CHUNK;
}

// A thread's 16 rows of a chunk, and the chunk's count. All threads of the block.
static __device__ __forceinline__ void keep_mask(i32 chunk, u32 mask, u16 *masks, i32 *starts)
{
    masks[chunk * DRAW_THREADS + threadIdx.x] = (u16)mask;
    const u32 drawn = block_sum((u32)__popc(mask));
    if (threadIdx.x == 0)
        starts[chunk] = (i32)drawn;
}

// By the last block: from the chunks' counts to where each begins. Number of drawn rows: starts[chunks], and ``m`` if it
// fits the room for them; otherwise ``m`` is 0.
static __device__ void place_chunks(i32 chunks, i32 room, i32 *starts, i32 *m, i32 *lost)
{
    i32 before = 0;
    for (i32 first = 0; first < chunks; first += DRAW_THREADS) {
        const i32 chunk = first + threadIdx.x;
        u32 total;
        const u32 own = chunk < chunks ? (u32)starts[chunk] : 0u;
        const u32 earlier = block_scan(own, total);
        if (chunk < chunks)
            starts[chunk] = before + (i32)earlier;
        before += (i32)total;
    }
    if (threadIdx.x == 0) {
        starts[chunks] = before;
        *lost = before > room ? NO_ROOM : 0;
        *m = before > room ? 0 : before;
    }
}

// Statistics of a round's draw, read by the host later. largest: bits of the largest 1 / p.
struct Draw {
    i32 rows, excluded;
    u32 largest, spare;
};

// The log is a ring. By one thread.
static __device__ __forceinline__ void note_draw(Draw *log, i32 places, u32 *draws, i32 rows, i32 excluded, u32 largest)
{
    log[*draws % (u32)places] = {rows, excluded, largest, 0};
    ++*draws;
}
