"""The CUDA device: runtime, memory, graphs, streams and the discovery of GPUs. Nothing here is about trees."""
