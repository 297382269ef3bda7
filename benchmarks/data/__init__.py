"""Data sets of the suites: real ones under GPUBOOST_DATA, and seeded ones of the shape of well-known sets."""
