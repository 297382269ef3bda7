"""Tests of the tests: every planted bug is caught by the plain emulator, or by the sanitizer that is there for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulator import (
    CompileError,
    KernelError,
    Module,
    OutOfBoundsError,
    Schedule,
    emulated_runtime,
    launch,
    require_compiler,
)

pytestmark = pytest.mark.slow
PLANTED = (Path(__file__).parent / "planted.cu").read_text()
ORDERS = ("forward", "reverse", "random")
I32 = np.int32


@pytest.fixture(autouse=True)
def _compiler() -> None:
    require_compiler()


def run(kernel, block, *args, fixed=False, order="forward", grid=1, shared_mem=0, options=(), seed=0):
    """The last array argument after a launch."""
    module = Module(PLANTED, ("-DFIXED",) * fixed + options, schedule=Schedule(order, seed))
    module.kernel(kernel)((grid,), (block,), args, shared_mem)
    return [a for a in args if isinstance(a, np.ndarray)][-1]


def zeros(n=256):
    return np.zeros(n, I32)


def test_a_barrier_that_only_some_threads_reach():
    with pytest.raises(
        KernelError, match=r"divergent __syncthreads: this thread is at module.cu:9, others wait at .*:6"
    ):
        run("divergent_barrier", 64, zeros())


def test_a_lane_that_does_not_come():
    with pytest.raises(
        KernelError, match=r"deadlock:.*__syncthreads module.cu:18.*warp operation module.cu:16 mask ffff"
    ):
        run("missing_lane", 32, zeros())


def test_a_lane_outside_its_own_mask():
    with pytest.raises(KernelError, match=r"thread \(0,0,0\): this lane is not in the mask 0000ff00"):
        run("wrong_mask", 32, zeros())


def test_a_cluster_that_waits_for_ever():
    with pytest.raises(KernelError, match=r"deadlock:.*(cluster's barrier .*__syncthreads|__syncthreads.*cluster's)"):
        run("cluster_deadlock", 32, zeros(), grid=2)


def test_a_wait_for_a_cluster_without_an_arrival():
    with pytest.raises(KernelError, match="has not arrived at the barrier of its cluster"):
        run("cluster_wait_alone", 32, zeros(), grid=2)


def test_an_illegal_address_in_one_block_of_a_cluster_ends_all():
    with pytest.raises(KernelError, match=r"block \(1,0,0\).*illegal memory access"):
        run("cluster_stray", 32, zeros(), grid=4)


def test_a_grid_that_is_no_multiple_of_its_clusters():
    with pytest.raises(KernelError, match=r"invalid grid \(3, 1, 1\) of clusters of 2 blocks"):
        run("cluster_race", 32, zeros(), grid=3)


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_of_a_cluster_see_what_others_wrote(order):
    out = run("cluster_race", 32, zeros(4), fixed=True, grid=2, order=order)
    assert out.tolist() == [1, 2, 2, 1]
    assert run("cluster_ends_early", 32, zeros(32), grid=2, order=order).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kernel", "block"), [("missing_barrier", 256), ("warp_synchronous", 32)])
def test_a_missing_barrier_changes_the_result_in_every_order(kernel, block, order):
    right = run(kernel, block, zeros(), fixed=True)
    np.testing.assert_array_equal(run(kernel, block, zeros(), fixed=True, order=order), right)
    assert (run(kernel, block, zeros(), order=order) != right).any()


@pytest.mark.parametrize("order", ORDERS)
def test_a_missing_second_barrier_changes_the_result_in_every_order(order):
    x = np.arange(1024, dtype=I32)
    right = np.roll(x.reshape(4, 256), -33, axis=1).sum(axis=0)
    arguments = ("missing_second_barrier", 256, x)
    np.testing.assert_array_equal(run(*arguments, out := zeros(), I32(4), fixed=True, order=order), right)
    run(*arguments, out, I32(4), order=order)
    assert (out != right).any()


def test_no_order_shows_a_lost_update_and_this_is_why_there_is_a_race_detector():
    for seed in range(5):
        assert run("lost_update", 256, zeros(1), order="random", seed=seed)[0] == 256


def test_uninitialised_shared_memory_is_nan():
    out = run("uninitialised_shared", 64, np.zeros(64, np.float32))
    assert (out[:32] == 1).all()
    assert np.isnan(out[32:]).all()


def test_uninitialised_global_memory_is_nan():
    runtime = emulated_runtime()
    kernel = runtime.kernel(PLANTED, "uninitialised_global")
    kernel((1,), (64,), (runtime.empty(64, np.float32), out := runtime.zeros(64, np.float32)))
    assert np.isnan(runtime.download(out)).all()


def test_a_write_behind_an_array_is_named():
    runtime = emulated_runtime()
    runtime.kernel(PLANTED, "beyond_write")((1,), (64,), (runtime.zeros(64, I32), I32(1)))
    with pytest.raises(KernelError, match=r"beyond_write: block \(0,0,0\) thread \(63,0,0\): illegal memory access"):
        runtime.wait()


def test_a_read_behind_an_array_is_named():
    runtime = emulated_runtime()
    arrays = runtime.zeros(64, I32), runtime.zeros(65, I32)
    runtime.kernel(PLANTED, "beyond_read")((1,), (64,), (*arrays, I32(1)))
    with pytest.raises(KernelError, match=r"beyond_read: .*thread \(63,0,0\): illegal memory access"):
        runtime.wait()


@pytest.mark.parametrize("k", [-1, -64, 1])
def test_a_write_too_near_for_a_page_is_seen_at_the_next_wait(k):
    runtime = emulated_runtime()
    out = runtime.zeros(63 if k > 0 else 64, I32)  # 63: 4 bytes are left before the page ends
    runtime.kernel(PLANTED, "beyond_write")((1,), (63 if k > 0 else 1,), (out, I32(k)))
    with pytest.raises(OutOfBoundsError, match=f"outside an array of {out.nbytes} bytes"):
        runtime.wait()


@pytest.mark.parametrize(
    ("kernel", "arguments", "words"),
    [
        ("null_store", (), r"thread \(37,0,0\): illegal memory access at address \(nil\)"),
        ("deep_stack", (I32(1),), "illegal memory access"),
        ("division", (I32(0),), "division by zero"),
    ],
)
def test_traps_name_the_thread_and_python_lives_on(kernel, arguments, words):
    with pytest.raises(KernelError, match=words):
        run(kernel, 64 if kernel == "null_store" else 1, zeros(), *arguments)
    assert (run("missing_barrier", 256, zeros(), fixed=True) == np.arange(256)[::-1]).all()


def test_a_frame_larger_than_the_guard_page_does_not_step_over_it():
    """What lies below the lowest stack belongs to other code, often the record of another thread, which fails later."""
    with pytest.raises(KernelError, match="illegal memory access at address") as caught:
        run("deep_stack", 1, zeros(), I32(1))
    address = int(str(caught.value).rpartition(" ")[2], 16)
    assert any(0 <= address - stacks.address < stacks.GUARD for stacks in launch._free_stacks)


# A product and a sum become one rounding when contracted


def contracted(*options):
    a, b = np.full(4, 1 + 2.0**-30), np.full(4, 1 - 2.0**-30)
    return run("contracted", 4, a, b, np.zeros(4), options=options)


def test_the_build_forbids_contraction():
    assert (contracted() == 0).all()


def test_a_build_that_contracts_is_caught():
    if "fma" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no fused multiply-add")
    assert (contracted("-O2", "-ffp-contract=fast", "-mfma") == -(2.0**-60)).all()


# Wrong launches


@pytest.mark.parametrize(
    ("kernel", "arguments", "words"),
    [
        ("beyond_read", (zeros(), zeros(), 0), r"argument 2 \(k\) is int64, the kernel wants i4; wrap it"),
        ("beyond_read", (zeros(), zeros(), np.uint32(0)), r"argument 2 \(k\) is uint32"),
        (
            "beyond_read",
            (zeros().astype(np.int64), zeros(), I32(0)),
            r"argument 0 \(x\) is int64, the kernel wants i4\*",
        ),
        ("beyond_read", (zeros()[::2], zeros(), I32(0)), r"argument 0 \(x\) is not contiguous"),
        ("beyond_read", (zeros(), I32(0)), "takes 3 arguments, got 2"),
        ("beyond_read", (zeros(), I32(0), I32(0)), r"argument 1 \(out\) is int32, the kernel wants an array"),
        ("beyond_read", (zeros(), zeros(), zeros()), r"argument 2 \(k\) has shape \(256,\)"),
    ],
)
def test_wrong_arguments(kernel, arguments, words):
    with pytest.raises(TypeError, match=words):
        run(kernel, 1, *arguments)


def test_wrong_launches():
    with pytest.raises(KernelError, match="65536 bytes of dynamic shared memory, the limit set is 49152"):
        run("beyond_dynamic", 64, zeros(), I32(0), shared_mem=64 << 10)
    with pytest.raises(KernelError, match="invalid grid"):
        run("beyond_dynamic", 64, zeros(), I32(0), grid=0, shared_mem=256)
    with pytest.raises(KernelError, match=r"invalid block \(256, 1, 1\) \(launch bound 128\)"):
        run("small_blocks", 256, zeros(), I32(0))
    with pytest.raises(KernelError, match=r'no extern "C" __global__ kernel of that name'):
        run("smal_blocks", 256, zeros())


def test_what_cuda_does_not_have_is_no_cpp_either():
    with pytest.raises(CompileError, match=r"invalid conversion from .long long int"):
        Module('extern "C" __global__ void k(long long* sum) { atomicAdd(sum, 1LL); }')
