// Histograms of sums that have 32 bits, as of at most MOST_ROWS rows, and the cuts of one that need to be looked at.
// In front: search.cuh, with GROUP 32 and COUNTS 0.

// The cells of one feature of one node: g of all bins, then h of all bins, bin b at [b % PER_LANE][b / PER_LANE]. So the
// lanes of a search read different banks.
struct SmallCells {
    const u32 *sums;
};

static __device__ __forceinline__ i32 place_of_bin(u32 bin) { return bin % PER_LANE * GROUP + bin / PER_LANE; }

static __device__ __forceinline__ Sums cell(const SmallCells &cells, i32 k, i32 lane)
{
    const u32 *at = cells.sums + k * GROUP + lane;
    return {(i32)at[0], at[CELLS], 0};
}

#define CLOSE (1.0f - 0x1p-16f) // of the largest score; rounding changes one by less than 2^-20 of it
#define LARGE 0x1p40            // below this, all that a score is made of is a normal float32

// Twice the loss reduction of a side, in units of the sums.
static __device__ __forceinline__ f32 rough_score(i32 g, u32 h, f32 ridge)
{
    const f32 x = (f32)g;
    return __fdividef(x * x, (f32)h + ridge);
}

// Two bits for each of this lane's bins, as ``own_bits``: those of ``bits`` whose cut may be the best. Scores in float32
// are a tenth of the work of exact ones, and few cuts come close to the largest. By one warp.
static __device__ __forceinline__ u32 promising(const SmallCells &cells, const Terms &terms, u32 bits)
{
    const i32 lane = threadIdx.x & 31;
    const f64 ridge_in_units = terms.ridge / terms.unit_h, least = ceil(terms.least_h / terms.unit_h); // a power of two
    if (!(ridge_in_units < LARGE))
        return bits;
    if (!(least < 0x1p32))
        return 0; // no side has as much
    const f32 ridge = (f32)ridge_in_units;
    const u32 least_h = max(1u, (u32)least);
    const Sums missing = cell(cells, terms.missing % PER_LANE, terms.missing / PER_LANE);
    const i32 sides = seen(missing) ? 2 : 1, all_g = (i32)terms.total.g;
    const u32 all_h = (u32)terms.total.h;
    i32 g[PER_LANE]; // of this lane's cells up to each
    u32 h[PER_LANE];
    i32 own_g = 0;
    u32 own_h = 0;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const bool there = lane * PER_LANE + k < terms.missing;
        const Sums own = cell(cells, k, lane);
        g[k] = own_g += there ? (i32)own.g : 0;
        h[k] = own_h += there ? (u32)own.h : 0;
    }
    i32 before_g = own_g;
    u32 before_h = own_h;
#pragma unroll
    for (i32 d = 1; d < 32; d <<= 1) {
        const i32 more_g = __shfl_up_sync(FULL_WARP, before_g, d);
        const u32 more_h = __shfl_up_sync(FULL_WARP, before_h, d);
        before_g += lane >= d ? more_g : 0;
        before_h += lane >= d ? more_h : 0;
    }
    before_g -= own_g;
    before_h -= own_h;
    f32 scores[2 * PER_LANE], most = 0.0f;
#pragma unroll
    for (i32 i = 0; i < 2 * PER_LANE; ++i) {
        const i32 k = i / 2, side = i % 2, bin = lane * PER_LANE + k;
        const i32 left_g = before_g + g[k] + (side ? (i32)missing.g : 0), right_g = all_g - left_g;
        const u32 left_h = before_h + h[k] + (side ? (u32)missing.h : 0), right_h = all_h - left_h;
        const bool competes = side < sides && bits >> i & 1 && left_h >= least_h && right_h >= least_h
            && bin < (side || sides == 1 ? terms.missing - 1 : terms.missing);
        scores[i] = competes ? rough_score(left_g, left_h, ridge) + rough_score(right_g, right_h, ridge) : -1.0f;
        most = scores[i] > most ? scores[i] : most;
    }
#pragma unroll
    for (i32 d = 16; d; d >>= 1) {
        const f32 other = __shfl_xor_sync(FULL_WARP, most, d);
        most = other > most ? other : most;
    }
    u32 close = 0;
#pragma unroll
    for (i32 i = 0; i < 2 * PER_LANE; ++i)
        close |= (u32)(scores[i] >= most * CLOSE) << i;
    return close;
}
