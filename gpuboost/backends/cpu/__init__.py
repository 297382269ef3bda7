"""The CPU: numba kernels, called by a pool of threads."""

from gpuboost.backends import numba_setting as numba_setting
