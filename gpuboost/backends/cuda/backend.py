"""The CUDA backend: the verbs of ``Backend`` on one GPU, with the bits of ``Reference``.

Each verb passes its arguments to the module of this folder that does the work: ``target``, ``rankings``, ``importance``
and ``control_variates`` before a tree, ``trees.grower``, ``outputs.one_tree`` and ``random_shape`` for its shape,
``leaves`` and ``line_search`` after it, ``prediction``, ``score_metrics`` and ``components``. Most of these are
recorded: a training's round is launched verb by verb at first and later replayed as one graph (``device.round``).

Arrays stay on the device. The loop passes handles of them from verb to verb: ``DeviceGradients``, ``DeviceSample``,
``DeviceStructure``, ``LeafOfRow``, ``DeviceTree``. A handle is valid until its verb's next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.array_cache import ArrayCache, Copies
from gpuboost.backends.cuda.array_gradients import ArrayGradients
from gpuboost.backends.cuda.bins import Binner, DeviceBins
from gpuboost.backends.cuda.components import CudaSmoothing
from gpuboost.backends.cuda.control_variates import Control
from gpuboost.backends.cuda.device.inputs import KeyInput, RoundKey, RoundNoise
from gpuboost.backends.cuda.device.recorder import Recorder
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.importance import Importance
from gpuboost.backends.cuda.leaf_update import FusedLeafUpdate
from gpuboost.backends.cuda.leaves import DeviceStructure, Grown, LeafOfRow, Leaves
from gpuboost.backends.cuda.line_search import LineSearch
from gpuboost.backends.cuda.outputs.one_tree import OneTreeOnDevice
from gpuboost.backends.cuda.outputs.sketches import DeviceSketches
from gpuboost.backends.cuda.prediction.answers import CudaAnswers
from gpuboost.backends.cuda.prediction.contributions import CudaExplainer
from gpuboost.backends.cuda.prediction.predict import CudaPredictor
from gpuboost.backends.cuda.random_shape import RandomShapes
from gpuboost.backends.cuda.rankings.cross_entropy import CrossEntropyGradients
from gpuboost.backends.cuda.rankings.on_host import GradientsOfHost
from gpuboost.backends.cuda.rankings.ranking import RankingGradients
from gpuboost.backends.cuda.rankings.smoothed_ranking import SmoothedRankingGradients
from gpuboost.backends.cuda.recorded_values import RecordedValues
from gpuboost.backends.cuda.score_metrics import ScoreMetrics
from gpuboost.backends.cuda.streams import CudaSlot, Side
from gpuboost.backends.cuda.target import DeviceGradients, DeviceSample, Targets
from gpuboost.backends.cuda.trees.all_reduce import AllReduce, RowsOfGpu
from gpuboost.backends.cuda.trees.arena import OF_LEVELS, OF_NODES, OF_TREE, Arena
from gpuboost.backends.cuda.trees.grower import RowsToGrow, TreeOnDevice
from gpuboost.backends.cuda.trees.plan import ArenaPlan
from gpuboost.backends.cuda.trees.subsets import Chosen, Draw, Subsets
from gpuboost.backends.cuda.trees.tree_ring import SLOTS, DeviceTree, TreeRing, collected
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.optional_verbs import Repeated, Shrinkage
from gpuboost.backends.prediction import additive
from gpuboost.backends.protocol import Capabilities
from gpuboost.backends.smoothing import Smoothing
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import DrawnLoss, Loss, is_list_loss, is_on_host, is_smoothed, perturbs_labels
from gpuboost.scoring.answers import Answer
from gpuboost.scoring.device_metrics import ScoreMetric
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    Ensemble,
    FittedTree,
    Gradients,
    Limits,
    Noise,
    RowScore,
    Sample,
    Structure,
    Target,
    TrainingSet,
)


class Cuda:
    """One GPU, or a test's substitute for one. With a ``shard``, one of several GPUs that train together.

    ``threads``: threads of the host, for the equations of components. ``copies``: existing device copies of host
    arrays, for one of several streams of a device.
    """

    offers = Capabilities(
        metrics=True, recorded_metrics=True, repeated_rounds=True, counted_rounds=True, worker_streams=True
    )

    def __init__(
        self, runtime: Runtime, shard: RowsOfGpu | None = None, threads: int = 1, copies: Copies | None = None
    ) -> None:
        self._runtime, self._shard = Recorder(runtime), shard
        all_reduce = None if shard is None else AllReduce(self._runtime, shard)
        self.name = runtime.name
        self._rounds = RecordedRound(self._runtime)
        self._binner = Binner(self._runtime)
        self._arrays = ArrayCache(self._runtime, self._binner, copies)
        self._targets = Targets(self._runtime, self._arrays, self._rounds, all_reduce)
        self._lists = RankingGradients(self._runtime, self._arrays, self._rounds, self._targets)
        self._smoothed = SmoothedRankingGradients(self._runtime, self._arrays, self._rounds, self._targets)
        of_host = self._runtime, self._arrays, self._rounds, self._targets, ThreadPool(threads)
        self._of_host = GradientsOfHost(*of_host)
        self._perturbed = CrossEntropyGradients(self._runtime, self._arrays, self._rounds, self._targets)
        self._of_arrays = ArrayGradients(self._runtime, self._arrays, self._rounds, self._targets)
        self._shapes = RandomShapes(self._runtime, self._arrays, self._rounds)
        self._subsets, self._cuts = Subsets(self._runtime, self._rounds), KeyInput(self._rounds)
        self._control = Control(self._runtime, self._arrays, self._rounds, self._targets)
        self._importance = Importance(self._runtime, self._arrays, self._rounds)
        self._leaves = Leaves(self._runtime, self._arrays, self._rounds, self._shapes, all_reduce)
        of_targets = self._runtime, self._arrays, self._rounds, self._targets
        self._one_tree = OneTreeOnDevice(*of_targets, self._leaves, all_reduce)
        self._sketches = DeviceSketches(*of_targets, all_reduce)
        self._line_search = LineSearch(self._runtime, self._arrays, self._rounds, self._leaves)
        self._predictor = CudaPredictor(self._runtime, self._binner)
        self._answers = CudaAnswers(self._runtime)
        self._explainer = CudaExplainer(self._runtime, self._binner)
        self._metrics = ScoreMetrics(self._runtime, self._arrays, self._rounds)
        self._smoothing = CudaSmoothing(
            self._runtime, self._arrays, self._rounds, self._targets.given, ThreadPool(threads)
        )
        self._last_additive: tuple[Ensemble, additive.Additive] | None = None
        self._last_collected: tuple[Ensemble, Ensemble] | None = None

    # the data, once

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        bins = self._binner.quantise(x, cuts)
        self._runtime.wait()  # a Dataset may hand them to another thread, which has a stream of its own
        return cast(Bins, bins)

    # the round

    def recorded(self, step: int, sequence: int = 0) -> AbstractContextManager[None]:
        return self._rounds.enclosed(sequence)

    def repeat(self, trees: tuple[FittedTree, ...], shrinkage: Shrinkage, rounds: int, left: int) -> Sequence[Repeated]:
        handles = tuple(cast(DeviceTree, tree) for tree in trees)
        if not self._rounds.repeatable or not all(isinstance(tree, DeviceTree) for tree in handles):
            return ()
        repeated = self._leaves.repeat(handles, shrinkage, rounds, left)
        return [Repeated(tuple(tree.as_tree() for tree in made)) for made in repeated]

    def forget_rounds(self) -> None:
        self._rounds.forget()

    def collect(self, ensemble: Ensemble) -> Ensemble:
        return collected(ensemble)

    def to_host(self, result: Array) -> Array:
        array = result.leaf_of_row if isinstance(result, LeafOfRow) else result
        return array if isinstance(array, np.ndarray) else self._runtime.download(array)

    # workers beside it

    def slots(self) -> Callable[[], CudaSlot]:
        """A function that makes a slot for one more worker of a training (``backends.workers``)."""
        server, numbers = self._side(), count()
        return lambda: CudaSlot(server, Cuda(self._runtime.spawn(), copies=self._arrays.copies)._side(), numbers)

    # the target, once a round

    def start(self, data: TrainingSet, bias: Array) -> Array:
        begin = self._runtime.upload(np.ascontiguousarray(bias, np.float64))
        return begin if np.ndim(bias) == 2 else self._predictor.start(begin, data.n_rows)

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        if is_of_arrays(loss):
            return self._of_arrays.gradients(loss, scores, data, curvature).as_gradients()
        if is_on_host(loss):
            return self._of_host.gradients(loss, scores, data, curvature).as_gradients()
        if is_list_loss(loss):
            return self._lists.gradients(loss, scores, data, curvature).as_gradients()
        return self._targets.gradients(loss, scores, data, curvature).as_gradients()

    def drawn_gradients(
        self, loss: DrawnLoss, scores: Array, data: TrainingSet, curvature: float | None, key: Key
    ) -> Gradients:
        if is_smoothed(loss):
            return self._smoothed.gradients(loss, scores, data, curvature or 0.0, key).as_gradients()
        assert perturbs_labels(loss)
        return self._perturbed.gradients(loss, scores, data, curvature, key).as_gradients()

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        return self._targets.sample(probability, n_rows, key).as_sample()

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        if sample.rows is None:
            return gradients
        return self._targets.weigh(self._targets.given(gradients), cast(DeviceSample, sample)).as_gradients()

    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        return self._targets.losses(loss, scores, data)

    def draw(
        self, gradients: Gradients, kappa: float, rule: ProbabilityRule, key: Key,
        losses: Array | RowScore | None = None,
    ) -> Sample:  # fmt: skip
        return self._importance.draw(self._targets.given(gradients), kappa, rule, key, losses).as_sample()

    def score_rows(
        self, gradients: Gradients, kappa: float, losses: Array | None = None, factor: Array | None = None
    ) -> Array:
        return self._importance.score_rows(self._targets.given(gradients), kappa, losses, factor)

    def keep_gradients(self, gradients: Gradients, rounds: int) -> Gradients:
        return self._control.keep_gradients(self._targets.given(gradients), rounds).as_gradients()

    def node_control_variate(self, gradients: Gradients, sample: Sample, before: Gradients, eta: float) -> Gradients:
        now, old = self._targets.given(gradients), self._targets.given(before)
        return self._control.node(now, _drawn(sample), old, eta).as_gradients()

    def horvitz_thompson(self, gradients: Gradients, sample: Sample) -> Gradients:
        if sample.rows is None:
            return gradients
        return self._control.node(self._targets.given(gradients), _drawn(sample), None, 1.0).as_gradients()

    def leaf_control_variate(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float, leaves: tuple[Array, ...],
        sizes: tuple[int, ...],
    ) -> Gradients:  # fmt: skip
        now, old = self._targets.given(gradients), self._targets.given(before)
        leaf_arrays = tuple(self._leaf_array(leaf_of_row) for leaf_of_row in leaves)
        return self._control.leaf(now, _drawn(sample), old, eta, leaf_arrays, max(sizes)).as_gradients()

    def noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> Gradients:
        return self._targets.noise(self._targets.given(gradients), noise).as_gradients()

    # the tree

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        if key is not None:
            return self._drawn(data, target, output, candidates, limits, key / output)
        if limits.forced is not None:
            raise RecipeError("forced_splits: forced splits are made on the CPU. Use device='cpu'.")
        if limits.costs is not None:
            raise RecipeError("feature_costs: trees with feature costs are grown on the CPU. Use device='cpu'.")
        gradients = self._targets.given(target.gradients)
        k, room = gradients.g.shape
        features, noise = candidates.features, self._targets.strength(candidates.gain_noise(output))
        draw = self._subsets.drawn(candidates)
        root = candidates.root if candidates.by_node is None else None
        draws = OF_TREE if candidates.by_node is None else OF_LEVELS if candidates.by_level else OF_NODES
        by_host = candidates.by_tree is None
        shape = "arena", id(data.cuts), room, k, limits, len(features), root is None, draws, by_host
        own_sums = not target.noisy and (target.own_leaves or gradients.sample is None)

        def make() -> list[Arena]:
            plan = ArenaPlan.of(room, data.cuts, limits, self._runtime, len(features), all_rows=self._all_rows)
            restricted, count = root is not None, plan.arenas(k) if self._shard is None else 1
            more: dict[str, Any] = {"restricted": restricted, "draws": draws, "shard": self._shard}
            return [Arena(self._runtime, plan, data.cuts, -(-k // count), **more) for _ in range(count)]

        arenas = self._rounds.buffer(shape, make)
        place, lane = divmod(output, len(arenas))
        arena = arenas[lane]
        if by_host:
            arena.compete(features, root)
        arena.n_candidates = len(features)
        stream = candidates.random_cuts(output)
        cuts = None if stream is None else self._cuts.set(stream)
        node_features = self._subsets.uploaded(candidates, arena.plan, output)
        position, bins = (place, lane if len(arenas) > 1 else None), self._bins_to_grow(data, gradients, output)
        grown = self._grow(
            bins, gradients, output, arena, position, len(features), own_sums, noise, draw, cuts, node_features
        )
        return cast(Structure, DeviceStructure(grown, target.version))

    def grow_together(
        self, data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[Structure, ...]:
        on_device, own_sums = self._targets.given, target.own_leaves and not target.noisy
        gradients = on_device(target.gradients)
        by = gradients if searched is target.gradients else on_device(searched)
        every = self._one_tree.grow(data, gradients, by, candidates, limits, own_sums)
        return tuple(cast(Structure, DeviceStructure(grown, target.version)) for grown in every)

    def squared_norms(self, gradients: Gradients) -> NDArray[np.float64]:
        return self._sketches.squared_norms(self._targets.given(gradients))

    def chosen_outputs(self, gradients: Gradients, outputs: Array, factors: Array) -> Gradients:
        return self._sketches.chosen(self._targets.given(gradients), outputs, factors).as_gradients()

    def projected_outputs(self, gradients: Gradients, matrix: Array) -> Gradients:
        return self._sketches.projected(self._targets.given(gradients), matrix).as_gradients()

    def leaf_values(
        self,
        structure: Structure,
        gradients: Gradients,
        data: TrainingSet,
        limits: Limits,
        version: int,
        noise: Noise | None = None,
    ) -> tuple[FittedTree, Array]:
        handle, now = cast("DeviceStructure | Structure", structure), self._targets.given(gradients)
        grown = handle.grown if isinstance(handle, DeviceStructure) else self._leaves.upload(handle, now)
        tree = self._ring(grown, now).add(grown.output, structure.version, grown.shape)
        stale = structure.version != version
        return tree.as_tree(), self._leaves.values(grown, now, data, limits, stale, tree, noise)

    def leaf_quantiles(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        leaf, alpha = cast(LeafOfRow, leaf_of_row), loss.leaf_quantile
        assert alpha is not None
        self._leaves.quantiles(leaf, alpha, scores, data, cast(DeviceTree, tree).ring)
        return tree

    def line_search(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool
    ) -> FittedTree:
        if per_leaf and loss.leaf_quantile is not None:
            return self.leaf_quantiles(tree, leaf_of_row, loss, scores, data)
        leaf, ring = cast(LeafOfRow, leaf_of_row), cast(DeviceTree, tree).ring
        self._line_search.along(leaf, loss, scores, data, per_leaf, ring)
        return tree

    def length_along(self, loss: Loss, scores: Array, output: int, along: Array, data: TrainingSet) -> float:
        return self._line_search.length(loss, scores, output, np.asarray(along, np.float64), data)

    def bound_leaves(
        self, tree: FittedTree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> FittedTree:
        leaf, ring = cast(LeafOfRow, leaf_of_row), cast(DeviceTree, tree).ring
        self._leaves.bound(leaf, data.cuts, limits, refined, ring)
        return tree

    # the model

    def add_leaves(self, scores: Array, tree: FittedTree, factor: float, leaf_of_row: Array) -> None:
        self._leaves.add(scores, cast(LeafOfRow, leaf_of_row), factor)

    def add_tree(self, scores: Array, tree: FittedTree, factor: float, bins: Bins, cuts: Cuts) -> None:
        self._leaves.add_tree(scores, tree, factor, self._arrays.bins(bins), cuts)

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        on_device = self._rounds.buffer(("bias", id(bias)), lambda: self._runtime.upload(np.asarray(bias, np.float64)))
        self._leaves.shrink(sums, on_device, scale, out)

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        return self.mean_loss(loss, scores, y, weight)()

    def mean_loss(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> Callable[[], float]:
        if is_of_arrays(loss):
            value = self._of_arrays.mean_loss(loss, scores, y, weight)
            return lambda: value
        total = self._targets.loss_total(loss, self._arrays.array(scores, np.float64), y, weight)
        by = float(len(y)) if weight is None else self._arrays.total(weight)
        return lambda: total() / by

    def loss_total(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        """The weighted sum of the loss; of a shard, over the rows of all GPUs."""
        return self._targets.loss_total(loss, self._arrays.array(scores, np.float64), y, weight)()

    def score_metric(self, metric: ScoreMetric, scores: Array) -> Callable[[], float]:
        return self._metrics.begun(metric, self._arrays.array(scores, np.float64))

    def recorded_metric(self, metric: ScoreMetric, scores: Array) -> RecordedValues:
        return self._metrics.recorded(metric, self._arrays.array(scores, np.float64))

    def recorded_mean(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> RecordedValues:
        by = float(len(y)) if weight is None else self._weight_total(weight)
        return self._targets.recorded_mean(loss, self._arrays.array(scores, np.float64), y, weight, by)

    def answer(self, answer: Answer, scores: Array) -> Array:
        return self._answers(answer, scores)

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        if ensemble.components:
            if self._last_additive is None or self._last_additive[0] is not ensemble:
                self._last_additive = ensemble, additive.Additive.of(self, ensemble)
            return self._as_given(self._last_additive[1].predict(self, ensemble, x), x)
        return self._as_given(self._predictor.predict(self._collected(ensemble), x), x)

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        if ensemble.components:
            staged = additive.staged_predict(self, ensemble, x, self._copied)
        else:
            staged = self._predictor.staged_predict(self._collected(ensemble), x)
        for scores in staged:
            yield self._as_given(scores, x)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        return self._as_given(self._predictor.leaves(self._collected(ensemble), x), x)

    def smoothing(self) -> Smoothing:
        """The verbs for components that are functions of bins. Lines in leaves are not supported."""
        return self._smoothing

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        return self._explainer.contributions(self._collected(ensemble), x)

    def interactions(self, ensemble: Ensemble, x: Any) -> Array:
        return self._explainer.interactions(self._collected(ensemble), x)

    # parts of the above

    def _collected(self, ensemble: Ensemble) -> Ensemble:
        """``collected``, kept for the last ensemble, since predictions are often by the same one."""
        if self._last_collected is None or self._last_collected[0] is not ensemble:
            self._last_collected = ensemble, collected(ensemble)
        return self._last_collected[1]

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
        self, bins: DeviceBins, gradients: DeviceGradients, output: int, arena: Arena, position: tuple[int, int | None],
        n_candidates: int, own_sums: bool, noise: RoundNoise | None, draw: Draw | None, cuts: RoundKey | None,
        node_features: Chosen | None,
    ) -> Grown:  # fmt: skip
        """A tree of the first ``n_candidates`` candidates in the arena.

        Args:
            position: its place among the arena's trees, and the lane of the arena; None if others do not grow at once.
            node_features: features of its nodes drawn before.
        """
        place, lane = position
        if draw is None or draw[2] == OF_TREE:  # else nodes of all trees have their features in one place
            self._rounds.in_lane(lane)
        rows = self._rows_to_grow(bins, gradients, output)
        drawn_now = self._subsets.draw(draw, arena, n_candidates)
        chosen = drawn_now if node_features is None else node_features
        drawn = gradients.sample is not None
        wait = own_sums and not drawn and self._rounds.is_open and gradients.g.shape[0] == 1  # outputs share an arena
        wait = wait and self._shard is None  # rows are counted everywhere before a tree ends
        grower = TreeOnDevice(arena, rows, place, self._targets.gain_noise(noise), chosen, cuts)
        grower.grow(wait)
        if grower.waits:
            self._rounds.postpone(FusedLeafUpdate(grower))
        leaf_of_row = None if drawn else grower.leaf_of_row
        return Grown(grower.nodes, grower.state, gradients, leaf_of_row, output, own_sums, lane=lane)

    def _side(self) -> Side:
        return Side(self, self._runtime, self._rounds)

    @property
    def _all_rows(self) -> int | None:
        return None if self._shard is None else self._shard.rows

    def _leaf_array(self, leaf_of_row: Array) -> Array:
        """The device array of a handle, or of an array that a test passes."""
        if isinstance(leaf_of_row, LeafOfRow):
            return leaf_of_row.leaf_of_row
        return self._arrays.array(leaf_of_row, np.int32)

    def _bins_to_grow(self, data: TrainingSet, gradients: DeviceGradients, output: int) -> DeviceBins:
        """The bins of the rows that the gradients are of; those of drawn rows are gathered for output 0."""
        bins: DeviceBins = self._arrays.bins(data.bins)
        if gradients.sample is None:
            return bins
        if output and self._rounds.is_open:
            return self._targets.gathered(bins, gradients.sample)
        return self._gather(bins, gradients.sample)

    @recorded_verb()
    def _gather(self, bins: DeviceBins, sample: DeviceSample) -> DeviceBins:
        return self._targets.gather(bins, sample)

    def _rows_to_grow(self, bins: DeviceBins, gradients: DeviceGradients, output: int) -> RowsToGrow:
        state = gradients.states[output : output + 1]
        return RowsToGrow(
            bins, gradients.g[output], gradients.h[output], gradients.multiplicity, state, gradients.sample is not None
        )

    def _ring(self, grown: Grown, gradients: DeviceGradients) -> TreeRing:
        k, capacity = gradients.g.shape[0], grown.nodes.shape[0]
        slots = SLOTS if self._rounds.is_open else 1
        return self._rounds.buffer(("ring", capacity, k), lambda: TreeRing(self._runtime, capacity, k, slots))

    def _copied(self, scores: Array) -> Array:
        copy = self._runtime.empty(scores.shape, np.float64)
        self._runtime.copy(copy, scores)
        return copy

    def _weight_total(self, weight: Array) -> float:
        """The sum of weights, computed once in a training."""
        return self._rounds.buffer(("total", id(weight)), lambda: self._arrays.total(weight))

    def _as_given(self, result: Array, x: Any) -> Array:
        """The result on the device if x came from there, else on the host."""
        return result if self._runtime.as_device_array(x) is not None else self._runtime.download(result)


def _drawn(sample: Sample) -> DeviceSample | None:
    """The sample's handle; None if it is every row."""
    return None if sample.rows is None else cast(DeviceSample, sample)
