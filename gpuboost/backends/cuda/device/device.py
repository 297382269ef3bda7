"""A device's runtime, or the exact reason why there is none. CuPy is imported at the first request for a device."""

from __future__ import annotations

from typing import Any

from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.cuda.device.sources import OPTIONS
from gpuboost.errors import DeviceError

OLDEST = 70  # compute capability 7.0: threads of a warp that advance on their own
INSTALL = "pip install 'gpuboosting[cuda13]' (driver 580 or newer) or 'gpuboosting[cuda12]' (driver 525 or newer)"
_PROBE = 'extern "C" __global__ void probe() {}'


def cupy_runtime(index: int = 0) -> CupyRuntime:
    """The runtime of GPU number ``index``.

    Raises:
        DeviceError: if it cannot be used; with the reason, and what to install.
    """
    cp = import_cupy()
    if reason := why_not(cp, index):
        raise DeviceError(f"device: 'cuda:{index}' is not usable; {reason}. Or use device='cpu'.")
    from cupyx import empty_pinned

    return CupyRuntime(cp, index, pinned_empty=empty_pinned)


def import_cupy() -> Any:
    """The cupy namespace.

    Raises:
        DeviceError: if it is not installed, or does not start.
    """
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise DeviceError(f"device: CuPy does not start ({error}). Reinstall it: {INSTALL}.") from error
        raise DeviceError(f"device: CUDA needs CuPy, which is not installed. {INSTALL}.") from error
    except OSError as error:  # it makes its folder of compiled kernels when it is imported
        raise DeviceError(
            f"device: CuPy does not start ({error}). Name a folder that can be written in CUPY_CACHE_DIR."
        ) from error
    except ImportError as error:
        raise DeviceError(f"device: CuPy does not start ({error}). Reinstall it: {INSTALL}.") from error
    return cupy


def why_not(cp: Any, index: int) -> str:
    """The reason why GPU number ``index`` cannot be used through this CuPy; empty if it can."""
    return _no_driver(cp) or _no_device(cp, index) or _no_compiler(cp, index)


def _no_driver(cp: Any) -> str:
    driver, built = cp.cuda.runtime.driverGetVersion(), cp.cuda.runtime.runtimeGetVersion()
    if driver == 0:
        return "no NVIDIA driver was found (does nvidia-smi list the GPU?)"
    if driver // 1000 < built // 1000:
        return (
            f"the driver is for CUDA {_version(driver)} and this CuPy for CUDA {_version(built)}: "
            f"update the driver, or uninstall this CuPy and {INSTALL}"
        )
    return ""


def _no_device(cp: Any, index: int) -> str:
    if not cp.cuda.is_available():
        return "the driver lists no GPU (is one hidden by CUDA_VISIBLE_DEVICES, or kept from this container?)"
    count = cp.cuda.runtime.getDeviceCount()
    if index >= count:
        return "there is 1 GPU: cuda:0" if count == 1 else f"there are {count} GPUs: cuda:0 to cuda:{count - 1}"
    capability = cp.cuda.Device(index).compute_capability
    if int(capability) < OLDEST:
        return f"its compute capability is {capability[:-1]}.{capability[-1]}; {OLDEST // 10}.{OLDEST % 10} is needed"
    return ""


def _no_compiler(cp: Any, index: int) -> str:
    """Compile a first kernel: only then does CuPy find that NVRTC or the CUDA headers are missing."""
    try:
        with cp.cuda.Device(index):
            cp.RawModule(code=_PROBE, options=OPTIONS).get_function("probe")
    except Exception as error:  # of several libraries' own classes
        said = str(error).splitlines() or [repr(error)]
        return f"CuPy cannot compile for it ({said[0]}). {INSTALL}"
    return ""


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
