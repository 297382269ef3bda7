"""Compilation of CPU kernels: without the GIL, cached on disk, IEEE arithmetic as written.

No ``fastmath`` and no contraction: the bits are part of the contract. No ``parallel``: a kernel covers the range of
rows, nodes or features that it is given, and the backend's thread pool divides them.
"""

from inspect import signature

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gpuboost.kernels.disk_cache import prebuilt
from gpuboost.kernels.disk_cache.compile_once import compile_once
from gpuboost.kernels.disk_cache.folders import usable_folder, warn_of_replacement
from gpuboost.kernels.disk_cache.functions import know_in_every_process, name_by_closure, save_one_at_a_time
from gpuboost.kernels.disk_cache.machine_code import read_machine_code_alone

_FOLDER = usable_folder()
_PREBUILT_FOR = prebuilt.target_of(_FOLDER)
warn_of_replacement(_FOLDER)


def kernel(function):
    """Compiled once for each machine and version of the library. numba reads the folder when it wraps a function.

    Without the entry for callers in C, which is never used and takes a sixteenth of the time to compile. A function
    whose name begins with ``_`` is called by other kernels only, which contain its code: it has no entry for Python
    either, and is not cached by itself.
    """
    name_by_closure(function)
    function.__signature__ = signature(function)  # numba asks for it twice
    inner = function.__name__.startswith("_")
    in_callers = getattr(function, "inlined", False)
    keep = not inner and _FOLDER != ""  # numba raises an error where it can keep nothing
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, _FOLDER
    try:
        compiled = numba.njit(
            nogil=True,
            cache=keep,
            error_model="numpy",
            no_cfunc_wrapper=True,
            no_cpython_wrapper=inner,
            forceinline=in_callers,
            _nrt=not in_callers,
        )(function)
    finally:
        numba.config.CACHE_DIR = before
    if keep:
        save_one_at_a_time(compiled)
        know_in_every_process(compiled)
        read_machine_code_alone(compiled)
        compile_once(compiled)
    if keep and _PREBUILT_FOR is not None:
        prebuilt.load_also(compiled, _PREBUILT_FOR)
    return compiled


def inlined(function):
    """Mark a kernel, below ``@kernel``, whose code LLVM shall copy into its callers.

    For short kernels that are called for every node or feature: on small data the call itself, which passes each array
    as seven numbers and more, takes as long as the work. For the same reason they do not count references to arrays:
    each count is an atomic addition, and they were a quarter of the time of a tree on 1,000 rows. So such a kernel may
    take views of the arrays it is given, but make and return none.
    """
    function.inlined = True
    return function


for_this_process = numba.njit(nogil=True, error_model="numpy")
"""The same without the disk: for functions that read what their source does not show, such as a user's globals."""


@intrinsic
def prefetch(typing_context, address):
    """Ask for the cache line at an address. Has no effect but on time."""

    def codegen(context, builder, signature, args):
        pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [pointer, word, word, word]), "llvm.prefetch.p0"
        )
        builder.call(function, [builder.inttoptr(args[0], pointer), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(types.intp), codegen
