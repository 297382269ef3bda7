"""Compilation of kernels before they are asked for, by other processes."""
