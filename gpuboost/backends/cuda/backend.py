"""The CUDA backend: the verbs of ``Backend`` on one GPU, with the bits of ``Reference``.

Each verb passes its arguments to the module of this folder that does the work: ``target``, ``ranking``, ``importance``
and ``control`` before a tree, ``grower`` and ``random_shape`` for its shape, ``leaves`` and ``line_search`` after it,
``predict`` and ``components``. Most of these are recorded: a training's round is launched verb by verb at first and
later replayed as one graph (``device.round``).

Arrays stay on the device. The loop passes handles of them from verb to verb: ``DeviceGradients``, ``DeviceSample``,
``DeviceStructure``, ``LeafOfRow``, ``DeviceTree``. A handle is valid until its verb's next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, cast

import numpy as np

from gpuboost.backends.capabilities import Capabilities
from gpuboost.backends.cuda.arena import Arena
from gpuboost.backends.cuda.bins import Binner, DeviceBins
from gpuboost.backends.cuda.components import CudaSmoothing
from gpuboost.backends.cuda.control import Control
from gpuboost.backends.cuda.device.inputs import RoundKey, RoundNoise
from gpuboost.backends.cuda.device.recorder import Recorder
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.ending import Ending
from gpuboost.backends.cuda.grower import RowsToGrow, TreeOnDevice
from gpuboost.backends.cuda.importance import Importance
from gpuboost.backends.cuda.leaves import DeviceStructure, Grown, LeafOfRow, Leaves
from gpuboost.backends.cuda.line_search import LineSearch
from gpuboost.backends.cuda.plan import ArenaPlan
from gpuboost.backends.cuda.predict import CudaPredictor
from gpuboost.backends.cuda.random_shape import RandomShapes
from gpuboost.backends.cuda.ranking import RankingGradients
from gpuboost.backends.cuda.resident import Copies, Resident
from gpuboost.backends.cuda.shares import Share, Shares
from gpuboost.backends.cuda.store import PLACES, DeviceTree, TreeStore, collected
from gpuboost.backends.cuda.streams import CudaSlot, Side
from gpuboost.backends.cuda.subsets import Subsets
from gpuboost.backends.cuda.target import DeviceGradients, DeviceSample, Targets
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.prediction import additive
from gpuboost.backends.prediction.contributions import Explainer, contributions
from gpuboost.backends.prediction.raw_values import rows_of
from gpuboost.backends.smoothing import Smoothing
from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    Ensemble,
    Gradients,
    Limits,
    Noise,
    RowScore,
    Sample,
    Structure,
    Target,
    TrainingSet,
    Tree,
)


class Cuda:
    """One GPU, or a test's replacement. With a ``share``, one of several GPUs that train together.

    ``threads``: threads of the host, for the equations of components. ``copies``: existing device copies of host
    arrays, for one of several streams of a device.
    """

    offers = Capabilities(worker_streams=True)

    def __init__(
        self, runtime: Runtime, share: Share | None = None, threads: int = 1, copies: Copies | None = None
    ) -> None:
        self._runtime, self._share = Recorder(runtime), share
        shares = None if share is None else Shares(self._runtime, share)
        self.name = runtime.name
        self._rounds = RecordedRound(self._runtime)
        self._binner = Binner(self._runtime)
        self._resident = Resident(self._runtime, self._binner, copies)
        self._targets = Targets(self._runtime, self._resident, self._rounds, shares)
        self._lists = RankingGradients(self._runtime, self._resident, self._rounds, self._targets)
        self._shapes = RandomShapes(self._runtime, self._resident, self._rounds)
        self._subsets = Subsets(self._runtime, self._rounds)
        self._control = Control(self._runtime, self._resident, self._rounds, self._targets)
        self._importance = Importance(self._runtime, self._resident, self._rounds)
        self._leaves = Leaves(self._runtime, self._resident, self._rounds, self._shapes, shares)
        self._line_search = LineSearch(self._runtime, self._resident, self._rounds, self._leaves)
        self._predictor = CudaPredictor(self._runtime, self._binner)
        self._smoothing = CudaSmoothing(
            self._runtime, self._resident, self._rounds, self._targets.given, ThreadPool(threads)
        )
        self._last_additive: tuple[Ensemble, additive.Additive] | None = None

    # the data, once

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        bins = self._binner.quantise(x, cuts)
        self._runtime.wait()  # a Dataset may hand them to another thread, which has a stream of its own
        return cast(Bins, bins)

    # the round

    def recorded(self, step: int) -> AbstractContextManager[None]:
        return self._rounds.enclosed()

    def collect(self, ensemble: Ensemble) -> Ensemble:
        return collected(ensemble)

    def to_host(self, found: Array) -> Array:
        array = found.leaf_of_row if isinstance(found, LeafOfRow) else found
        return array if isinstance(array, np.ndarray) else self._runtime.download(array)

    # workers beside it

    def slots(self) -> Callable[[], CudaSlot]:
        """A function that makes a slot for one more worker of a training (``backends.workers``)."""
        server, numbers = self._side(), count()
        return lambda: CudaSlot(server, Cuda(self._runtime.beside(), copies=self._resident.copies)._side(), numbers)

    # the target, once a round

    def start(self, data: TrainingSet, bias: Array) -> Array:
        return self._predictor.start(self._runtime.upload(np.asarray(bias, np.float64)), data.n_rows)

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        if is_list_loss(loss):
            return self._lists.gradients(loss, scores, data, curvature)
        return self._targets.gradients(loss, scores, data, curvature)

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        return self._targets.sample(probability, n_rows, key)

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        if sample.rows is None:
            return gradients
        return self._targets.weigh(self._targets.given(gradients), cast(DeviceSample, sample))

    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        return self._targets.losses(loss, scores, data)

    def draw(
        self, gradients: Gradients, kappa: float, rule: ProbabilityRule, key: Key,
        losses: Array | RowScore | None = None,
    ) -> Sample:  # fmt: skip
        return self._importance.draw(self._targets.given(gradients), kappa, rule, key, losses)

    def score_rows(
        self, gradients: Gradients, kappa: float, losses: Array | None = None, factor: Array | None = None
    ) -> Array:
        return self._importance.score_rows(self._targets.given(gradients), kappa, losses, factor)

    def keep(self, gradients: Gradients, rounds: int) -> Gradients:
        return self._control.keep(self._targets.given(gradients), rounds)

    def node_control(self, gradients: Gradients, sample: Sample, before: Gradients, eta: float) -> Gradients:
        return self._control.node(self._targets.given(gradients), sample, self._targets.given(before), eta)

    def horvitz_thompson(self, gradients: Gradients, sample: Sample) -> Gradients:
        if sample.rows is None:
            return gradients
        return self._control.node(self._targets.given(gradients), sample, None, 1.0)

    def leaf_control(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float, leaves: tuple[Array, ...],
        sizes: tuple[int, ...],
    ) -> Gradients:  # fmt: skip
        now, old = self._targets.given(gradients), self._targets.given(before)
        found = tuple(self._leaf_array(leaf_of_row) for leaf_of_row in leaves)
        return self._control.leaf(now, sample, old, eta, found, max(sizes))

    def noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> Gradients:
        return self._targets.noise(self._targets.given(gradients), noise)

    # the tree

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        if key is not None:
            return self._drawn(data, target, output, candidates, limits, key / output)
        gradients = self._targets.given(target.gradients)
        k, room = gradients.g.shape
        features, noise = candidates.features, self._targets.strength(candidates.lots(output))
        by_node = self._subsets.drawn(candidates.by_node)
        root = candidates.root if by_node is None else None
        shape = "arena", id(data.cuts), room, k, limits, len(features), root is None, by_node is None
        own_sums = not target.noisy and (target.own_leaves or gradients.sample is None)

        def make() -> Arena:
            plan = ArenaPlan.of(room, data.cuts, limits, self._runtime.sm_count, len(features), all_rows=self._all_rows)
            kinds = {"restricted": root is not None, "by_node": by_node is not None}
            return Arena(self._runtime, plan, data.cuts, k, **kinds, share=self._share)

        arena = self._rounds.buffer(shape, make)
        arena.compete(features, root)
        grown = self._grow(data, gradients, output, arena, len(features), own_sums, noise, by_node)
        return cast(Structure, DeviceStructure(grown, target.version))

    def leaf_values(
        self,
        structure: Structure,
        gradients: Gradients,
        data: TrainingSet,
        limits: Limits,
        version: int,
        noise: Noise | None = None,
    ) -> tuple[Tree, Array]:
        handle, now = cast("DeviceStructure | Structure", structure), self._targets.given(gradients)
        grown = handle.grown if isinstance(handle, DeviceStructure) else self._leaves.upload(handle, now)
        tree = self._store(grown, now).add(grown.output, structure.version)
        stale = structure.version != version
        return tree.as_tree(), self._leaves.values(grown, now, data, limits, stale, tree, noise)

    def leaf_quantiles(self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet) -> Tree:
        found, alpha = cast(LeafOfRow, leaf_of_row), loss.leaf_quantile
        assert alpha is not None
        self._leaves.quantiles(found, alpha, scores, data, cast(DeviceTree, tree).store)
        return tree

    def line_search(
        self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool
    ) -> Tree:
        if per_leaf and loss.leaf_quantile is not None:
            return self.leaf_quantiles(tree, leaf_of_row, loss, scores, data)
        found, store = cast(LeafOfRow, leaf_of_row), cast(DeviceTree, tree).store
        self._line_search.along(found, loss, scores, data, per_leaf, store)
        return tree

    def length_along(self, loss: Loss, scores: Array, output: int, along: Array, data: TrainingSet) -> float:
        return self._line_search.length(loss, scores, output, np.asarray(along, np.float64), data)

    def bound_leaves(
        self, tree: Tree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> Tree:
        found, store = cast(LeafOfRow, leaf_of_row), cast(DeviceTree, tree).store
        self._leaves.bound(found, data.cuts, limits, refined, store)
        return tree

    # the model

    def add_leaves(self, scores: Array, tree: Tree, factor: float, leaf_of_row: Array) -> None:
        self._leaves.add(scores, cast(LeafOfRow, leaf_of_row), factor)

    def add_tree(self, scores: Array, tree: Tree, factor: float, bins: Bins, cuts: Cuts) -> None:
        self._leaves.add_tree(scores, tree, factor, self._resident.bins(bins), cuts)

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        on_device = self._rounds.buffer(("bias", id(bias)), lambda: self._runtime.upload(np.asarray(bias, np.float64)))
        self._leaves.shrink(sums, on_device, scale, out)

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        total = self.loss_total(loss, scores, y, weight)
        if weight is None:
            return total / len(y)
        return total / self._resident.total(weight)

    def loss_total(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        """The weighted sum of the loss; with a share, over the rows of all GPUs."""
        return self._targets.loss_total(loss, self._resident.array(scores, np.float64), y, weight)

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        if ensemble.components:
            if self._last_additive is None or self._last_additive[0] is not ensemble:
                self._last_additive = ensemble, additive.Additive.of(self, ensemble)
            return self._as_given(self._last_additive[1].predict(self, ensemble, x), x)
        return self._as_given(self._predictor.predict(collected(ensemble), x), x)

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        if ensemble.components:
            staged = additive.staged_predict(self, ensemble, x, self._copied)
        else:
            staged = self._predictor.staged_predict(collected(ensemble), x)
        for scores in staged:
            yield self._as_given(scores, x)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        return self._as_given(self._predictor.leaves(collected(ensemble), x), x)

    def smoothing(self) -> Smoothing:
        """The verbs for components that are functions of bins. Lines in leaves are not supported."""
        return self._smoothing

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        """See ``Predictor.contributions``. Computed on the host, by the CPU's kernels."""
        adopted, explainer = self._runtime.adopt(x), Explainer.of(collected(ensemble))
        host = x if adopted is None else self._runtime.download(adopted)
        out = np.empty((host.shape[0], ensemble.n_outputs, ensemble.cuts.n_columns + 1))
        contributions(explainer, rows_of(host), 0, len(out), out)
        return out if adopted is None else self._runtime.upload(out)

    # parts of the above

    def _drawn(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits, stream: Key
    ) -> Structure:
        """Draw a tree of random shape."""
        gradients, features = self._targets.given(target.gradients), self._shapes.features(data.cuts, candidates)
        grown = self._random_shape(gradients, features, data.cuts, limits, output, self._shapes.key(stream))
        return cast(Structure, DeviceStructure(grown, target.version))

    @recorded_verb()
    def _random_shape(
        self, gradients: DeviceGradients, features: Array, cuts: Cuts, limits: Limits, output: int, key: RoundKey
    ) -> Grown:
        room = self._shapes.room(cuts, limits, output)
        self._shapes.draw(room, features, cuts, limits, key)
        return Grown(room.nodes, room.state, gradients, None, output, False, blind=True)

    @recorded_verb()
    def _grow(
        self, data: TrainingSet, gradients: DeviceGradients, output: int, arena: Arena, n_candidates: int,
        own_sums: bool, noise: RoundNoise | None, by_node: tuple[int, RoundKey] | None,
    ) -> Grown:  # fmt: skip
        """A tree of the candidates that are in the arena, of which there are so many."""
        rows = self._rows_to_grow(data, gradients, output)
        lots, chosen = self._targets.lots(noise), self._subsets.draw(by_node, arena.plan.most_nodes, n_candidates)
        drawn = gradients.sample is not None
        wait = own_sums and not drawn and self._rounds.is_open and gradients.g.shape[0] == 1  # outputs share an arena
        wait = wait and self._share is None  # rows are counted everywhere before a tree ends
        grower = TreeOnDevice(arena, rows, output, lots, chosen)
        grower.grow(wait)
        if grower.waits:
            self._rounds.postpone(Ending(grower))
        leaf_of_row = None if drawn else grower.leaf_of_row
        return Grown(grower.nodes, grower.state, gradients, leaf_of_row, output, own_sums)

    def _side(self) -> Side:
        return Side(self, self._runtime, self._rounds)

    @property
    def _all_rows(self) -> int | None:
        return None if self._share is None else self._share.rows

    def _leaf_array(self, leaf_of_row: Array) -> Array:
        """The device array of a handle, or of an array that a test passes."""
        if isinstance(leaf_of_row, LeafOfRow):
            return leaf_of_row.leaf_of_row
        return self._resident.array(leaf_of_row, np.int32)

    def _rows_to_grow(self, data: TrainingSet, gradients: DeviceGradients, output: int) -> RowsToGrow:
        bins: DeviceBins = self._resident.bins(data.bins)
        if gradients.sample is not None:
            bins = self._targets.gather(bins, gradients.sample, again=output == 0)
        state = gradients.states[output : output + 1]
        return RowsToGrow(
            bins, gradients.g[output], gradients.h[output], gradients.multiplicity, state, gradients.sample is not None
        )

    def _store(self, grown: Grown, gradients: DeviceGradients) -> TreeStore:
        k, capacity = gradients.g.shape[0], grown.nodes.shape[0]
        places = PLACES if self._rounds.is_open else 1
        return self._rounds.buffer(("store", capacity, k), lambda: TreeStore(self._runtime, capacity, k, places))

    def _copied(self, scores: Array) -> Array:
        copy = self._runtime.empty(scores.shape, np.float64)
        self._runtime.copy(copy, scores)
        return copy

    def _as_given(self, found: Array, x: Any) -> Array:
        """The result on the device if x came from there, else on the host."""
        return found if self._runtime.adopt(x) is not None else self._runtime.download(found)
