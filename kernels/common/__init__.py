"""Building blocks of all kernels: compilation, fixed-point numbers, random numbers, vector instructions, node table."""
