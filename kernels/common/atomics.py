"""Atomic operations on int64 in an array, and waiting: threads that share work inside a kernel hand it over by these.

All take plain addresses of aligned numbers, as ``array.ctypes.data`` gives them.
"""

import platform
import sys

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

SPINS = 2_000  # times to ask before the processor is left to other threads, some ten microseconds,
YIELDS = 64  # and after so many times more, before the thread sleeps
NAP = 20  # microseconds

_LONG, _ADDRESS = ir.IntType(64), types.intp
_PAUSE = {
    **dict.fromkeys(("x86_64", "AMD64"), ("llvm.x86.sse2.pause", ())),
    **dict.fromkeys(("aarch64", "arm64"), ("llvm.aarch64.hint", (1,))),
}.get(platform.machine())  # LLVM's name and arguments of the instruction
_POSIX = sys.platform != "win32"  # then the C library, which every process has loaded, has sched_yield and usleep


def _place(builder, address):
    return builder.inttoptr(address, _LONG.as_pointer())


@intrinsic
def load(typing_context, address):
    """The number there; what other threads wrote before they stored it is seen."""

    def codegen(context, builder, signature, args):
        return builder.load_atomic(_place(builder, args[0]), "acquire", 8)

    return types.int64(_ADDRESS), codegen


@intrinsic
def store(typing_context, address, number):
    """Write a number; who loads it sees what was written before."""

    def codegen(context, builder, signature, args):
        builder.store_atomic(args[1], _place(builder, args[0]), "release", 8)
        return context.get_dummy_value()

    return types.void(_ADDRESS, types.int64), codegen


@intrinsic
def add(typing_context, address, number):
    """Add to the number there; who loads it sees what was written before."""

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("add", _place(builder, args[0]), args[1], "acq_rel")

    return types.int64(_ADDRESS, types.int64), codegen


@intrinsic
def swap_if(typing_context, address, expected, number):
    """Write a number if the one there is as expected. Returns True if it was."""

    def codegen(context, builder, signature, args):
        pair = builder.cmpxchg(_place(builder, args[0]), args[1], args[2], "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(_ADDRESS, types.int64, types.int64), codegen


@intrinsic
def relax(typing_context, spins):
    """Between two questions: let the other thread of this core run; after SPINS times, any other on this processor.

    A thread that waits for one that has no processor would otherwise use up the time that both are given.
    """

    def codegen(context, builder, signature, args):
        if _PAUSE is not None:
            name, numbers = _PAUSE
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(32)] * len(numbers))
            pause = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(pause, [ir.IntType(32)(number) for number in numbers])
        if _POSIX:
            word = ir.IntType(32)
            give_way = cgutils.get_or_insert_function(builder.module, ir.FunctionType(word, []), "sched_yield")
            sleep = cgutils.get_or_insert_function(builder.module, ir.FunctionType(word, [word]), "usleep")
            with builder.if_then(builder.icmp_signed(">", args[0], args[0].type(SPINS)), likely=False):
                long = builder.icmp_signed(">", args[0], args[0].type(SPINS + YIELDS))
                with builder.if_else(long, likely=False) as (then, otherwise):
                    with then:
                        builder.call(sleep, [word(NAP)])
                    with otherwise:
                        builder.call(give_way, [])
        return context.get_dummy_value()

    return types.void(types.int64), codegen
