// Gaussian numbers, as kernels/common/normal.py: the quantile of a Philox word, by a table of polynomials (normal_table.py).

static __device__ __forceinline__ f64 normal_of(u32 word, const f64 *table)
{
    const i64 bits = __double_as_longlong((f64)((i64)(word & 0x7fffffffu) * 2 + 1));
    const f64 *c = table + 6 * ((bits >> 49) - 8 * 1023);
    const f64 t = __longlong_as_double((i64)((u64)bits << 3 & 0x000fffffffffffffull | 0x3ff0000000000000ull)) - 1.0;
    f64 z = c[5];
    for (i32 degree = 4; degree >= 0; --degree)
        z = z * t + c[degree];
    return word >> 31 ? -z : z;
}

static __device__ __forceinline__ f64 normal(const Stream &stream, u64 number, const f64 *table)
{
    const uint4 words = philox(stream, number / 4);
    const u32 place = (u32)number & 3u;
    return normal_of(place == 0 ? words.x : place == 1 ? words.y : place == 2 ? words.z : words.w, table);
}
