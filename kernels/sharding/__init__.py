"""CUDA kernels of trees whose rows are spread over several GPUs."""
