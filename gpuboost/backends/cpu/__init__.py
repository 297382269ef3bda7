"""The CPU: numba kernels, called by a pool of threads."""
