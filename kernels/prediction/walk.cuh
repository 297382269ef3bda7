// From the root to a leaf, by the bins of a row.

struct Step {
    i32 feature;     // -1 at a leaf
    u32 rule;        // bin | code of a missing value << 8 | STEP_MISSING_LEFT | STEP_CATEGORICAL
    i32 left, right;
};

enum { STEP_MISSING_LEFT = 1 << 16, STEP_CATEGORICAL = 1 << 17 };

// Bins as they lie in memory: (tiles, n, width), width a power of two.
struct BinRows {
    const u8 *bins;
    i64 n;
    i32 shift; // width == 1 << shift

    __device__ __forceinline__ u32 at(i64 row, i32 feature) const
    {
        return bins[((((i64)(feature >> shift)) * n + row) << shift) + (feature & ((1 << shift) - 1))];
    }
};

static __device__ __forceinline__ Step step_of(i32 feature, i32 bin, bool missing_left, bool categorical, i32 missing,
                                               i32 left, i32 right)
{
    const u32 flags = (missing_left ? STEP_MISSING_LEFT : 0) | (categorical ? STEP_CATEGORICAL : 0);
    const Step step = {feature, (u32)bin | (u32)missing << 8 | flags, left, right};
    return step;
}

// The leaf of a row. Bits of the left sets of node v begin at sets[v * stride].
static __device__ __forceinline__ i32 walk(const Step *steps, const u32 *sets, i32 stride, const BinRows &bins, i64 row)
{
    i32 v = 0;
    for (;;) {
        const int4 words = ((const int4 *)steps)[v];
        if (words.x < 0)
            return v;
        const u32 rule = (u32)words.y, code = bins.at(row, words.x);
        bool left = code <= (rule & 255u);
        if (rule & STEP_CATEGORICAL)
            left = sets[v * stride + (i32)(code >> 5)] >> (code & 31u) & 1u;
        if (code == (rule >> 8 & 255u))
            left = (rule & STEP_MISSING_LEFT) != 0;
        v = left ? words.z : words.w;
    }
}
