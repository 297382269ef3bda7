// The documents of lists in the order of their scores: runs of each list are sorted, and a search in the list's other
// runs gives every document its place.

enum { RUN = 256 }; // documents of one list that are sorted at a time, before their runs are merged

// Scores as unsigned numbers of the same order; -0.0 is 0.0.
static __device__ __forceinline__ u64 key_of(f64 score)
{
    const u64 bits = (u64)__double_as_longlong(score == 0.0 ? 0.0 : score);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

static __device__ __forceinline__ f64 score_of(u64 key)
{
    return __longlong_as_double((i64)(key >> 63 ? key & ~(1ull << 63) : ~key));
}

// The documents of every run, the highest score first, equal ones in the order of rows. Where a run lies its sorted keys
// and rows lie too. A block has RUN threads. start (lists + 1,), list_of (n,): the rows of lists.
static __device__ __forceinline__ void sort_runs_of_lists(const f64 *scores, const i32 *start, const i32 *list_of, i32 n,
                                                           u64 *keys, i32 *rows)
{
    __shared__ u64 near[3 * RUN]; // no run of these rows goes further to either side
    for (i32 first = blockIdx.x * RUN; first < n; first += gridDim.x * RUN) {
        for (i32 i = threadIdx.x; i < 3 * RUN; i += RUN) {
            const i64 row = (i64)first - RUN + i;
            near[i] = row >= 0 && row < n ? key_of(scores[row]) : 0;
        }
        __syncthreads();
        const i32 row = first + (i32)threadIdx.x;
        if (row < n) {
            const i32 q = list_of[row], begin = row - (row - start[q]) % RUN, end = min(begin + (i32)RUN, start[q + 1]);
            const u64 *run = near + (begin - first + RUN);
            const u64 own = near[RUN + threadIdx.x];
            i32 before = 0;
            for (i32 j = 0; j < end - begin; ++j)
                before += run[j] > own || (run[j] == own && begin + j < row);
            keys[begin + before] = own;
            rows[begin + before] = row;
        }
        __syncthreads();
    }
}

// The place of the document that is i-th in its sorted run, among those of its list, begin .. end - 1. top: the key of
// the list's highest score.
static __device__ __forceinline__ i32 place_in_list(const u64 *keys, i32 i, i32 begin, i32 end, u64 &top)
{
    const i32 first = i - (i - begin) % RUN;
    const u64 own = keys[i];
    i32 place = begin + i - first;
    top = own;
    for (i32 run = begin; run < end; run += RUN) {
        top = max(top, keys[run]);
        i32 low = 0, high = run == first ? 0 : min((i32)RUN, end - run);
        while (low < high) {
            const i32 middle = (low + high) / 2;
            const u64 key = keys[run + middle];
            const bool before = key > own || (key == own && run < first);
            low = before ? middle + 1 : low;
            high = before ? high : middle;
        }
        place += low;
    }
    return place;
}
