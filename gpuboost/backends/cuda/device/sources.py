"""Concatenation of CUDA C files to one module: NVRTC has no search path, so a kernel file includes nothing."""

from __future__ import annotations

from functools import cache
from importlib import resources

from gpuboost.backends.cuda.codegen.options import OPTIONS

__all__ = ["OPTIONS", "source"]


@cache
def source(*files: str, before: str = "") -> str:
    """The text of a module: ``before`` (macro definitions), then these files of ``gpuboost.kernels``, each once.

    Headers (.cuh) precede the files that use them. The compiler's messages name the file and its own line.
    """
    folder = resources.files("gpuboost.kernels")
    texts = (f'#line 1 "{file}"\n{folder.joinpath(file).read_text(encoding="utf-8")}' for file in dict.fromkeys(files))
    return "\n".join((before, *texts) if before else texts)
