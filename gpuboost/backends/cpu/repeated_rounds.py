"""The last round repeated, several times in one call of a kernel, without its verbs: ``Repeater`` on a CPU.

On 1,000 rows, Python takes as long for a round as the kernels. So the verbs of a round are noted. If each was given
what the ones before it returned, and one thread grew the trees in memory that is kept for the next ones, then the
kernel ``repeated_rounds.repeat`` calls the same kernels in the same order, round after round.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.compilation.background import BACKGROUND, repeated_kind
from gpuboost.backends.cpu.grower import OneCall
from gpuboost.backends.cpu.growth import CpuGrowth
from gpuboost.backends.cpu.repeated_draws import Draws
from gpuboost.backends.cpu.repeated_noise import NoiseOfRounds
from gpuboost.backends.cpu.round_verbs import RoundVerbs
from gpuboost.backends.optional_verbs import Repeated, Shrinkage
from gpuboost.backends.several_rounds import PAYS
from gpuboost.kernels.common import fixed_point
from gpuboost.kernels.common.by_address import address_of, is_compiled
from gpuboost.kernels.common.records import RepeatedTrees
from gpuboost.kernels.gradients import pointwise
from gpuboost.kernels.growth import finished
from gpuboost.kernels.growth import repeated_rounds as kernel
from gpuboost.kernels.leaves.bounds import bound_leaves
from gpuboost.kernels.leaves.newton import along_paths, newton
from gpuboost.types import FittedTree, Gradients, Limits, Nodes

PASSED = 15  # rounds that go through the loop after one that cannot be repeated, since to find out takes time
MOST_NODES = 8_192  # of the trees of one call, if all have the largest size; 100 bytes each are kept for them
MOST_WORK = 1 << 28  # bins to sum and cells to search in a call, a quarter of a second: then an interrupt is looked for


class RepeatedRounds:
    """Recorder of the verbs of the newest round, as a context, and repetition of that round.

    Nothing is kept beyond the begin of the next round, or ``forget``. Rounds are repeated once another process has
    compiled the kernel (``waits``); if that is False, it is compiled where it is needed.
    """

    waits: ClassVar[bool] = True

    def __init__(self, growth: CpuGrowth) -> None:
        self._growth, self._verbs, self._open = growth, list[tuple[Any, ...]](), False
        self._round: _Round | None = None
        self._passed = 0  # rounds to go through the loop

    def __enter__(self) -> None:
        self.forget()
        self._open = True

    def __exit__(self, *error: object) -> None:
        self._open = False

    def forget(self) -> None:
        """Keep nothing of the last round."""
        self._verbs.clear()
        self._round = None

    def note(self, verb: str, result: Any, *given: Any) -> None:
        """Note a verb, what it returned and what it was given, if a round is open."""
        if self._open:
            self._verbs.append((verb, result, *given))

    def repeat(self, trees: tuple[FittedTree, ...], shrinkage: Shrinkage, rounds: int, left: int) -> Sequence[Repeated]:
        """See the verb."""
        if self._round is None:
            if self._passed:
                self._passed -= 1
                return ()
            self._round = self._prepared(trees, left)
            if self._round is None:
                self._passed = 0 if self._keeps_next_stumps(trees, left) else PASSED
            self._verbs.clear()
        return () if self._round is None else self._round.repeat(trees, shrinkage, rounds)

    def _prepared(self, trees: tuple[FittedTree, ...], left: int) -> _Round | None:
        """The last round, if the kernel can repeat it and is there."""
        verbs = RoundVerbs.of(self._verbs, trees)
        if verbs is None or verbs.may_warn:
            return None
        grower = self._growth.for_rounds(*verbs.of_growth)
        call = None if grower is None else grower.in_one_call()
        if grower is None or call is None or len(trees) * call.most > MOST_NODES or call.differs(len(trees)):
            return None
        kind = repeated_kind(
            categorical=call.is_categorical, several=len(trees) > 1, draws=verbs.draws, noise=verbs.is_noisy
        )
        if not self._has(kind, left):
            return None
        made = _Round(call, grower.packed, verbs)
        return made if made.is_known and not (self.waits and not made.is_compiled) else None

    def _keeps_next_stumps(self, trees: tuple[FittedTree, ...], left: int) -> bool:
        """True if the last round was of stumps, and the next one is grown so that the kernel can repeat it.

        By itself the kernel of small stumps is the faster one. If the round could not be repeated nevertheless, stumps
        go back to it.
        """
        growth, verbs = self._growth, RoundVerbs.of(self._verbs, trees)
        if growth.keeps_stumps:
            growth.keep_stumps(wanted=False)
        elif verbs is not None and not verbs.may_warn and growth.could_keep(*verbs.of_growth):
            kind = repeated_kind(categorical=False, several=len(trees) > 1, noise=verbs.is_noisy)
            growth.keep_stumps(wanted=self._has(kind, left))
        return growth.keeps_stumps

    def _has(self, kind: str, left: int) -> bool:
        """True if the kernel of this kind is there, or need not be. Where enough rounds are left, it is asked for."""
        has = BACKGROUND.request if left >= PAYS else BACKGROUND.is_there
        return not self.waits or has(kind)


class _Round:
    """A round, as arguments of the kernel."""

    def __init__(self, call: OneCall, packed: NDArray[np.int64], verbs: RoundVerbs) -> None:
        gradients, scores, limits = verbs.gradients, verbs.scores, verbs.limits
        self._version = verbs.version  # of the round that the verbs did
        (k, n), max_nodes = scores.shape, call.most
        times = max(min(MOST_NODES // (max_nodes * k), MOST_WORK // max(call.work * k, 1)), 1)
        m = cpu_sums.multiplicity_of(gradients)
        of_packing = m, float(n if gradients.multiplicity is None else m.sum()), packed
        of_values = float(limits.reg_lambda), float(limits.reg_alpha), float(limits.largest_value)
        rule = np.array([call.least_rows, limits.min_child_weight, *of_values, limits.path_smooth], np.float64)
        sums, leaves, sizes = np.empty((2, max_nodes)), np.empty((k, n), np.int32), np.empty(times * k, np.int64)
        self._call, self._k, self._times, self._sizes = call, k, times, sizes
        self._trees = trees = RepeatedTrees(*_room(times * k * max_nodes))
        data, target, candidates, _ = verbs.of_growth
        self._draws = self._noise = of_draws = of_noise = None
        if verbs.draws:
            room = times, times * k * max_nodes
            self._draws = Draws(data, candidates, gradients, verbs.draw, room)
            of_draws = self._draws.arguments(trees, gradients)
        if verbs.is_noisy:
            self._noise = NoiseOfRounds(*verbs.noise, k, n)
            of_noise = self._noise.arguments(trees, gradients, of_values[0])
        self._shrinkage = np.empty(len(Shrinkage._fields))
        bias, values = verbs.shrunk or (np.empty(k), np.empty((k, 0)))
        of_nodes, smooth = (trees.feature, trees.left, trees.right), limits.path_smooth > 0.0
        addresses = [  # in the order of their places
            address_of(verbs.run, *verbs.of_run),
            address_of(fixed_point.scale_and_pack, gradients.g[0], gradients.h[0], *of_packing),
            address_of(call.kernel, *call.arguments),
            address_of(finished.finish, *call.of_finish(leaves[0], tuple(trees)[:-1], tuple(sums))),
            0 if smooth else address_of(newton, trees.feature, *sums, *of_values, trees.value),
            address_of(pointwise.add_leaves, scores[0], sums[0], leaves[0], 0, n),
            _address_of_bounds(trees, limits, call),
            address_of(pointwise.shrunken, scores[0], values[0], 0.0, 0.0, 0, n) if verbs.shrunk else 0,
            *(_addresses_of_sums(gradients, m, leaves[0]) if not target.gives_leaf_sums else (0, 0)),
            address_of(along_paths, *of_nodes, *sums, *of_values, 0.0, trees.value) if smooth else 0,
        ]
        self._arguments = (
            np.array([address or 0 for address in addresses], np.int64), verbs.of_run, gradients.g, gradients.h,
            of_packing, call.arguments, call.free_slots, rule, tuple(trees), sums, leaves,
            (scores, values, bias, self._shrinkage), sizes, of_draws, of_noise,
        )  # fmt: skip
        # the loop has called all of them with arguments of these types
        self.is_known = None not in addresses and all(part is None or part.is_known for part in self._drawn)

    @property
    def is_compiled(self) -> bool:
        """True if the kernel need not be compiled for these arguments."""
        return bool(is_compiled(kernel.repeat, 1, *self._arguments))

    @property
    def _drawn(self) -> tuple[Draws | None, NoiseOfRounds | None]:
        return self._draws, self._noise

    def repeat(self, trees: tuple[FittedTree, ...], shrinkage: Shrinkage, rounds: int) -> list[Repeated]:
        """The trees of up to so many rounds."""
        k, version = self._k, trees[0].version + 1
        self._shrinkage[:] = shrinkage
        for part in (self._call, *self._drawn):
            if part is not None:
                part.begin(version - self._version)
        done = kernel.repeat(min(rounds, self._times), *self._arguments)
        ends = [0, *np.cumsum(self._sizes[: done * k]).tolist()]
        *fields, values = [array[: ends[-1]].copy() for array in self._trees]
        every, made = [slice(*bounds) for bounds in pairwise(ends)], list[Repeated]()
        for time in range(done):
            of_round = tuple(
                FittedTree(Nodes(*[field[nodes] for field in fields]), values[nodes], output, version + time)
                for output, nodes in enumerate(every[time * k : (time + 1) * k])
            )
            of_nodes = slice(ends[time * k], ends[(time + 1) * k])
            sizes = None if self._draws is None else self._draws.sizes(time, of_nodes)
            made.append(Repeated(of_round, sizes))
        return made


def _address_of_bounds(trees: RepeatedTrees, limits: Limits, call: OneCall) -> int | None:
    """Address of the kernel that holds leaf values to their order; 0 if they have none."""
    of_nodes = trees.feature, trees.left, trees.right, trees.cover
    address: int | None = 0
    if limits.directions is not None:
        address = address_of(bound_leaves, *of_nodes, call.directions, 0.0, True, trees.value)
    return address


def _addresses_of_sums(
    gradients: Gradients, multiplicity: NDArray[np.int32], leaf_of_row: NDArray[np.int32]
) -> tuple[int | None, int | None]:
    """Addresses of the kernels that sum the gradients of all rows by leaf."""
    g, h, sums = gradients.g[0], gradients.h[0], np.empty((0, 2), np.int64)
    scale = address_of(fixed_point.scale, g, multiplicity, 0.0, 0)
    return scale, address_of(fixed_point.leaf_sums, g, h, multiplicity, 0.0, 0.0, leaf_of_row, 0, len(g), sums)


def _room(v: int) -> tuple[NDArray[Any], ...]:
    """Arrays of ``RepeatedTrees`` for v nodes."""
    kinds = np.int32, np.int32, np.bool_, np.int32, np.int32, np.float64, np.float64, np.int64
    return (*(np.empty(v, kind) for kind in kinds), np.empty((v, 8), np.uint32), np.empty(v))
