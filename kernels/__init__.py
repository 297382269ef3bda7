"""Kernels by primitive: ``.py`` for CPUs (numba) beside ``.cu`` for GPUs (CUDA C). Nothing here imports gpuboost."""
