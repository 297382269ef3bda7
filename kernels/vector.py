"""Vector instructions that numba has no word for, written as portable LLVM: 64 bytes or 16 numbers at a time.

LLVM turns them into AVX-512, AVX2, SSE or NEON, whatever the machine has. All of them take plain addresses, as
``array.ctypes.data`` gives them; the caller keeps the array alive and stays within it.
"""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

LANES = 64  # rows that one `choose` decides

_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_ADDRESS, _U8 = types.intp, types.uint8


def _splat(builder, number, lanes):
    vector = ir.VectorType(number.type, lanes)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, _WORD(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_WORD, lanes), [0] * lanes))


def _load(builder, address, vector, align=1):
    return builder.load(builder.inttoptr(address, vector.as_pointer()), align=align)


def _goes_left(builder, codes, shift, last):
    """(code + shift) modulo 256 <= last, for 64 codes."""
    vector = ir.VectorType(_BYTE, LANES)
    shifted = builder.add(_load(builder, codes, vector), _splat(builder, shift, LANES))
    return builder.icmp_unsigned("<=", shifted, _splat(builder, last, LANES))


def _choose(builder, out, questions, answers):
    """A tree of three questions and four answers for 64 rows."""
    root, left, right = (_goes_left(builder, *questions[i : i + 3]) for i in (0, 3, 6))
    a, b, c, d = answers
    chosen = builder.select(root, builder.select(left, a, b), builder.select(right, c, d))
    builder.store(chosen, builder.inttoptr(out, chosen.type.as_pointer()), align=1)


_QUESTIONS = (_ADDRESS, _U8, _U8) * 3  # address of 64 codes, shift, last; of a node, its left and its right child


@intrinsic
def choose_constants(typing_context, out, c0, s0, l0, c1, s1, l1, c2, s2, l2, v0, v1, v2, v3):
    """out[0:64] = the one of four bytes that three questions lead each of 64 rows to."""

    def codegen(context, builder, signature, args):
        _choose(builder, args[0], args[1:10], [_splat(builder, value, LANES) for value in args[10:]])
        return context.get_dummy_value()

    return types.void(_ADDRESS, *_QUESTIONS, _U8, _U8, _U8, _U8), codegen


@intrinsic
def choose(typing_context, out, c0, s0, l0, c1, s1, l1, c2, s2, l2, a0, a1, a2, a3):
    """The same where each of the four answers is the address of 64 bytes, one per row. ``out`` may be one of them."""

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_BYTE, LANES)
        _choose(builder, args[0], args[1:10], [_load(builder, address, vector) for address in args[10:]])
        return context.get_dummy_value()

    return types.void(_ADDRESS, *_QUESTIONS, *(_ADDRESS,) * 4), codegen


@intrinsic
def count_below(typing_context, address, x):
    """How many of 16 numbers of x's type are less than x; 0 if x is NaN."""

    def codegen(context, builder, signature, args):
        number = args[1]
        table = _load(builder, args[0], ir.VectorType(number.type, 16), align=signature.args[1].bitwidth // 8)
        below = builder.fcmp_ordered("<", table, _splat(builder, number, 16))
        return builder.zext(builder.ctpop(builder.bitcast(below, ir.IntType(16))), _LONG)

    if isinstance(x, types.Float):
        return types.intp(_ADDRESS, x), codegen
    return None
