"""One launch for the same kernel of several trainings: block (x, y, z) of it is block (x, y) of training z's launch.

A module's text is rewritten, so that every kernel of the library can be launched so: its kernels become functions, and
for each a new kernel reads the arguments of its training from a table in device memory, and calls the function. Kernels
use the first two directions of a grid, so all that they compute with, ``blockIdx`` and ``gridDim`` among it, is that of
the training's own launch, and so are the bytes that they write.

    const u64 table[trainings][parameters]      an argument in the low bytes of each word
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.launches import KernelLaunch, KernelText
from gpuboost.backends.cuda.device.parameters import KERNEL, Declaration, declarations
from gpuboost.backends.cuda.device.runtime import Runtime

SUFFIX = "_of_each"
MOST = 65_535  # blocks in the third direction of a grid

_HEAD = re.compile(KERNEL)
_ARGUMENT = """
template <class T>
static __device__ __forceinline__ T argument_of(const unsigned long long *words, int place)
{
    return *reinterpret_cast<const T *>(words + place);
}
"""
_KERNEL = """
extern "C" __global__ void {bounds} {name}(const unsigned long long *__restrict__ table)
{{
    const unsigned long long *own = table + (unsigned long long)blockIdx.z * {count};
    {function}({arguments});
}}
"""


@lru_cache(maxsize=256)
def joint_source(text: str) -> str:
    """The module of the joint kernels of a module: those of ``name`` are called ``name`` + ``SUFFIX``."""
    functions = _HEAD.sub(
        lambda head: f"static __device__ __forceinline__ void {head['kernel']}({head['parameters']})", text
    )
    kernels = (_joint(name, declared) for name, declared in declarations(text).items())
    return "".join((functions, '\n#line 1 "joint kernels"\n', _ARGUMENT, *kernels))


def _joint(name: str, declared: Declaration) -> str:
    parameters = declared.parameters
    arguments = ", ".join(f"argument_of<{each.c_type}>(own, {i})" for i, each in enumerate(parameters))
    return _KERNEL.format(
        bounds=declared.bounds, name=name + SUFFIX, count=len(parameters), function=name, arguments=arguments
    )


def joint_launch(launches: Sequence[KernelLaunch], runtime: Runtime) -> KernelLaunch:
    """One launch that does the work of these, which differ in their arguments only.

    Its table is on the device when this returns.
    """
    text, first = launches[0].kernel, launches[0]
    table = runtime.upload(np.array([_words(launch.arguments) for launch in launches], np.uint64))
    joint = KernelText(joint_source(text.source), text.name + SUFFIX, text.functions, text.shared_limit)
    grid = (*first.grid, 1)[:2]
    return KernelLaunch(joint, (*grid, len(launches)), first.block, (table,), first.shared_mem)


def _words(arguments: Sequence[Any]) -> NDArray[np.uint64]:
    """(parameters,) the arguments as a kernel's table has them: addresses of arrays, and the bytes of numbers."""
    words = np.zeros(max(1, len(arguments)), np.uint64)
    for i, argument in enumerate(arguments):
        if isinstance(argument, np.generic):
            words[i : i + 1].view(argument.dtype)[0] = argument
        else:
            words[i] = argument.data.ptr
    return words
