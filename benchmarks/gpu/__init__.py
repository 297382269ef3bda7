"""Measurements of a GPU and of its kernels, and operation counts on the emulator."""
