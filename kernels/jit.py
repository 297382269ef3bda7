"""How every CPU kernel is compiled: without the GIL, cached on disk, IEEE arithmetic as written.

No ``fastmath`` and no contraction: the bits are part of the contract. No ``parallel``: a kernel covers the range of
rows, nodes or features that it is given, and the backend's team of threads decides who gets which.
"""

import os
from hashlib import sha256
from pathlib import Path

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def cache_folder():
    """Where compiled kernels are kept: NUMBA_CACHE_DIR if it is set, else a folder of the user's for this very text.

    Not beside the sources, numba's own choice: what lies there is left behind when the package is uninstalled. And
    numba looks at a kernel's own file only, while a kernel holds the code of those it calls: so the folder's name is
    a hash of all of them.
    """
    if numba.config.CACHE_DIR:
        return Path(numba.config.CACHE_DIR)
    texts = sorted((path.name, path.read_bytes()) for path in Path(__file__).parent.glob("*.py"))
    digest = sha256(b"".join(name.encode() + text for name, text in texts)).hexdigest()[:16]
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuboost" / f"kernels-{digest}"


def _usable_folder():
    """The folder as text, or "" (numba then looks for another place) if nothing can be written there."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or a read-only one
        return ""
    return str(folder)


_FOLDER = _usable_folder()


def kernel(function):
    """Compiled once for each machine and version of the library. numba reads the folder when it wraps a function."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, _FOLDER
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = before


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
