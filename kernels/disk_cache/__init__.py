"""Compiled kernels on disk: where they are, how they are saved, found and read."""
