"""Calls of compiled kernels by the address of their machine code.

A kernel that calls another by name holds a copy of its code, and takes as long to compile as both of them. One that
calls it by address takes seconds less, and serves for every kernel of the same types: the gradients of any loss.
"""

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_ADDRESSES = {}  # (kernel, kinds of its arguments) -> address; numba needs 5 us to tell the type of an array
_COMPILED = set()  # the same keys, of kernels that are called


def called_at(returned):
    """A function (address, arguments) that calls the kernel at an address, and returns what it returns.

    returned: the type that the kernel returns. arguments: a tuple, of the very types that the kernel was compiled for:
    nothing can check them. See ``address_of``.
    """

    @intrinsic
    def call(typing_context, address, arguments):
        taken = tuple(map(types.unliteral, arguments.types))

        def codegen(context, builder, signature, values):
            pointer, packed = values
            function_type = context.call_conv.get_function_type(returned, taken)
            function = builder.inttoptr(pointer, function_type.as_pointer())
            cast_values = [
                context.cast(builder, value, of, to)
                for value, of, to in zip(cgutils.unpack_tuple(builder, packed), arguments.types, taken, strict=True)
            ]
            status, result = context.call_conv.call_function(builder, function, returned, taken, cast_values)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return result

        return returned(address, arguments), codegen

    return call


def address_of(kernel, *arguments):
    """The address of a kernel's machine code for such arguments; None if this process has not called it with such.

    It is good as long as the kernel is there.
    """
    key = kernel, _kinds(arguments)
    address = _ADDRESSES.get(key)
    if address is None:
        compiled = kernel.overloads.get(tuple(map(kernel.typeof_pyval, arguments)))
        if compiled is not None:
            address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
            _ADDRESSES[key] = address
    return address


def is_compiled(kernel, *arguments):
    """True if a kernel has been compiled for such arguments, by this process or one before it."""
    key = kernel, _kinds(arguments)
    if key not in _COMPILED:
        signature = tuple(map(kernel.typeof_pyval, arguments))
        if signature not in kernel.overloads:
            compiled = kernel._cache.load_overload(signature, kernel.targetctx)
            if compiled is None:
                return False
            kernel.targetctx.insert_user_function(compiled.entry_point, compiled.fndesc, [compiled.library])
            kernel.add_overload(compiled)
        _COMPILED.add(key)
    return True


def _kinds(value):
    """The properties by which numba tells the type of an argument."""
    if isinstance(value, tuple):
        return tuple(map(_kinds, value))
    return (value.dtype, value.ndim, value.flags.num) if isinstance(value, np.ndarray) else type(value)
