"""CUDA's own functions as the emulator has them, against their definition in Python."""

from __future__ import annotations

import numpy as np
import pytest
from emulator import KernelError, emulated_runtime

pytestmark = pytest.mark.slow  # what kernels use of them, the tests of kernels run every day

ORDERS = ("forward", "reverse", "random")
INTEGERS = np.array([0, 1, 2, 3, 0x80000000, 0xFFFFFFFF, 0x12345678, 0x00F0F000], np.uint32)


def each(body: str, x: np.ndarray, out: type, given: str, returned: str) -> np.ndarray:
    """out[i] = what ``body`` returns for x = x[i]."""
    text = f"""
static __device__ {returned} f({given} x) {{ {body} }}
extern "C" __global__ void map(const {given} *x, {returned} *out) {{ out[threadIdx.x] = f(x[threadIdx.x]); }}"""
    runtime = emulated_runtime()
    result = runtime.empty(len(x), out)
    runtime.kernel(text, "map")((1,), (len(x),), (runtime.upload(x), result))
    return runtime.download(result)


def bits(x: int) -> str:
    return f"{x:032b}"


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("__popc", lambda x: bits(x).count("1")),
        ("__clz", lambda x: len(bits(x)) - len(bits(x).lstrip("0"))),
        ("__ffs", lambda x: bits(x)[::-1].find("1") + 1),
        ("__brev", lambda x: int(bits(x)[::-1], 2)),
    ],
)
def test_bits(name, definition):
    got = each(f"return {name}(x);", INTEGERS, np.uint32, "unsigned", "unsigned")
    assert got.tolist() == [definition(int(x)) for x in INTEGERS]


@pytest.mark.parametrize("selector", [0x3210, 0x7654, 0x0123, 0x4040, 0x7531])
def test_byte_perm(selector):
    other = 0xA1B2C3D4
    got = each(f"return __byte_perm(x, {other}u, {selector});", INTEGERS, np.uint32, "unsigned", "unsigned")
    for x, y in zip(INTEGERS, got, strict=True):
        eight = int(x).to_bytes(4, "little") + other.to_bytes(4, "little")
        assert int(y).to_bytes(4, "little") == bytes(eight[selector >> 4 * i & 7] for i in range(4))


def test_products_of_more_than_a_word():
    got = each("return __umulhi(x, 0x9E3779B9u);", INTEGERS, np.uint32, "unsigned", "unsigned")
    assert got.tolist() == [int(x) * 0x9E3779B9 >> 32 for x in INTEGERS]
    wide = np.array([0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF], np.uint64)
    got = each("return __umul64hi(x, 0x9E3779B97F4A7C15ull);", wide, np.uint64, *["unsigned long long"] * 2)
    assert got.tolist() == [int(x) * 0x9E3779B97F4A7C15 >> 64 for x in wide]


def test_numbers_as_bits_and_back():
    x = np.array([0.0, -0.0, 1.5, -np.inf, np.nan, 5e-324])
    got = each("return __longlong_as_double(__double_as_longlong(x) ^ 1);", x, np.float64, "double", "double")
    np.testing.assert_array_equal(got.view(np.int64), x.view(np.int64) ^ 1)
    small = x.astype(np.float32)
    got = each("return __float_as_uint(x);", small, np.uint32, "float", "unsigned")
    np.testing.assert_array_equal(got, small.view(np.uint32))


def test_conversions_round_to_even_and_saturate():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 4503599627370497.5, 1e300, -1e300, np.nan, 2.0**63])
    got = each("return __double2ll_rn(x);", x, np.int64, "double", "long long")
    least, most = -(2**63), 2**63 - 1
    assert got.tolist() == [0, 2, 2, 0, -2, 4503599627370498, most, least, least, most]
    small = np.clip(x, -1e30, 1e30).astype(np.float32)
    got = each("return __float2int_rn(x);", small, np.int32, "float", "int")
    assert got.tolist() == [0, 2, 2, 0, -2, 2**31 - 1, 2**31 - 1, -(2**31), 0, 2**31 - 1]
    np.testing.assert_array_equal(each("return rint(x);", x, np.float64, "double", "double"), np.rint(x))


def test_arithmetic_that_is_correctly_rounded(rng):
    x = rng.normal(size=500)
    expected = {"__dmul_rn(x, x)": x * x, "__dadd_rn(x, 0.1)": x + 0.1, "__ddiv_rn(1.0, x)": 1 / x}
    for text, values in expected.items():
        np.testing.assert_array_equal(each(f"return {text};", x, np.float64, "double", "double"), values)
    root = each("return __dsqrt_rn(x * x);", x, np.float64, "double", "double")
    np.testing.assert_array_equal(root, np.sqrt(x * x))


# Atomic operations: 96 threads on 32 words, whatever the order

ATOMICS = [
    ("atomicAdd(p, i)", np.int32, "int", -5, lambda j: 3 * j + 96 - 5),
    ("atomicAdd(p, i)", np.uint64, "unsigned long long", 2**63, lambda j: 2**63 + 3 * j + 96),
    ("atomicSub(p, i)", np.int32, "int", 0, lambda j: -3 * j - 96),
    ("atomicMax(p, i)", np.uint32, "unsigned", 40, lambda j: j + 64),
    ("atomicMax(p, -i)", np.int64, "long long", -10, lambda j: max(-j, -10)),
    ("atomicMin(p, -i)", np.int32, "int", -70, lambda j: min(-j - 64, -70)),
    ("atomicOr(p, 1u << (i / 32))", np.uint32, "unsigned", 8, lambda j: 15),
    ("atomicAnd(p, ~(1u << (i / 32)))", np.uint32, "unsigned", 15, lambda j: 8),
    ("atomicXor(p, i)", np.uint32, "unsigned", 0, lambda j: j ^ (j + 32) ^ (j + 64)),
    ("atomicInc(p, 1)", np.uint32, "unsigned", 0, lambda j: 1),
    ("atomicDec(p, 5)", np.uint32, "unsigned", 1, lambda j: 4),
    ("if (i < 32) atomicExch(p, i)", np.int32, "int", -1, lambda j: j),
    ("if (i < 32) atomicCAS(p, i & 1, 9u)", np.uint32, "unsigned", 1, lambda j: 9 if j & 1 else 1),
]
ATOMIC_KERNELS = "".join(
    f"""
extern "C" __global__ void case{number}({name} *x) {{
    {name} i = blockIdx.x * 32 + threadIdx.x, *p = x + threadIdx.x;
    {operation}; }}"""
    for number, (operation, _, name, _, _) in enumerate(ATOMICS)
)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("number", range(len(ATOMICS)))
def test_atomics(number, order):
    _, dtype, _, start, expected = ATOMICS[number]
    runtime = emulated_runtime(order)
    x = runtime.upload(np.full(32, start, dtype))
    runtime.kernel(ATOMIC_KERNELS, f"case{number}")((3,), (32,), (x,))
    assert runtime.download(x).tolist() == [expected(j) for j in range(32)]


# Warps and barriers


LANES = np.arange(32)
WARPS = [
    ("__shfl_sync(all, 10 * i, i + 5)", 10 * ((LANES + 5) % 32)),
    ("__shfl_up_sync(all, i, 3)", np.where(LANES >= 3, LANES - 3, LANES)),
    ("__shfl_down_sync(all, i, 3, 16)", np.where(LANES % 16 < 13, LANES + 3, LANES)),
    ("__shfl_xor_sync(all, i, 9)", LANES ^ 9),
    ("(int)__shfl_xor_sync(all, (long long)i << 40, 9) + (int)(__shfl_sync(all, 0.5 * i, 6))", np.full(32, 3)),
    ("__ballot_sync(all, i % 3 == 0)", np.full(32, sum(1 << i for i in range(0, 31, 3)))),
    ("__popc(__match_any_sync(all, i % 7))", [5 if i % 7 < 4 else 4 for i in LANES]),
    ("__reduce_add_sync(all, i)", np.full(32, 496)),
    ("__reduce_max_sync(all, -i)", np.zeros(32)),
    ("__reduce_min_sync(all, -i)", np.full(32, -31)),
    ("__reduce_or_sync(all, 1u << i % 5) + __reduce_and_sync(all, 7u) + __reduce_xor_sync(all, 1u)", np.full(32, 38)),
    ("__any_sync(all, i == 31) + 2 * __all_sync(all, i < 31)", np.ones(32)),
    ("i < 16 ? __reduce_add_sync(0xffff, 1) : 2 * __reduce_add_sync(0xffff0000, 1)", np.repeat([16, 32], 16)),
    ("__syncthreads_count(i % 5 == 0)", np.full(32, 26)),  # of 128 threads
    ("2 * __syncthreads_or(i == 99) + __syncthreads_and(i != 99)", np.full(32, 2)),
]
WARP_KERNELS = "".join(
    f"""
extern "C" __global__ void case{number}(int *out) {{
    const int i = threadIdx.x; const unsigned all = 0xffffffffu; (void)all;
    out[i] = {body}; }}"""
    for number, (body, _) in enumerate(WARPS)
)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("number", range(len(WARPS)))
def test_warps_and_barriers(number, order):
    body, expected = WARPS[number]
    threads = 128 if "threads" in body else 32
    runtime = emulated_runtime(order)
    out = runtime.empty(threads, np.int32)
    runtime.kernel(WARP_KERNELS, f"case{number}")((1,), (threads,), (out,))
    np.testing.assert_array_equal(runtime.download(out)[:32], expected)


def test_threads_that_have_ended_do_not_hold_up_a_barrier():
    text = """
extern "C" __global__ void k(int *out) {
    if (threadIdx.x >= 40) return;
    out[threadIdx.x] = __syncthreads_count(1); }"""
    runtime = emulated_runtime("random")
    out = runtime.empty(40, np.int32)
    runtime.kernel(text, "k")((1,), (64,), (out,))
    assert (runtime.download(out) == 40).all()


def test_structs_constants_and_vectors():
    text = """
struct Pair { long long sum; double weight; unsigned char flag; };
__constant__ int table[4] = {3, 1, 4, 1};
extern "C" __global__ void __launch_bounds__(2 * 32)
k(Pair *pairs, const float4 *v, uint4 *sizes, Pair by_value) {
    const int i = threadIdx.x;
    const float4 x = __ldg(v + i);
    pairs[i].sum = by_value.sum + table[i];
    pairs[i].weight = (double)x.x + x.y + x.z + x.w;
    sizes[i] = make_uint4(sizeof(Pair), alignof(Pair), sizeof(float4), blockDim.x); }"""
    pair = np.dtype([("sum", "i8"), ("weight", "f8"), ("flag", "u1")], align=True)
    runtime = emulated_runtime()
    pairs, sizes = runtime.zeros((4, pair.itemsize), np.uint8), runtime.zeros((4, 4), np.uint32)
    vectors = runtime.upload(np.arange(16, dtype=np.float32).reshape(4, 4))
    runtime.kernel(text, "k")((1,), (4,), (pairs, vectors, sizes, np.array((10, 0, 0), pair)))
    got = runtime.download(pairs).view(pair)[:, 0]
    assert got["sum"].tolist() == [13, 11, 14, 11]
    assert got["weight"].tolist() == [6, 22, 38, 54]
    assert runtime.download(sizes)[0].tolist() == [pair.itemsize, 8, 16, 4]
    wrong = runtime.zeros((4, 16), np.uint8)
    with pytest.raises(TypeError, match=r"argument 0 \(pairs\) is .*, the kernel wants V24\*"):
        runtime.kernel(text, "k")((1,), (4,), (wrong, vectors, sizes, np.array((10, 0, 0), pair)))


def test_a_kernel_may_be_left_out_by_the_preprocessor():
    text = """
#define BOUND 64
#if FULL
extern "C" __global__ void full(int *out) { *out = missing; }
#endif
#define KERNEL(name, value) extern "C" __global__ void __launch_bounds__(BOUND) name(int *out) { *out = value; }
KERNEL(five, 5) // extern "C" __global__ void comment(int *out)
"""
    runtime = emulated_runtime()
    out = runtime.zeros(1, np.int32)
    runtime.kernel(text, "five")((1,), (1,), (out,))
    assert runtime.download(out)[0] == 5
    with pytest.raises(KernelError, match="launch bound 64"):
        runtime.kernel(text, "five")((1,), (65,), (out,))
