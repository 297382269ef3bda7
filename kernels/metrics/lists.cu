// Metrics of rankings, a value of each list (metrics/ranking.py): documents in order of scores, and a sum over the first
// places of each list. In front: common.cuh, ordering.cuh.

enum ListRule { NDCG, AVERAGE_PRECISION, RECIPROCAL_RANK, RELEVANT };

extern "C" __global__ void __launch_bounds__(RUN)
sort_runs(const f64 *scores, const i32 *start, const i32 *list_of, i32 n, u64 *keys, i32 *rows)
{
    sort_runs_of_lists(scores, start, list_of, n, keys, rows);
}

// placed (n,): gains in order of places.
extern "C" __global__ void __launch_bounds__(256)
place_gains(const u64 *keys, const i32 *rows, const f64 *gain, const i32 *start, const i32 *list_of, i32 n, f64 *placed)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const i32 q = list_of[i];
        u64 top;
        placed[place_in_list(keys, i, start[q], start[q + 1], top)] = gain[rows[i]];
    }
}

// values (lists,): the sum over the first ``places`` of each list, from the first place down, over its divisor; nan where
// that is 0. A warp to a list. worth: of places, for NDCG.
extern "C" __global__ void __launch_bounds__(256)
value_lists(const f64 *placed, const i32 *start, const f64 *worth, const f64 *divisors, i32 lists, i32 places, i32 rule,
            f64 *values)
{
    const i32 lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (i32 q = (blockIdx.x * blockDim.x + threadIdx.x) / 32; q < lists; q += warps) {
        const i32 begin = start[q], end = begin + min(places, start[q + 1] - begin);
        f64 sum = 0.0;
        i32 before = 0; // relevant documents of the places so far
        for (i32 first = begin; first < end; first += 32) {
            const i32 at = first + lane, place = at - begin;
            const f64 gain = at < end ? placed[at] : 0.0;
            const u32 relevant = __ballot_sync(FULL_WARP, gain > 0.0);
            const i32 hits = before + __popc(relevant & ((2u << lane) - 1));
            f64 term = 0.0;
            if (rule == NDCG)
                term = at < end ? gain * worth[place] : 0.0;
            else if (gain > 0.0)
                term = rule == AVERAGE_PRECISION  ? (f64)hits / (f64)(place + 1)
                       : rule == RECIPROCAL_RANK ? (hits == 1 ? 1.0 / (f64)(place + 1) : 0.0)
                                                 : 1.0;
            for (i32 l = 0; l < 32; ++l)
                sum += __shfl_sync(FULL_WARP, term, l);
            before += __popc(relevant);
        }
        const f64 divisor = divisors[q];
        if (lane == 0)
            values[q] = divisor > 0.0 ? sum / divisor : __longlong_as_double(0x7ff8000000000000ll);
    }
}
