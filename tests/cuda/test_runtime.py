"""The seam: CupyRuntime's own lines, over a CuPy that refuses what drivers get wrong."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from emulator import FakeCudaError, FakeCupy, Schedule, emulated_runtime

from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.errors import DeviceError

ADD = 'extern "C" __global__ void add(float *x, float v, int n) { if (threadIdx.x < n) x[threadIdx.x] += v; }'
F32, I32 = np.float32, np.int32


@pytest.fixture
def runtime() -> CupyRuntime:
    return emulated_runtime()


def add(runtime, array, value):
    runtime.kernel(ADD, "add")((1,), (32,), (array, F32(value), I32(array.shape[0])))


def test_what_it_says_of_itself(runtime):
    assert (runtime.name, runtime.sm_count) == ("emulated", 4)
    before = runtime.free_memory
    array = runtime.empty((3, 5), F32)
    assert before - runtime.free_memory == array.nbytes == 60
    del array
    assert runtime.free_memory == before


def test_new_memory(runtime):
    assert np.isnan(runtime.download(runtime.empty(5, F32))).all()
    assert (runtime.download(runtime.zeros((2, 3), np.uint64)) == 0).all()
    assert (runtime.download(runtime.empty(0, F32)).shape) == (0,)


@pytest.mark.parametrize("dtype", ["O", "U3", "M8[s]", [("a", "f8"), ("b", "i4")]], ids=str)
def test_elements_are_numbers_as_in_cupy(runtime, dtype):
    with pytest.raises(TypeError, match="Unsupported dtype"):
        runtime.zeros(3, dtype)
    with pytest.raises(TypeError, match="Unsupported dtype"):
        runtime.upload(np.zeros(3, dtype))
    if isinstance(dtype, list):
        with pytest.raises(TypeError, match="Unsupported dtype"):
            runtime.zeros((3, 12), np.uint8).view(dtype)


def test_upload_takes_any_order_and_lets_the_host_go_on(runtime):
    host = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    array = runtime.upload(host)
    host[:] = 0
    np.testing.assert_array_equal(runtime.download(array), np.arange(12.0).reshape(3, 4))


def test_reads_and_writes_wait_for_the_next_wait(runtime):
    array, pinned = runtime.zeros(4, F32), runtime.pinned(4, F32)
    pinned[:] = 7
    runtime.write(array, pinned)
    runtime.wait()
    add(runtime, array, 1)
    runtime.read(array, pinned)
    assert (pinned == 7).all()  # nothing has run yet
    runtime.wait()
    assert (pinned == 8).all()


def test_a_pinned_buffer_that_is_changed_too_early_shows(runtime):
    array, pinned = runtime.zeros(4, F32), runtime.pinned(4, F32)
    pinned[:] = 7
    runtime.write(array, pinned)
    pinned[:] = 9
    assert (runtime.download(array) == 9).all()


def test_views_share_memory(runtime):
    array = runtime.zeros((4, 2), F32)
    add(runtime, array[1:3].reshape(4), 3)
    np.testing.assert_array_equal(runtime.download(array), [[0, 0], [3, 3], [3, 3], [0, 0]])
    np.testing.assert_array_equal(runtime.download(array[1].view(np.uint32)), [0x40400000] * 2)


def test_fill_and_copy(runtime):
    a, b = runtime.empty(6, I32), runtime.empty(6, np.uint32)
    runtime.fill(a[2:4], 1)
    runtime.fill(a[:2], 0)
    runtime.copy(b, a)
    np.testing.assert_array_equal(runtime.download(b[:4]), [0, 0, 0x01010101, 0x01010101])
    with pytest.raises(ValueError, match="source: must have 24 bytes; got 8"):
        runtime.copy(b, a[:2])


def test_a_graph_is_recorded_once_and_run_often(runtime):
    x, y, value = runtime.zeros(4, F32), runtime.zeros(4, F32), np.array(1, F32)

    def work():
        runtime.copy(y, x)
        runtime.kernel(ADD, "add")((1,), (32,), (x, value, I32(4)))
        runtime.fill(y[:1], 0)

    graph = runtime.capture(work)
    assert (runtime.download(x) == 0).all()  # recorded, not run
    value[...] = 100  # too late
    for _ in range(3):
        graph()
    assert (runtime.download(x) == 3).all()
    np.testing.assert_array_equal(runtime.download(y), [0, 2, 2, 2])
    assert runtime.cp.counts["graph"] == 3
    assert runtime.cp.counts["graph nodes"] == 9


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda runtime, x: runtime.zeros(3, F32), "allocation during a capture"),
        (lambda runtime, x: runtime.read(x, runtime.pinned(4, F32)), "D2H transfers are disallowed"),
        (lambda runtime, x: runtime.write(x, runtime.pinned(4, F32)), "H2D transfers are disallowed"),
        (lambda runtime, x: runtime.download(x), "D2H transfers are disallowed"),
        (lambda runtime, x: runtime.wait(), "during a capture"),
        (lambda runtime, x: runtime.capture(lambda: None)(), "while capturing"),
    ],
)
def test_what_a_capture_refuses(runtime, work, words):
    x = runtime.zeros(4, F32)
    with pytest.raises(FakeCudaError, match=words):
        runtime.capture(lambda: work(runtime, x))
    runtime.wait()  # the capture is over
    add(runtime, x, 1)
    assert (runtime.download(x) == 1).all()


def test_a_graph_keeps_what_its_work_holds(runtime):
    def recorded():
        x = runtime.zeros(4, F32)
        return runtime.capture(lambda: add(runtime, x, 1))

    recorded()()
    runtime.wait()
    assert runtime.cp.counts["graph"] == 1


def test_a_graph_over_freed_memory_is_an_error(runtime):
    arrays = [runtime.zeros(4, F32)]
    graph = runtime.capture(lambda: add(runtime, arrays[0], 1))
    graph()
    runtime.wait()
    arrays.clear()
    with pytest.raises(FakeCudaError, match="kernel add uses an array that was freed after the capture"):
        graph()


def test_an_empty_grid_launches_nothing(runtime):
    x = runtime.zeros(4, F32)
    runtime.kernel(ADD, "add")((0,), (32,), (x, F32(1), I32(4)))
    assert (runtime.download(x) == 0).all()
    assert runtime.cp.launches == 0


def test_what_is_no_argument_of_a_kernel(runtime):
    kernel = runtime.kernel(ADD, "add")
    x = runtime.zeros(4, F32)
    for arguments, error, words in (
        ((np.zeros(4, F32), F32(1), I32(4)), TypeError, r"argument 0 is a numpy.ndarray of shape \(4,\)"),
        ((x, F32(1), 4), TypeError, r"argument 2 \(n\) is int64, the kernel wants i4"),
        ((x, 1.0, I32(4)), TypeError, r"argument 1 \(v\) is float64, the kernel wants f4"),
        ((x.view(I32), F32(1), I32(4)), TypeError, r"argument 0 \(x\) is int32, the kernel wants f4\*"),
        ((emulated_runtime().zeros(4, F32), F32(1), I32(4)), FakeCudaError, "argument 0 lives on another device"),
    ):
        with pytest.raises(error, match=words):
            kernel((1,), (32,), arguments)


def test_device_arrays_do_not_become_numpy_arrays_in_passing(runtime):
    with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
        np.asarray(runtime.zeros(4, F32))


def test_shared_memory_above_48_kb_is_asked_for(runtime):
    text = 'extern "C" __global__ void last(float *o, int n) { extern __shared__ float s[]; *o = s[n - 1] = 5; }'
    out = runtime.zeros(1, F32)
    runtime.kernel(text, "last", shared_limit=200 << 10)((1,), (1,), (out, I32(50 << 10)), shared_mem=200 << 10)
    assert runtime.download(out)[0] == 5
    with pytest.raises(DeviceError, match=r"kernel last needs 245,760 bytes .* a block of emulated may have 232,448"):
        runtime.kernel(text, "last", shared_limit=240 << 10)


def test_no_room():
    runtime = CupyRuntime(FakeCupy(capacity=1000), name="emulated")
    kept = runtime.empty(600, np.uint8)
    with pytest.raises(DeviceError, match=r"device: emulated has no room for 1,600 more bytes \(400 are free\)"):
        runtime.empty((100, 2), np.float64)
    assert kept.nbytes == 600


def test_adopt_takes_what_lives_on_the_device(runtime):
    mine = runtime.upload(np.arange(6, dtype=F32).reshape(2, 3))
    by_dlpack = SimpleNamespace(__dlpack_device__=lambda: (2, 0), __dlpack__=lambda: mine)
    by_interface = SimpleNamespace(__cuda_array_interface__=mine.__cuda_array_interface__)
    for x in (mine, by_dlpack, by_interface):
        np.testing.assert_array_equal(runtime.download(runtime.as_device_array(x)), [[0, 1, 2], [3, 4, 5]])
    add(runtime, runtime.as_device_array(by_interface).reshape(6), 1)
    assert runtime.download(mine)[1, 2] == 6  # no copy


def test_adopt_gives_c_order(runtime):
    mine = runtime.upload(np.arange(6, dtype=F32).reshape(2, 3))
    strided = SimpleNamespace(
        __cuda_array_interface__=mine.__cuda_array_interface__ | {"shape": (3, 2), "strides": (4, 12)}
    )
    taken = runtime.as_device_array(strided)
    assert taken.flags.c_contiguous
    np.testing.assert_array_equal(runtime.download(taken), [[0, 3], [1, 4], [2, 5]])


def test_adopt_leaves_the_hosts_alone_and_refuses_other_devices(runtime):
    for x in (np.zeros(3), [1, 2], SimpleNamespace(__dlpack_device__=lambda: (1, 0)), None):
        assert runtime.as_device_array(x) is None
    with pytest.raises(DeviceError, match="the data live on cuda:1, the work is on emulated"):
        runtime.as_device_array(SimpleNamespace(__dlpack_device__=lambda: (2, 1)))


def test_gpuboost_sync_names_the_kernel_at_fault(monkeypatch):
    monkeypatch.setenv("GPUBOOST_SYNC", "1")
    runtime = emulated_runtime()
    with pytest.raises(DeviceError, match=r"kernel add failed on emulated: add: block .* illegal memory access"):
        runtime.kernel(ADD, "add")((1,), (32,), (runtime.zeros(4, F32), F32(1), I32(40)))
    add_one = runtime.zeros(4, F32)
    runtime.capture(lambda: add(runtime, add_one, 1))()  # a capture cannot wait
    assert (runtime.download(add_one) == 1).all()


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize("workers", [1, 2])
def test_every_block_runs_once_in_every_order(order, workers):
    runtime = CupyRuntime(FakeCupy(Schedule(order, seed=3, workers=workers)), name="emulated")
    text = (
        'extern "C" __global__ void k(int *n, int *turn, int *when) {'
        " atomicAdd(n + blockIdx.x + 7 * blockIdx.y, 1);"
        " if (threadIdx.x == 0) when[blockIdx.x + 7 * blockIdx.y] = atomicAdd(turn, 1); }"
    )
    n, when = runtime.zeros(35, I32), runtime.zeros(35, I32)
    runtime.kernel(text, "k")((7, 5), (33,), (n, runtime.zeros(1, I32), when))
    assert (runtime.download(n) == 33).all()
    turns = runtime.download(when)
    assert sorted(turns) == list(range(35))
    if workers == 1:
        up = np.diff(turns) > 0
        assert {"forward": up.all(), "reverse": not up.any(), "random": 0 < up.sum() < 34}[order]
