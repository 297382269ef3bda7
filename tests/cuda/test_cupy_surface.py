"""Everything that ``CupyRuntime`` asks of CuPy is in the wheel that is installed. Needs the wheel, not a GPU."""

from __future__ import annotations

import inspect

import pytest

from gpuboost.backends.cuda.device import device
from gpuboost.errors import DeviceError

cupy = pytest.importorskip("cupy")

NAMES = {
    "": "RawModule RawKernel ascontiguousarray asarray empty from_dlpack get_default_memory_pool",
    "RawModule": "get_function",
    "RawKernel": "max_dynamic_shared_size_bytes",
    "ndarray": "T __array_ufunc__ astype data device flags get nbytes reshape set view",
    "cuda": "Device Event Stream get_current_stream get_elapsed_time is_available",
    "cuda.Device": "attributes compute_capability mem_info pci_bus_id",
    "cuda.Event": "record",
    "cuda.Graph": "launch",
    "cuda.MemoryPointer": "copy_from_device_async memset_async ptr",
    "cuda.Stream": "begin_capture end_capture record synchronize wait_event",
    "cuda.memory": "OutOfMemoryError",
    "cuda.runtime": "driverGetVersion getDeviceCount getDeviceProperties pointerGetAttributes runtimeGetVersion",
}


@pytest.mark.parametrize(("owner", "names"), NAMES.items())
def test_it_is_there(owner, names):
    found = cupy
    for part in filter(None, owner.split(".")):
        found = getattr(found, part)
    assert [name for name in names.split() if not hasattr(found, name)] == []


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        (lambda: cupy.ndarray.get, ("stream", "out", "blocking")),
        (lambda: cupy.ndarray.set, ("stream",)),
        (lambda: cupy.RawModule, ("code", "options")),
        (lambda: cupy.cuda.Event, ("disable_timing",)),
        (lambda: cupy.cuda.Stream.wait_event, ("event",)),
    ],
)
def test_it_takes_these_arguments(method, arguments):
    text = method().__doc__
    assert all(argument in text for argument in arguments)


def test_a_stream_takes_non_blocking_and_pinned_memory_a_shape_and_dtype():
    import cupyx

    assert "non_blocking" in cupy.cuda.Stream.__doc__
    assert list(inspect.signature(cupyx.empty_pinned).parameters)[:2] == ["shape", "dtype"]


def test_a_machine_without_a_driver_is_told_so():
    if cupy.cuda.runtime.driverGetVersion():
        pytest.skip("there is a driver here")
    with pytest.raises(DeviceError, match="'cuda:0' is not usable; no NVIDIA driver was found"):
        device.cupy_runtime(0)
