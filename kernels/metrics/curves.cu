// Areas under the curves of a score's thresholds (scoring/curves.py): rows in the order of scores, the weight
// up to each distinct score, and the sum of a term of each. In front: common.cuh, blocks.cuh, ordered_float.cuh,
// radix.cuh, pieces.cuh.

enum Curve { ROC, PRECISION_RECALL };

// Rows as their scores and, in one word, twice their number and 1 for those of class 1.
struct ByScore {
    const u64 *keys;
    const u32 *marks;
    u64 *moved_keys;
    u32 *moved_marks;

    __device__ __forceinline__ i32 digit(i32 at, i32 shift) const { return (i32)(keys[at] >> shift & 255); }
    __device__ __forceinline__ void move(i32 at, u32 place) const
    {
        moved_keys[place] = keys[at];
        moved_marks[place] = marks[at];
    }
};

// A zero has one key, whatever its sign.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
make_keys(const f64 *scores, const u8 *ones, i32 n, u64 *keys, u32 *marks)
{
    for (i32 i = blockIdx.x * ORDER_THREADS + threadIdx.x; i < n; i += gridDim.x * ORDER_THREADS) {
        keys[i] = ordered(scores[i] + 0.0);
        marks[i] = 2 * (u32)i + ones[i];
    }
}

extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
count_scores(const u64 *keys, i32 n, i32 shift, i32 chunks, u32 *counts)
{
    count_digits(ByScore{keys, nullptr, nullptr, nullptr}, n, shift, chunks, counts);
}

extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
place_scores(i32 chunks, u32 *counts, u32 *bases, u32 *arrived)
{
    place_digits(chunks, counts, bases, arrived);
}

extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
order_scores(const u64 *keys, const u32 *marks, i32 n, i32 shift, i32 chunks, const u32 *counts, const u32 *bases,
             u64 *moved_keys, u32 *moved_marks)
{
    order_by_digit(ByScore{keys, marks, moved_keys, moved_marks}, n, shift, chunks, counts, bases);
}

// Weights of the rows in order, as integers; without weights each is 1.
struct Weighed {
    const u32 *marks;
    const i64 *units;
    i32 has_units;

    __device__ __forceinline__ u64 unit(i32 at) const { return has_units ? (u64)units[marks[at] >> 1] : 1; }
};

static __device__ __forceinline__ bool is_end(const u64 *keys, i32 n, i32 at)
{
    return at < n && (at == n - 1 || keys[at] != keys[at + 1]);
}

// Of each chunk of rows in order: what the chunks before it have: the weight of the ones, that of the others, and how
// many distinct scores end there. (chunks + 1,): the last entries are the totals.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
sum_chunks(const u64 *keys, const u32 *marks, const i64 *units, i32 has_units, i32 n, i32 chunks, u64 *ones, u64 *others,
           u64 *ends, u32 *arrived)
{
    const Weighed rows = {marks, units, has_units};
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        u64 of_ones = 0, of_others = 0, of_ends = 0;
        for (i32 at = chunk * CHUNK + threadIdx.x; at < min(n, (chunk + 1) * CHUNK); at += ORDER_THREADS) {
            const u64 unit = rows.unit(at);
            of_ones += marks[at] & 1 ? unit : 0;
            of_others += marks[at] & 1 ? 0 : unit;
            of_ends += is_end(keys, n, at);
        }
        keep_total(of_ones, ones + chunk);
        keep_total(of_others, others + chunk);
        keep_total(of_ends, ends + chunk);
    }
    if (last_block(arrived)) {
        scan_chunks(ones, chunks);
        scan_chunks(others, chunks);
        scan_chunks(ends, chunks);
    }
}

// positive, negative (n,), of which as many are written as there are distinct scores: the weight of the ones and of the
// others up to each.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
write_steps(const u64 *keys, const u32 *marks, const i64 *units, i32 has_units, i32 n, i32 chunks, const u64 *ones,
            const u64 *others, const u64 *ends, u64 *positive, u64 *negative)
{
    const Weighed rows = {marks, units, has_units};
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        u64 of_ones = ones[chunk], of_others = others[chunk], step = ends[chunk], total;
        for (i32 first = chunk * CHUNK; first < min(n, (chunk + 1) * CHUNK); first += ORDER_THREADS) {
            const i32 at = first + threadIdx.x;
            const bool end = is_end(keys, n, at), one = at < n && marks[at] & 1;
            const u64 unit = at < n ? rows.unit(at) : 0, own_one = one ? unit : 0, own_other = one ? 0 : unit;
            const u64 up_to_one = of_ones + block_scan(own_one, total) + own_one;
            of_ones += total;
            const u64 up_to_other = of_others + block_scan(own_other, total) + own_other;
            of_others += total;
            const u64 place = step + block_scan((u64)end, total);
            step += total;
            if (end) {
                positive[place] = up_to_one;
                negative[place] = up_to_other;
            }
        }
    }
}

// sums (3,) += the pieces of the terms of the steps, times ``scale``. steps: how many there are.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
sum_terms(const u64 *positive, const u64 *negative, const u64 *steps, i32 curve, f64 scale, i64 *sums)
{
    Pieces own = {};
    const i64 count = (i64)*steps;
    const u64 ones = positive[count - 1], others = negative[count - 1];
    for (i64 j = blockIdx.x * ORDER_THREADS + threadIdx.x; j < count; j += (i64)gridDim.x * ORDER_THREADS) {
        const u64 before = j > 0 ? positive[j - 1] : 0, others_before = j > 0 ? negative[j - 1] : 0;
        const f64 gained = (f64)(i64)(positive[j] - before);
        f64 factor = 0.0;
        if (curve == ROC) {
            factor = (f64)(i64)(others_before + negative[j]);
        } else {
            const u64 higher = ones - before, every = higher + (others - others_before);
            if (every > 0)
                factor = (f64)(i64)higher / (f64)(i64)every;
        }
        own.add(gained * factor * scale);
    }
    add_pieces(own, sums);
}
