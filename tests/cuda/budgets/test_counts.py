"""What the counting build says of kernels whose traffic is known."""

from __future__ import annotations

import numpy as np
import pytest
from emulator import Traffic, emulated_runtime

N, ROWS = 1000, 4096
TEXT = """
extern "C" __global__ void scale(const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i]; }

extern "C" __global__ void gather(const int *rows, const unsigned char *bins, int *out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = bins[(long long)rows[i] * 32 + 5]; }

extern "C" __global__ void tally(const unsigned char *bins, unsigned *out, int n) {
    __shared__ unsigned count[256];
    count[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(count + bins[i], 1u);
    __syncthreads();
    if (count[threadIdx.x]) atomicAdd(out + threadIdx.x, count[threadIdx.x]); }

extern "C" __global__ void again(const double *x, double *out, int times) {
    double sum = 0;
    for (int t = 0; t < times; ++t) sum += ((const volatile double *)x)[threadIdx.x];
    out[threadIdx.x] = sum; }

struct Node { long long sum; double value; int left, right; };
extern "C" __global__ void nodes(const Node *from, Node *to) { to[threadIdx.x] = from[threadIdx.x]; }

extern "C" __global__ void blocks(const uint4 *x, uint4 *y) { y[threadIdx.x] = x[threadIdx.x]; }
"""


@pytest.fixture
def runtime():
    return emulated_runtime(order="random", count=True)


@pytest.mark.slow
def test_a_stream_is_read_and_written_once(runtime):
    x, y = runtime.zeros(N, np.float32), runtime.zeros(N, np.float32)
    runtime.kernel(TEXT, "scale")((3,), (64,), (x, y, np.int32(N)))
    runtime.wait()
    counted = runtime.cp.traffic()["scale"]
    assert counted == {"x": Traffic(read=4000, fetched=4000), "y": Traffic(written=4000, stored=4000)}


def test_one_byte_of_a_scattered_row_costs_a_sector(runtime, rng):
    rows = runtime.upload(np.sort(rng.choice(ROWS, N, replace=False)).astype(np.int32))
    bins, out = runtime.zeros(32 * ROWS, np.uint8), runtime.zeros(N, np.int32)
    runtime.kernel(TEXT, "gather")((1,), (256,), (rows, bins, out, np.int32(N)))
    runtime.wait()
    counted = runtime.cp.traffic()["gather"]
    assert counted["bins"] == Traffic(read=N, fetched=32 * N)
    assert counted["rows"] == Traffic(read=4 * N, fetched=4 * N)


def test_atomics_of_shared_and_global_memory_are_told_apart(runtime, rng):
    drawn = rng.integers(0, 50, N).astype(np.uint8)
    out = runtime.zeros(256, np.uint32)
    runtime.kernel(TEXT, "tally")((1,), (256,), (runtime.upload(drawn), out, np.int32(N)))
    np.testing.assert_array_equal(runtime.download(out), np.bincount(drawn, minlength=256))
    assert runtime.cp.shared_atomics() == {"tally": N}
    counted = runtime.cp.traffic()["tally"]
    assert counted["out"] == Traffic(atomics=50, fetched=224, stored=224)
    assert (counted["bins"].read, counted["bins"].fetched) == (N, 1024)


def test_a_cache_is_perfect_within_a_launch_and_empty_before_the_next(runtime):
    x, out = runtime.zeros(32, np.float64), runtime.zeros(32, np.float64)
    for _ in range(2):
        runtime.kernel(TEXT, "again")((1,), (32,), (x, out, np.int32(5)))
    runtime.wait()
    assert runtime.cp.traffic()["again"]["x"] == Traffic(read=2 * 5 * 256, fetched=2 * 256)


def test_structs_and_vectors_are_counted_whole(runtime):
    runtime.kernel(TEXT, "nodes")((1,), (20,), (runtime.zeros((20, 24), np.uint8), runtime.zeros((20, 24), np.uint8)))
    runtime.kernel(TEXT, "blocks")((1,), (20,), (runtime.zeros((20, 4), np.uint32), runtime.zeros((20, 4), np.uint32)))
    runtime.wait()
    counted = runtime.cp.traffic()
    assert counted["nodes"]["from"].read == counted["nodes"]["to"].written == 20 * 24
    assert counted["blocks"] == {"x": Traffic(read=320, fetched=320), "y": Traffic(written=320, stored=320)}


def test_a_replay_is_counted_like_a_launch(runtime):
    x, y = runtime.zeros(N, np.float32), runtime.zeros(N, np.float32)
    graph = runtime.capture(lambda: runtime.kernel(TEXT, "scale")((3,), (64,), (x, y, np.int32(N))))
    graph()
    graph()
    runtime.wait()
    assert runtime.cp.traffic()["scale"]["x"].read == 2 * 4000
