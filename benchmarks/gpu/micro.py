"""Bandwidths, rates and latencies of a device: the bounds that the speed of a training is compared with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuboost.backends.cuda.device.runtime import source
from gpuboost.benchmarks.gpu.budget import gpu_or_reason, skipped
from gpuboost.benchmarks.harness.experiments import Finding, Options

COLUMNS = ("what", "measured", "unit", "note")
BINS, LANES, THREADS = 256, 32, 512
PLANES = 2 * BINS * LANES * 4  # bytes of shared memory: sums of gradients and of curvatures
HBM_BYTES, L2_BYTES, PARTIAL_BYTES = 2 << 30, 30 << 20, 26 << 20
NODES = 25  # of a graph for a tree of depth 8

TEXT = """
// One atomic to a warp, so that the end of a kernel costs next to nothing.
template <class T> static __device__ void add_once(T sum, T *out)
{
    for (i32 d = 16; d; d >>= 1)
        sum += __shfl_xor_sync(FULL_WARP, sum, d);
    if ((threadIdx.x & 31) == 0)
        atomicAdd(out, sum);
}

// Two adds a step to planes of [bin][lane]. pattern 0: a bank of its own for each lane, bins at random;
// 1: any bank; 2: a bank of its own, always the same bin.
extern "C" __global__ void __launch_bounds__(512) adds(i32 steps, i32 pattern, u32 *out)
{
    extern __shared__ u32 plane[];
    for (i32 i = threadIdx.x; i < 2 * 256 * 32; i += blockDim.x)
        plane[i] = 0;
    __syncthreads();
    u32 state = 2654435761u * (blockIdx.x * blockDim.x + threadIdx.x + 1);
    for (i32 step = 0; step < steps; ++step) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        const u32 bin = pattern == 2 ? 7 : state >> 24, lane = pattern == 1 ? state & 31 : threadIdx.x & 31;
        atomicAdd(&plane[bin * 32 + lane], 1u);
        atomicAdd(&plane[256 * 32 + bin * 32 + lane], 2u);
    }
    __syncthreads();
    for (i32 which = 0; which < 2; ++which) {
        u32 sum = 0;
        for (i32 i = threadIdx.x; i < 256 * 32; i += blockDim.x)
            sum += plane[256 * 32 * which + i];
        add_once(sum, out + which);
    }
}

// Sum of x, an even number of them, read ``times`` times over.
extern "C" __global__ void __launch_bounds__(512) read_all(const u64 *x, i64 n, i32 times, u64 *out)
{
    const i64 stride = (i64)gridDim.x * blockDim.x, pairs = n / 2;
    const ulonglong2 *both = (const ulonglong2 *)x;
    u64 sum = 0;
    for (i32 again = 0; again < times; ++again)
#pragma unroll 4
        for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += stride) {
            const ulonglong2 pair = both[i];
            sum += pair.x + pair.y;
        }
    add_once(sum, out);
}

// Sum of the listed rows of 32 bytes.
extern "C" __global__ void __launch_bounds__(512) gather(const u64 *x, const u32 *list, i64 m, u64 *out)
{
    u64 sum = 0;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < m * 4; i += (i64)gridDim.x * blockDim.x)
        sum += x[(i64)list[i >> 2] * 4 + (i & 3)];
    add_once(sum, out);
}

// One number for each place, by a store of its own or by an atomic operation that returns nothing.
extern "C" __global__ void __launch_bounds__(512) flush(u64 *to, i64 n, i32 atomic)
{
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x)
        if (atomic)
            atomicAdd(&to[i], (u64)i);
        else
            to[i] = i;
}

extern "C" __global__ void nothing(u32 *out) { }
"""


class Bench:
    """Kernels of TEXT on a runtime. ``scale``: 1, or a small share of everything."""

    def __init__(self, runtime: Any, scale: float = 1.0) -> None:
        self.runtime, self.scale = runtime, scale
        self._text = source("common/common.cuh", before="") + TEXT
        self.grid = (4 * runtime.sm_count,)

    def kernel(self, name: str, shared: int | None = None) -> Any:
        return self.runtime.kernel(self._text, name, shared_limit=shared)

    def adds_per_second(self, pattern: int) -> float:
        """Atomic additions a second of all threads, in shared memory, two planes."""
        kernel, steps = self.kernel("adds", PLANES), max(4, int(4_000 * self.scale))
        out, grid = self.runtime.zeros(2, np.uint32), (3 * self.runtime.sm_count,)
        arguments = np.int32(steps), np.int32(pattern), out
        seconds = self.seconds(lambda: kernel(grid, (THREADS,), arguments, shared_mem=PLANES))
        return 2.0 * steps * THREADS * grid[0] / seconds

    def copy_speed(self) -> float:
        """Bytes read and written a second by a copy."""
        size = int(HBM_BYTES * self.scale)
        to, of = self.runtime.zeros(size, np.uint8), self.runtime.zeros(size, np.uint8)
        return 2.0 * size / self.seconds(lambda: self.runtime.copy(to, of), 10)

    def read_speed(self, size: int, times: int) -> float:
        x, out = self.runtime.zeros(int(size * self.scale) // 8, np.uint64), self.runtime.zeros(1, np.uint64)
        kernel, arguments = self.kernel("read_all"), (np.int64(x.shape[0]), np.int32(times), out)
        return times * x.nbytes / self.seconds(lambda: kernel(self.grid, (THREADS,), (x, *arguments)))

    def gather_speed(self, share: float) -> float:
        """Bytes a second of a gather of ascending rows, a ``share`` of all."""
        n = int(HBM_BYTES * self.scale) // 32
        rows = np.flatnonzero(np.random.default_rng(0).random(n) < share).astype(np.uint32)
        x, listed, out = (
            self.runtime.zeros(4 * n, np.uint64),
            self.runtime.upload(rows),
            self.runtime.zeros(1, np.uint64),
        )
        kernel = self.kernel("gather")
        return (
            32.0
            * len(rows)
            / self.seconds(lambda: kernel(self.grid, (THREADS,), (x, listed, np.int64(len(rows)), out)), 5)
        )

    def flush_speed(self, atomic: bool) -> float:
        """Bytes a second of 64-bit numbers that are written, or added atomically, to memory."""
        to, kernel = self.runtime.zeros(int(PARTIAL_BYTES * self.scale) // 8, np.uint64), self.kernel("flush")
        arguments = to, np.int64(to.shape[0]), np.int32(atomic)
        return to.nbytes / self.seconds(lambda: kernel(self.grid, (THREADS,), arguments))

    def launch_seconds(self) -> tuple[float, float, float]:
        """Seconds of one of NODES empty kernels in a graph, and launched one by one; the host's for the graph."""
        kernel, out = self.kernel("nothing"), self.runtime.zeros(1, np.uint32)

        def work() -> None:
            for _ in range(NODES):
                kernel(self.grid, (THREADS,), (out,))

        work()
        graph = self.runtime.capture(work)
        in_graph, one_by_one = self.seconds(graph, 50) / NODES, self.seconds(work, 50) / NODES
        self.runtime.wait()
        start = time.perf_counter()
        for _ in range(50):
            graph()
        host = (time.perf_counter() - start) / 50
        self.runtime.wait()
        return in_graph, one_by_one, host

    def compile_seconds(self) -> float:
        """Seconds to compile the histogram's module, which is in no cache."""
        shape = f"// {time.time_ns()}\n#define WIDTH 32\n#define PASSES 1\n#define CELLS 256\n#define COUNTS 0\n"
        text = source(
            "common/common.cuh", "common/tree.cuh", "common/blocks.cuh", "histograms/histogram.cu", before=shape
        )
        start = time.perf_counter()
        self.runtime.kernel(text, "root_histogram")
        return time.perf_counter() - start

    def seconds(self, work: Callable[[], None], times: int = 20) -> float:
        """Seconds of one call among many that are queued at once; the first is not counted."""
        work()
        self.runtime.wait()
        times = times if self.scale == 1.0 else 2
        start = time.perf_counter()
        for _ in range(times):
            work()
        self.runtime.wait()
        return (time.perf_counter() - start) / times


def copy_bandwidth(runtime: Any, scale: float = 1.0) -> float:
    """Bytes per second that a copy in the device's memory reads and writes: the ceiling."""
    return Bench(runtime, scale).copy_speed()


def micro(options: Options) -> Finding:
    """The table of measurements; each line names the design decision that depends on it."""
    runtime, about = gpu_or_reason()
    if runtime is None:
        return skipped("Micro-measurements", COLUMNS, about)
    return measured(runtime, about, 1e-4 if options.small else 1.0, options.tell)


def measured(runtime: Any, about: str, scale: float, tell: Callable[[str], None]) -> Finding:
    """The table of a runtime; ``about``: description of its device. A small ``scale`` is for tests."""
    bench = Bench(runtime, scale)
    tell("micro: copies and reads")
    memory = {
        "copy, 2 GiB": (bench.copy_speed(), "B/s", "the ceiling"),
        "read, 2 GiB": (bench.read_speed(HBM_BYTES, 1), "B/s", ""),
        "read, 30 MiB again and again": (bench.read_speed(L2_BYTES, 10), "B/s", "bins that fit into the L2 cache"),
        "rows of 32 bytes, 40 % of them": (bench.gather_speed(0.4), "B/s useful", "histograms of the smaller children"),
    }
    tell("micro: atomics")
    adds = {
        "adds, a bank for each lane": (bench.adds_per_second(0), "adds/s", "pass: 6e12 on an H200"),
        "adds, any bank": (bench.adds_per_second(1), "adds/s", "what other layouts would get"),
        "adds, always one bin": (bench.adds_per_second(2), "adds/s", "a constant column"),
        "stores of partial sums": (bench.flush_speed(False), "B/s", ""),
        "64-bit atomics in their place": (bench.flush_speed(True), "B/s", "if faster, partial sums are not needed"),
    }
    tell("micro: launches")
    in_graph, one_by_one, host = bench.launch_seconds()
    launches = {
        "kernel in a graph": (in_graph, "s", f"{NODES} empty ones"),
        "kernel by itself": (one_by_one, "s", ""),
        "launch of a graph, host": (host, "s", ""),
        "compile the histogram's module": (bench.compile_seconds(), "s", "once for each machine"),
    }
    measurements = memory | adds | launches
    rows = tuple((what, f"{value:.3g}", unit, note) for what, (value, unit, note) in measurements.items())
    numbers = {"gpu": about} | {what: value for what, (value, _, _) in measurements.items()}
    return Finding(f"Micro-measurements, {about}, {runtime.sm_count} multiprocessors", COLUMNS, rows, (), numbers)
