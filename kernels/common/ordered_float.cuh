// float64 numbers as 64 bits that order as they do, and digits of those: 8 bits of one.

enum { DIGITS = 256 };

static __device__ __forceinline__ u64 ordered(f64 x)
{
    const u64 bits = (u64)__double_as_longlong(x);
    return bits ^ (bits >> 63 ? ~0ull : 1ull << 63);
}

static __device__ __forceinline__ f64 number(u64 key)
{
    return __longlong_as_double((i64)(key ^ (key >> 63 ? 1ull << 63 : ~0ull)));
}
