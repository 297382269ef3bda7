"""Flags of NVIDIA's compilers, the same for every module: no contraction, and the flush of denormals that CuPy adds."""

from __future__ import annotations

OPTIONS = ("-std=c++17", "--fmad=false")  # a * b + c rounds twice, as on every other machine
FLUSH = "-ftz=true"  # CuPy always adds it to OPTIONS; linked modules have it too
LINK = ("-lto", "-fma=0", "-ftz=1")  # the same for nvJitLink, which compiles what it links
