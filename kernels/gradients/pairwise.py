"""Pairwise lambdas of one or two documents of a query with the documents below them, 16 at a time, in portable LLVM.

A loop in numba would keep the sums of 16 lanes in memory, test for each document whether arrays overlap, and leave what
is left of its unrolled vectors to scalars: three times as slow for lists of a hundred documents. Two documents at a
time load the others once, and have one chain of sums each.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gpuboost.kernels.common.vector import SIXTEEN

_WORD, _SINGLE, _DOUBLE = ir.IntType(32), ir.FloatType(), ir.DoubleType()
_LINE, _PLACES = ir.VectorType(_SINGLE, SIXTEEN), ir.VectorType(_WORD, SIXTEEN)
_ADDRESS, _F32, _F64 = types.intp, types.float32, types.float64
SUMS = 3  # of a document: forces, curves, sizes


def _same(value):
    return ir.Constant(_LINE, [value] * SIXTEEN)


def _splat(builder, number, vector=_LINE):
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, _WORD(0))
    return builder.shuffle_vector(first, first, ir.Constant(_PLACES, [0] * SIXTEEN))


def _pointer(builder, address, step, width, kind):
    """Pointer to number or line ``step``, each ``width`` bytes wide."""
    skip = builder.mul(step, ir.Constant(step.type, width))
    return builder.inttoptr(builder.add(address, skip), kind.as_pointer())


def _sums_of_halves(builder, left, right):
    """(2,) the sum of each of two lines: halves onto halves, until one number is left."""
    width, other = SIXTEEN, SIXTEEN
    while width > 1:
        half = width // 2
        low, high = ([*range(start, start + half), *range(other + start, other + start + half)] for start in (0, half))
        picked = [
            builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(_WORD, width), lanes))
            for lanes in (low, high)
        ]
        left = right = builder.fadd(*picked)
        width, other = half, half
    return left


class _Line:
    """Writes the pairs of the documents at a, a + 1, ... with a line of 16 places. ``known``: scores, powers, gains and
    discounts of places, the latter of the upper and of the lower document, all addresses; ``near``: what is added to
    the distance of two scores."""

    def __init__(self, builder, weigh, known, g, h, near):
        self.builder, self.weigh, self.known, self.sums_at, self.near = builder, weigh, known, (g, h), near
        unary, binary = ir.FunctionType(_LINE, [_LINE]), ir.FunctionType(_LINE, [_LINE] * 2)
        self.size_of = cgutils.get_or_insert_function(builder.module, unary, "llvm.fabs.v16f32")
        self.signed = cgutils.get_or_insert_function(builder.module, binary, "llvm.copysign.v16f32")
        self.leaders = []

    def lead(self, a):
        """One more document: what is known of it, and sums of what it takes part in."""
        b = self.builder
        score, *rest = (b.load(_pointer(b, address, a, 4, _SINGLE)) for address in self.known[:-1])
        fixed = [_splat(b, number) for number in (b.fadd(self.near, score), *rest)]
        sums = [cgutils.alloca_once_value(b, _same(0.0)) for _ in range(SUMS)]
        self.leaders.append((_splat(b, b.trunc(a, _WORD), _PLACES), fixed, sums))

    def write(self, line, first, closer):
        """The pairs with line number ``line``. first: whether places may be there that are not below the document."""
        b, gathered = self.builder, []
        known = *self.known[:-2], self.known[-1]
        places = [b.load(_pointer(b, address, line, 4 * SIXTEEN, _LINE), align=4) for address in known]
        pointers = [_pointer(b, address, line, 4 * SIXTEEN, _LINE) for address in self.sums_at]
        gathered = [b.load(pointer, align=4) for pointer in pointers]
        positions = b.trunc(b.mul(line, ir.Constant(line.type, SIXTEEN)), _WORD)
        positions = b.add(_splat(b, positions, _PLACES), ir.Constant(_PLACES, list(range(SIXTEEN))))
        for a, fixed, sums in self.leaders:
            below = b.icmp_signed(">", positions, a) if first else None
            force, curve, size = self._pair(fixed, places, below, closer)
            gathered = [b.fadd(old, more) for old, more in zip(gathered, (force, curve), strict=True)]
            for total, more in zip(sums, (force, curve, size), strict=True):
                b.store(b.fadd(b.load(total), more), total)
        for pointer, loaded in zip(pointers, gathered, strict=True):
            b.store(loaded, pointer, align=4)

    def _pair(self, fixed, places, below, closer):
        """``gpuboost.losses.ranking.pair_derivatives`` of 16 pairs: the force, towards the upper document if positive,
        the curve, and the force's size; 0 where not ``below``."""
        b, (reach, power_a, gain_a, discount_a), (score, power, gain, discount) = self.builder, fixed, places
        over = b.fsub(gain_a, gain)
        weight = self._weight(b.call(self.size_of, [over]), b.fsub(discount_a, discount))
        weight = b.select(b.fcmp_unordered("!=", over, _same(0.0)), weight, _same(0.0))
        upper_wins = b.fcmp_ordered(">", over, _same(0.0))
        better, worse = b.select(upper_wins, power_a, power), b.select(upper_wins, power, power_a)
        both = b.fadd(power_a, power)
        if closer:
            apart = b.fsub(reach, score)
            inverse = b.fdiv(_same(1.0), b.fmul(both, apart))
            whole = b.fmul(inverse, apart)
        else:
            inverse = whole = b.fdiv(_same(1.0), both)
        size = b.fmul(weight, b.fmul(worse, inverse))
        size = b.select(below, size, _same(0.0)) if below else size
        curve = b.fmul(size, b.fmul(better, whole))
        curve = b.select(below, curve, _same(0.0)) if below else curve
        return b.call(self.signed, [size, over]), curve, size

    def _weight(self, gain, discount):
        """The loss's own formula, lane by lane. It is of float64, rounded once.

        LLVM makes vectors of a product or a constant, as today's losses have. A formula with a choice in it would stay
        one of scalars, and be three times as slow.
        """
        b, weights = self.builder, ir.Constant(_LINE, ir.Undefined)
        for lane in range(SIXTEEN):
            arguments = [b.fpext(b.extract_element(vector, _WORD(lane)), _DOUBLE) for vector in (gain, discount)]
            weights = b.insert_element(weights, b.fptrunc(self.weigh(b, arguments), _SINGLE), _WORD(lane))
        return weights


def _loops(context, builder, line, closer, first, stop):
    """The first line, and all up to ``stop``, once for each kind of distance."""
    with builder.if_else(closer) as branches:
        for branch, kind in zip(branches, (True, False), strict=True):
            with branch:
                line.write(first, True, kind)
                after = builder.add(first, ir.Constant(first.type, 1))
                with cgutils.for_range_slice(builder, after, stop, ir.Constant(first.type, 1)) as (index, _):
                    line.write(index, False, kind)


def _lambdas_of(count):
    """The intrinsic for ``count`` documents, 1 or 2."""

    def lambdas_below(typing_context, weigh, known, pitch, upper, lower, g, h, a, closer, near, first, stop, out):
        weight = weigh.get_call_type(typing_context, (_F64, _F64), {})

        def codegen(context, builder, signature, args):
            _, known, pitch, upper, lower, g, h, a, closer, near, first, stop, out = args
            call = context.get_function(weigh, weight)
            rows = [builder.add(known, builder.mul(pitch, ir.Constant(pitch.type, row))) for row in range(3)]
            line = _Line(builder, call, [*rows, upper, lower], g, h, near)
            for number in range(count):
                line.lead(builder.add(a, ir.Constant(a.type, number)))
            _loops(context, builder, line, closer, first, stop)
            of_all = [[builder.load(total) for total in sums] for _, _, sums in line.leaders]
            for kind in range(SUMS):
                pair = _sums_of_halves(builder, of_all[0][kind], of_all[-1][kind])
                for number in range(count):
                    offset = ir.Constant(out.type, 4 * (SUMS * number + kind))
                    to = builder.inttoptr(builder.add(out, offset), _SINGLE.as_pointer())
                    builder.store(builder.extract_element(pair, _WORD(number)), to)
            return context.get_dummy_value()

        numbers = (_ADDRESS,) * 7, types.boolean, _F32, (_ADDRESS,) * 3
        return types.void(weigh, *numbers[0], numbers[1], numbers[2], *numbers[3]), codegen

    return intrinsic(lambdas_below)


lambdas_below_one, lambdas_below_two = _lambdas_of(1), _lambdas_of(2)
"""(weigh, known, pitch, upper, lower, g, h, a, closer, near, first, stop, out): pairs of the document at place a, or of
those at a and a + 1, with the places below it in lines ``first`` to ``stop`` - 1, one line or more.

weigh: (gain, discount) float64 -> a pair's weight; known: scores, powers and gains of places, three rows of float32
``pitch`` bytes apart; upper, lower: discounts by place, of the document itself and of those below; g, h: float32 sums
by place, to which lambdas and curvatures are added; closer: whether pairs weigh more that stand close, near: by how
much at most; out: (1 or 2, 3) float32, the document's own sums of forces, curves and sizes: 16 lanes, place p in lane
p % 16, halves onto halves. All but numbers are addresses; whole lines are read and written.
"""
