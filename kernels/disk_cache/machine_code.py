"""Compiled functions read from disk, without what only a compiler needs.

numba declares all that it can compile, some fifty thousand objects, before it reads the first function; imports the
modules of the functions of its own that are in it; and parses its LLVM code, from which other functions could copy it.
Machine code needs nothing of that, but numba's runtime. So the first fit of a process whose kernels are on disk takes
0.13 s less, and its end 0.1 s less, since each search for garbage visits all objects. What is compiled later installs,
imports and parses what it needs.
"""

import sys
from contextlib import contextmanager
from functools import partial
from importlib import import_module

import llvmlite.binding as llvm
import numba
from numba.core import environment
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys

KNOWN = range(60, 69)  # x of the versions 0.x of numba whose inner functions are called and replaced here


def read_machine_code_alone(compiled):
    """Have a compiled function read from disk so; a newer numba reads it as it does."""
    reader = compiled._cache
    if numba.version_info.short not in {(0, minor) for minor in KNOWN} or not hasattr(reader, "_load_overload"):
        return
    rebuild = reader._impl.rebuild

    def load(signature, target):
        with global_compiler_lock, reader._guard_against_spurious_io_errors(), _by_need(target.codegen()):
            rtsys.initialize(target)
            return reader._load_overload(signature, target)

    def rebuild_with_entries(target, content):
        (_, _, data), function, *_ = content
        entries = function.llvm_func_name, function.llvm_cpython_wrapper_name
        target.codegen()._engine._defined_symbols.update(name for name in entries if name.encode() + b"\0" in data[0])
        return rebuild(target, content)

    reader.load_overload, reader._impl.rebuild = load, rebuild_with_entries


class MachineCode(JITCodeLibrary):
    """Code that was read from disk. Its LLVM code is parsed when another function is to contain it."""

    @classmethod
    def read(cls, codegen, state):
        """state: what ``serialize_using_object_code`` of a library says."""
        name, _, (object_code, bitcode) = state
        library = cls(codegen, name)
        library._bitcode = bitcode
        library.enable_object_caching()
        library._set_compiled_object(object_code)
        library._finalize_final_module()
        return library

    def get_pointer_to_function(self, name):
        """The address of a function; 0 if there is none of that name."""
        if not self._codegen._engine.is_symbol_defined(name):
            self._get_module_for_linking()  # parses it, and knows its symbols then
        return super().get_pointer_to_function(name)

    @property
    def _shared_module(self):
        """The LLVM code, which is linked into other functions."""
        bitcode, self._bitcode = self._bitcode, None
        if bitcode is not None:
            self._parsed = llvm.parse_bitcode(bitcode)
            self._codegen._engine._load_defined_symbols(self._parsed)
        return self._parsed

    @_shared_module.setter
    def _shared_module(self, module):
        self._parsed, self._bitcode = module, None


def _environment(module, constants, name):
    """numba's record of the Python objects of a function: those of numba's own have no use for their module's names."""
    known = environment.lookup_environment(name)
    if known is not None:
        return known
    in_numba = module.startswith("numba.") and module not in sys.modules
    made = environment.Environment({"__name__": module} if in_numba else import_module(module).__dict__)
    made.consts[:], made.env_name = constants, name
    environment.Environment._memo[name] = made
    return made


@contextmanager
def _by_need(codegen):
    """Replace two functions of numba as long as a function is read, under the lock of its compiler."""
    plain, environment._rebuild_env = environment._rebuild_env, _environment
    codegen.unserialize_library = partial(MachineCode.read, codegen)  # hides the method of its class
    try:
        yield
    finally:
        environment._rebuild_env = plain
        del codegen.unserialize_library
