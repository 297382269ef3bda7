"""Rounds that are the last one again, several in one call of a kernel, without the verbs: ``Repeater`` on a CPU.

On 1,000 rows, Python takes as long for a round as the kernels. So the verbs of a round are noted. If each was given
what the ones before it returned, and one thread grew the trees in memory that is kept for the next ones, then the
kernel ``repeated_rounds.repeat`` calls the same kernels in the same order, round after round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.compilation.background import BACKGROUND, repeated_kind
from gpuboost.backends.cpu.grower import OneCall
from gpuboost.backends.cpu.growth import KeptGrower
from gpuboost.backends.host.workspace import Workspaces
from gpuboost.backends.several_rounds import PAYS
from gpuboost.kernels.common import fixed_point
from gpuboost.kernels.common.by_address import address_of, is_compiled
from gpuboost.kernels.common.records import RepeatedTrees
from gpuboost.kernels.gradients import pointwise
from gpuboost.kernels.growth import finished, small_trees
from gpuboost.kernels.growth import repeated_rounds as kernel
from gpuboost.kernels.leaves.newton import newton
from gpuboost.types import FittedTree, Gradients, Limits, Nodes

PASSED = 15  # rounds that go through the loop after one that cannot be repeated, since to find out takes time
MOST_NODES = 8_192  # of the trees of one call, if all have the largest size; 100 bytes each are kept for them
MOST_WORK = 1 << 28  # bins to sum and cells to search in a call, a quarter of a second: then an interrupt is looked for


class RepeatedRounds:
    """The verbs of the newest round, in the context of which they are noted, and that round again.

    Nothing is kept beyond the begin of the next round, or ``forget``. Rounds are repeated once another process has
    compiled the kernel (``waits``); if that is False, it is compiled where it is needed.
    """

    waits: ClassVar[bool] = True

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces, self._verbs, self._open = workspaces, list[tuple[Any, ...]](), False
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

    def repeat(self, trees: tuple[FittedTree, ...], rounds: int, left: int) -> Sequence[tuple[FittedTree, ...]]:
        """See the verb."""
        if self._round is None:
            if self._passed:
                self._passed -= 1
                return ()
            self._round = self._prepared(trees, left)
            self._verbs.clear()
        if self._round is None:
            self._passed = PASSED
            return ()
        return self._round.repeat(trees, rounds)

    def _prepared(self, trees: tuple[FittedTree, ...], left: int) -> _Round | None:
        """The last round, if the kernel can repeat it and is there."""
        verbs = _parts(self._verbs, trees)
        if verbs is None:
            return None
        workspace = self._workspaces.take()
        self._workspaces.give_back(workspace)
        kept = workspace.kept
        if not (isinstance(kept, KeptGrower) and kept.serves(*verbs.of_growth)):
            return None
        call = kept.grower.in_one_call()
        if call is None or len(trees) * call.most > MOST_NODES:
            return None
        kind = repeated_kind(categorical=call.is_categorical, several=len(trees) > 1)
        is_ready = BACKGROUND.is_ready if left >= PAYS else BACKGROUND.is_there
        if self.waits and not is_ready(kind):
            return None
        made = _Round(call, kept.grower.packed, verbs)
        return made if made.is_known and not (self.waits and not made.is_compiled) else None


class _Verbs(NamedTuple):
    """The verbs that a round does again, as far as they differ from fit to fit."""

    gradients: Gradients  # the arrays are written to
    run: Any  # the loss's kernel, and its arguments
    of_run: tuple[Any, ...]
    of_growth: tuple[Any, ...]  # data, target, candidates and limits
    scores: NDArray[np.float64]
    factor: float

    @property
    def limits(self) -> Limits:
        limits: Limits = self.of_growth[3]
        return limits


def _parts(verbs: list[tuple[Any, ...]], trees: tuple[FittedTree, ...]) -> _Verbs | None:
    """The verbs of a round; None if one of them was given anything but what the ones before it returned."""
    k = len(trees)
    if [verb[0] for verb in verbs] != ["gradients", *["grow"] * k, *["leaf_values", "add_leaves"] * k]:
        return None
    _, gradients, scores, run, of_run = verbs[0]
    _, _, data, target, _, candidates, limits = verbs[1]
    factor = verbs[-1][-1]
    same = target.gradients is gradients
    for output, tree in enumerate(trees):
        _, structure, *of_growth = verbs[1 + output]
        _, fitted, *of_values = verbs[1 + k + 2 * output]
        _, _, *of_step = verbs[2 + k + 2 * output]
        same = same and structure.sums is not None and fitted is tree and of_step[2] == factor
        for argument, wanted in zip(of_growth, (data, target, output, candidates, limits), strict=True):
            same = same and argument is wanted
        for argument, wanted in zip(
            (*of_values, *of_step[:2]), (structure, gradients, limits, scores, tree), strict=True
        ):
            same = same and argument is wanted
    return _Verbs(gradients, run, of_run, (data, target, candidates, limits), scores, factor) if same else None


class _Round:
    """A round, as arguments of the kernel."""

    def __init__(self, call: OneCall, packed: NDArray[np.int64], verbs: _Verbs) -> None:
        gradients, scores, limits = verbs.gradients, verbs.scores, verbs.limits
        (k, n), max_nodes = scores.shape, call.most
        times = max(min(MOST_NODES // (max_nodes * k), MOST_WORK // max(call.work * k, 1)), 1)
        m = cpu_sums.multiplicity_of(gradients)
        of_packing = m, float(n if gradients.multiplicity is None else m.sum()), packed
        of_values = float(limits.reg_lambda), float(limits.reg_alpha), float(limits.largest_value)
        rule = np.array([call.least_rows, limits.min_child_weight, *of_values], np.float64)
        sums, leaves, sizes = np.empty((2, max_nodes)), np.empty((k, n), np.int32), np.empty(times * k, np.int64)
        self._call, self._k, self._times, self._sizes = call, k, times, sizes
        self._trees = trees = RepeatedTrees(*_room(times * k * max_nodes))
        addresses = [  # in the order of their places
            address_of(verbs.run, *verbs.of_run),
            address_of(fixed_point.scale_and_pack, gradients.g[0], gradients.h[0], *of_packing),
            address_of(small_trees.grow, *call.arguments),
            address_of(finished.finish, *call.of_finish(leaves[0], tuple(trees)[:-1], tuple(sums))),
            address_of(newton, trees.feature, *sums, *of_values, trees.value),
            address_of(pointwise.add_leaves, scores[0], sums[0], leaves[0], 0, n),
        ]
        self._arguments = (
            np.array([address or 0 for address in addresses], np.int64), verbs.of_run, gradients.g, gradients.h,
            of_packing, call.arguments, call.free_slots, rule, tuple(trees), sums, leaves, scores, float(verbs.factor),
            sizes,
        )  # fmt: skip
        self.is_known = None not in addresses  # the loop has called all of them with arguments of these types

    @property
    def is_compiled(self) -> bool:
        """True if the kernel need not be compiled for these arguments."""
        return bool(is_compiled(kernel.repeat, 1, *self._arguments))

    def repeat(self, trees: tuple[FittedTree, ...], rounds: int) -> list[tuple[FittedTree, ...]]:
        """The trees of up to so many rounds."""
        self._call.begin()
        done = kernel.repeat(min(rounds, self._times), *self._arguments)
        k, version, begin = self._k, trees[0].version + 1, 0
        sizes, every = self._sizes[: done * k].tolist(), list[FittedTree]()
        *fields, values = [array[: sum(sizes)].copy() for array in self._trees]
        for number, size in enumerate(sizes):
            part = slice(begin, begin + size)
            nodes = Nodes(*[field[part] for field in fields])
            every.append(FittedTree(nodes, values[part], number % k, version + number // k))
            begin += size
        return list(zip(*[iter(every)] * k, strict=True))


def _room(v: int) -> tuple[NDArray[Any], ...]:
    """Arrays of ``RepeatedTrees`` for v nodes."""
    kinds = np.int32, np.int32, np.bool_, np.int32, np.int32, np.float64, np.float64, np.int64
    return (*(np.empty(v, kind) for kind in kinds), np.empty((v, 8), np.uint32), np.empty(v))
