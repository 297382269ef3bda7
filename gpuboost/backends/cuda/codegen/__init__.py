"""Python functions in CUDA C: compiled by numba.cuda, linked by NVIDIA's linker. Nothing here is about trees."""
