"""Refusal of a numba whose settings disable compilation. Modules that import kernels import this one first."""

from numba import config

from gpuboost.errors import DeviceError

if config.DISABLE_JIT:  # kernels cannot even be imported
    raise DeviceError(
        "NUMBA_DISABLE_JIT: gpuboost computes in kernels that numba compiles, and this variable disables compilation. "
        "Unset this environment variable."
    )
