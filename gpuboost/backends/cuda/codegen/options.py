"""Flags of NVIDIA's compilers, the same for every module: no contraction, and the flush of denormals that CuPy adds."""

from __future__ import annotations

OPTIONS = ("-std=c++17", "--fmad=false")  # a * b + c rounds twice, as on every other machine
FLUSH = "-ftz=true"  # CuPy adds it to OPTIONS and cannot be told not to; linked modules have it too
LINK = ("-lto", "-fma=0", "-ftz=1")  # the same for nvJitLink, which compiles what it links
