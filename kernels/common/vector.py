"""Vector instructions that numba cannot express, in portable LLVM: 64 bytes, or 8 or 16 numbers, at a time.

LLVM turns them into AVX-512, AVX2, SSE or NEON, whatever the machine has. All of them take plain addresses, as
``array.ctypes.data`` gives them; the caller keeps the array alive and stays within it.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 64  # rows that one `choose` decides
SIXTEEN = 16  # numbers that `add_sizes` adds
EIGHT = 8  # counters that `random_words` takes on

_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_FLOAT, _DOUBLE = ir.FloatType(), ir.DoubleType()
_ADDRESS, _U8, _U64 = types.intp, types.uint8, types.uint64


def _splat(builder, number, lanes):
    vector = ir.VectorType(number.type, lanes)
    first_lane = builder.insert_element(ir.Constant(vector, ir.Undefined), number, _WORD(0))
    return builder.shuffle_vector(first_lane, first_lane, ir.Constant(ir.VectorType(_WORD, lanes), [0] * lanes))


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


_QUESTIONS = (_ADDRESS, _U8, _U8) * 3  # (address of 64 codes, shift, last) for a node, its left and its right child


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
    """Count those of 16 numbers of x's type that are less than x; 0 if x is NaN."""

    def codegen(context, builder, signature, args):
        number = args[1]
        table = _load(builder, args[0], ir.VectorType(number.type, 16), align=signature.args[1].bitwidth // 8)
        below = builder.fcmp_ordered("<", table, _splat(builder, number, 16))
        return builder.zext(builder.ctpop(builder.bitcast(below, ir.IntType(16))), _LONG)

    if isinstance(x, types.Float):
        return types.intp(_ADDRESS, x), codegen
    return None


@intrinsic
def trailing_zeros(typing_context, x):
    """The place of the lowest bit that is set. x is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return _U64(_U64), codegen


@intrinsic
def add_sizes(typing_context, values, lines, lanes, tops):
    """lanes += |x| and tops = max(tops, |x|), lane by lane, for ``lines`` times 16 float32. lanes, tops: 16 float64.

    A loop over an array of lanes would keep them in memory, and be as slow as one lane after the other.
    """

    def codegen(context, builder, signature, args):
        values, lines, lanes, tops = args
        sixteen = ir.VectorType(_DOUBLE, SIXTEEN)
        size_of = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(sixteen, [sixteen]), "llvm.fabs.v16f64"
        )
        total, top = cgutils.alloca_once(builder, sixteen), cgutils.alloca_once(builder, sixteen)
        builder.store(_load(builder, lanes, sixteen, align=8), total)
        builder.store(_load(builder, tops, sixteen, align=8), top)
        with cgutils.for_range(builder, lines) as loop:
            address = builder.add(values, builder.mul(loop.index, ir.Constant(values.type, 4 * SIXTEEN)))
            x = builder.fpext(_load(builder, address, ir.VectorType(_FLOAT, SIXTEEN), align=4), sixteen)
            size, largest = builder.call(size_of, [x]), builder.load(top)
            builder.store(builder.fadd(builder.load(total), size), total)
            builder.store(builder.select(builder.fcmp_ordered(">", size, largest), size, largest), top)
        for accumulator, to in ((total, lanes), (top, tops)):
            builder.store(builder.load(accumulator), builder.inttoptr(to, sixteen.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(_ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS), codegen


def _same(number, lanes=EIGHT):
    return ir.Constant(ir.VectorType(_LONG, lanes), [number] * lanes)


@intrinsic
def random_words(typing_context, first, iteration, stream, seed_low, seed_high, out):
    """32 words of Philox4x32-10 (``kernels.common.philox``), those of 8 counters from ``first`` on. At out: uint32.

    Each lane has a counter. The upper halves of its numbers hold what is left of a product, which no multiplication
    reads: a mask is free in front of one, but not elsewhere.
    """

    def codegen(context, builder, signature, args):
        first, iteration, stream, seed_low, seed_high, out = args
        low, half = _same(0xFFFF_FFFF), _same(32)
        counters = builder.add(
            _splat(builder, first, EIGHT), ir.Constant(ir.VectorType(_LONG, EIGHT), list(range(EIGHT)))
        )
        c = [builder.and_(counters, low), builder.lshr(counters, half)]
        c += [_splat(builder, number, EIGHT) for number in (iteration, stream)]
        k = [_splat(builder, number, EIGHT) for number in (seed_low, seed_high)]
        for _ in range(10):
            p0 = builder.mul(builder.and_(c[0], low), _same(0xD251_1F53))
            p1 = builder.mul(builder.and_(c[2], low), _same(0xCD9E_8D57))
            c[0] = builder.xor(builder.xor(builder.lshr(p1, half), c[1]), k[0])
            c[2] = builder.xor(builder.xor(builder.lshr(p0, half), c[3]), k[1])
            c[1], c[3] = p1, p0
            k = [builder.add(k[0], _same(0x9E37_79B9)), builder.add(k[1], _same(0xBB67_AE85))]
        pairs = [builder.or_(builder.and_(a, low), builder.shl(b, half)) for a, b in ((c[0], c[1]), (c[2], c[3]))]
        for quarter in range(2):  # of each counter both pairs, one after the other
            places = [lane + of for lane in range(4 * quarter, 4 * quarter + 4) for of in (0, EIGHT)]
            four = builder.shuffle_vector(*pairs, ir.Constant(ir.VectorType(_WORD, EIGHT), places))
            to = builder.add(out, ir.Constant(out.type, 64 * quarter))
            builder.store(four, builder.inttoptr(to, four.type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(*(_U64,) * 5, _ADDRESS), codegen


@intrinsic
def in_either(typing_context, words, shift, a, b):
    """Bit mask of 64 uint32: set where a number shifted right by ``shift`` bits is a or b; the first is bit 0."""

    def codegen(context, builder, signature, args):
        words, *rest = args
        shift, a, b = (_splat(builder, number, LANES) for number in rest)
        upper = builder.lshr(_load(builder, words, ir.VectorType(_WORD, LANES), align=4), shift)
        matches = builder.or_(builder.icmp_unsigned("==", upper, a), builder.icmp_unsigned("==", upper, b))
        return builder.bitcast(matches, _LONG)

    return _U64(_ADDRESS, types.uint32, types.uint32, types.uint32), codegen


@intrinsic
def at_least(typing_context, numbers, least):
    """Bit mask of 64 float32: set where a number is not below ``least``; the first is bit 0."""

    def codegen(context, builder, signature, args):
        line = _load(builder, args[0], ir.VectorType(_FLOAT, LANES), align=4)
        return builder.bitcast(builder.fcmp_ordered(">=", line, _splat(builder, args[1], LANES)), _LONG)

    return _U64(_ADDRESS, types.float32), codegen


def _halves(builder, pairs):
    """Lower and upper 32 bits of two vectors of 8 int64, 16 each."""
    words = [builder.bitcast(pair, ir.VectorType(_WORD, SIXTEEN)) for pair in pairs]
    return [
        builder.shuffle_vector(*words, ir.Constant(ir.VectorType(_WORD, SIXTEEN), list(range(first, 32, 2))))
        for first in (0, 1)
    ]


@intrinsic
def cut_scores(typing_context, running, lines, shift, total, fewest, span, ridge, out):
    """out = the scores of ``lines`` times 16 cuts, and the largest of them, at least 0: see ``packed_split.estimate``.

    running: packed pairs of g, int32, and h, uint32. Scores are (g^2 / (h + ridge)) of both sides, added; 0 where h of
    the left side less ``fewest`` is above ``span``. One division a cut: numbers must be small enough for that.
    """

    def codegen(context, builder, signature, args):
        running, lines, shift, total, fewest, span, ridge, out = args
        floats, words = ir.VectorType(_FLOAT, SIXTEEN), ir.VectorType(_WORD, SIXTEEN)
        shift, total = _splat(builder, shift, EIGHT), _splat(builder, total, EIGHT)
        fewest, span, ridge = (_splat(builder, number, SIXTEEN) for number in (fewest, span, ridge))
        zero = ir.Constant(floats, [0.0] * SIXTEEN)
        max_scores = cgutils.alloca_once_value(builder, zero)
        with cgutils.for_range(builder, lines) as loop:
            address = builder.add(running, builder.mul(loop.index, ir.Constant(running.type, 8 * SIXTEEN)))
            places = address, builder.add(address, ir.Constant(address.type, 8 * EIGHT))
            left = [builder.add(_load(builder, a, ir.VectorType(_LONG, EIGHT), align=8), shift) for a in places]
            right = [builder.sub(total, pair) for pair in left]
            (low, x), (high, y) = _halves(builder, left), _halves(builder, right)
            p, q = (builder.fadd(builder.uitofp(h, floats), ridge) for h in (low, high))
            x, y = builder.sitofp(x, floats), builder.sitofp(y, floats)
            x, y = builder.fmul(builder.fmul(x, x), q), builder.fmul(builder.fmul(y, y), p)
            both = builder.fdiv(builder.fadd(x, y), builder.fmul(p, q))
            allowed = builder.icmp_unsigned("<=", builder.sub(low, fewest), span)
            both = builder.select(allowed, both, zero)
            to = builder.add(out, builder.mul(loop.index, ir.Constant(out.type, 4 * SIXTEEN)))
            builder.store(both, builder.inttoptr(to, floats.as_pointer()), align=4)
            before = builder.load(max_scores)
            builder.store(builder.select(builder.fcmp_ordered(">", both, before), both, before), max_scores)
        # numbers that are not negative are ordered as their bits are
        largest = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_WORD, [words]), "llvm.vector.reduce.umax.v16i32"
        )
        return builder.bitcast(builder.call(largest, [builder.bitcast(builder.load(max_scores), words)]), _FLOAT)

    u32, f32 = types.uint32, types.float32
    return f32(_ADDRESS, types.intp, types.int64, types.int64, u32, u32, f32, _ADDRESS), codegen


@intrinsic
def not_zero(typing_context, numbers):
    """Bit mask of 64 int64: set where a number is not 0; the first is bit 0."""

    def codegen(context, builder, signature, args):
        line = _load(builder, args[0], ir.VectorType(_LONG, LANES), align=8)
        return builder.bitcast(builder.icmp_unsigned("!=", line, _same(0, LANES)), _LONG)

    return _U64(_ADDRESS), codegen


@intrinsic
def running_sums(typing_context, numbers, lines, out):
    """out[i] = the sum of numbers[0] .. numbers[i], for ``lines`` times 8 int64.

    Each line is summed by itself in three additions: a line waits for one addition of the line before, not for eight.
    """

    def codegen(context, builder, signature, args):
        numbers, lines, out = args
        eight = ir.VectorType(_LONG, EIGHT)
        before = cgutils.alloca_once_value(builder, _same(0))
        with cgutils.for_range(builder, lines) as loop:
            offset = builder.mul(loop.index, ir.Constant(numbers.type, 8 * EIGHT))
            sums = _load(builder, builder.add(numbers, offset), eight, align=8)
            for by in (1, 2, 4):  # lane i gets lane i - by, or 0
                places = [EIGHT + i - by if i >= by else 0 for i in range(EIGHT)]
                sums = builder.add(
                    sums, builder.shuffle_vector(_same(0), sums, ir.Constant(ir.VectorType(_WORD, EIGHT), places))
                )
            last = builder.shuffle_vector(sums, sums, ir.Constant(ir.VectorType(_WORD, EIGHT), [EIGHT - 1] * EIGHT))
            carried = builder.load(before)
            to = builder.inttoptr(builder.add(out, offset), eight.as_pointer())
            builder.store(builder.add(sums, carried), to, align=8)
            builder.store(builder.add(carried, last), before)
        return context.get_dummy_value()

    return types.void(_ADDRESS, types.intp, _ADDRESS), codegen


@intrinsic
def bitmap_sum(typing_context, numbers, bitmaps, words):
    """The sum of those of 64 * ``words`` int64 whose bit is set. bitmaps: uint64 each, the first number is bit 0."""

    def codegen(context, builder, signature, args):
        numbers, bitmaps, words = args
        eight = ir.VectorType(_LONG, EIGHT)
        sums = [cgutils.alloca_once_value(builder, _same(0)) for _ in range(4)]
        with cgutils.for_range(builder, words) as loop:
            address = builder.add(bitmaps, builder.mul(loop.index, ir.Constant(bitmaps.type, 8)))
            bits = builder.load(builder.inttoptr(address, _LONG.as_pointer()), align=8)
            chosen = builder.bitcast(bits, ir.VectorType(ir.IntType(1), LANES))
            line = builder.add(numbers, builder.mul(loop.index, ir.Constant(numbers.type, 8 * LANES)))
            for part in range(LANES // EIGHT):
                places = ir.Constant(ir.VectorType(_WORD, EIGHT), list(range(EIGHT * part, EIGHT * (part + 1))))
                mask = builder.shuffle_vector(chosen, chosen, places)
                place = builder.add(line, ir.Constant(line.type, 8 * EIGHT * part))
                more = builder.select(mask, _load(builder, place, eight, align=8), _same(0))
                to = sums[part % len(sums)]
                builder.store(builder.add(builder.load(to), more), to)
        both = [builder.add(builder.load(a), builder.load(b)) for a, b in (sums[:2], sums[2:])]
        lanes, total = builder.add(*both), _LONG(0)
        for lane in range(EIGHT):
            total = builder.add(total, builder.extract_element(lanes, _WORD(lane)))
        return total

    return types.int64(_ADDRESS, _ADDRESS, types.intp), codegen


@intrinsic
def count_smaller(typing_context, keys, count, block, ranks):
    """ranks = how many of ``count`` keys are smaller, for each of 128 keys at ``block``. All uint16."""

    def codegen(context, builder, signature, args):
        keys, count, block, ranks = args
        half = ir.IntType(16)
        many = ir.VectorType(half, 2 * LANES)
        block_keys = _load(builder, block, many, align=2)
        lane_counts = cgutils.alloca_once_value(builder, ir.Constant(many, None))
        with cgutils.for_range(builder, count) as loop:
            address = builder.add(keys, builder.mul(loop.index, ir.Constant(keys.type, 2)))
            key = builder.load(builder.inttoptr(address, half.as_pointer()))
            first = builder.insert_element(ir.Constant(many, ir.Undefined), key, _WORD(0))
            same = builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_WORD, 2 * LANES), None))
            smaller = builder.sext(builder.icmp_unsigned("<", same, block_keys), many)
            builder.store(builder.sub(builder.load(lane_counts), smaller), lane_counts)
        builder.store(builder.load(lane_counts), builder.inttoptr(ranks, many.as_pointer()), align=2)
        return context.get_dummy_value()

    return types.void(*(_ADDRESS,) * 4), codegen


@intrinsic
def wide_vectors(typing_context):
    """Loops of the function that calls this are for vectors of 64 bytes, where a machine has them.

    LLVM prefers 32 bytes even there, for the sake of machines that slow down; long formulas gain more than that costs.
    """

    def codegen(context, builder, signature, args):
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')  # a name that llvmlite does not know
        return context.get_dummy_value()

    return types.void(), codegen
