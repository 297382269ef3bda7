"""The sharded machine on GPUs: every shard grows the whole tree from its rows and what all of them add up.

The driver decides nothing: it tells all shards the same verbs, a round in one message, and fetches the trees of the
first one. Between histograms and splits stands a sum over the GPUs (``cuda.shares``), by NCCL where every shard has it
and a GPU of its own, else through the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, cast

import numpy as np

from gpuboost.backends.cpu import Cpu
from gpuboost.backends.cuda.frontier import STATIC_LEVELS
from gpuboost.backends.leaf_values import weight_scale
from gpuboost.backends.sharded.arrays import Distributed, Driver, is_distributed
from gpuboost.backends.sharded.backend import MOST_ROWS
from gpuboost.backends.sharded.crew import Crew, Message
from gpuboost.backends.sharded.gpu_shard import Totals
from gpuboost.backends.sharded.shard import Source
from gpuboost.errors import DeviceError, InputError
from gpuboost.kernels import pointwise
from gpuboost.losses.protocol import Loss
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    DenseBins,
    Ensemble,
    Gradients,
    Limits,
    Noise,
    Sample,
    Structure,
    Target,
    TrainingSet,
    Tree,
)

UNIT = 4096  # rows: a shard begins where a stretch of the fixed order of summation does
ACCEPTED = (
    "With device='cuda', shards of DataParallel grow trees of every growth from all rows (losses of single rows, "
    "weights, categories, drawn features, eval sets, checkpoints)"
)


@dataclass(slots=True)
class Orders(Driver):
    """The same for all shards; those of a round go out together when it ends, or somebody waits for an answer."""

    queue: list[Message] = field(default_factory=list)
    is_open: bool = False

    def ask(self, method: str, *args: Any) -> list[Any]:
        self.queue.append(self._message(method, args, ()))
        messages, self.queue = tuple(self.queue), []
        return self.crew.ask([Message("run", (messages,))] * self.crew.size)

    def tell(self, method: str, *args: Any) -> None:
        self._add(self._message(method, args, ()))

    def keep(self, arrays: int, method: str, *args: Any) -> tuple[int, ...]:
        numbers = self._new(arrays)
        self._add(self._message(method, args, numbers))
        return numbers

    def send(self) -> None:
        """What was put off."""
        messages, self.queue = tuple(self.queue), []
        if messages:
            self.crew.tell([Message("run", (messages,))] * self.crew.size)

    def _add(self, message: Message) -> None:
        self.queue.append(message)
        if not self.is_open:
            self.send()


@dataclass(frozen=True, slots=True, eq=False)
class _Structure:
    held: Distributed
    output: int
    version: int


@dataclass(slots=True, eq=False)
class _Tree:
    """Stands for a Tree, in the loop and in ``Progress.trees``."""

    held: Distributed | None
    output: int
    version: int
    host: Tree | None = None

    @property
    def fetched(self) -> Tree:
        """What it stands for, when it has been fetched."""
        assert self.host is not None
        return self.host


@dataclass(slots=True, eq=False)
class _Growing:
    held: Distributed
    output: int
    max_depth: int
    level: int = 0


class ShardedGpus:
    """See ``Backend``. Training rows lie with the crew's shards (``place``); other rows are the driver's, on its CPU.

    ``by``: how the GPUs add up: "nccl", "host" or "alone"; ``why``: the reason, for the report.
    """

    name = "sharded"
    whole = True  # shards begin where stretches do

    def __init__(self, crew: Crew, threads: int = 1) -> None:
        self._local, self._driver = Cpu(threads), Orders(crew)
        self._losses: list[tuple[Loss, Distributed]] = []
        self._sizes: tuple[int, ...] = ()
        self.by, self.why = _way(self._driver.ask("offer"))

    @property
    def shards(self) -> int:
        return self._driver.crew.size

    # the data, once

    def place(
        self, sources: Sequence[Source], cuts: Cuts, y: Array, weight: Array | None, multiplicity: Array | None,
        query_start: Array | None, sizes: Sequence[int],
    ) -> TrainingSet:  # fmt: skip
        """See ``Sharded.place``. All sizes but the last are multiples of ``UNIT``."""
        if len(y) > MOST_ROWS:
            raise InputError(f"X: rows are numbered by 32 bits, so {MOST_ROWS:,} are the most; got {len(y):,}.")
        if any(size % UNIT for size in sizes[:-1]):
            raise ValueError(f"sizes: all but the last must be multiples of {UNIT}; got {tuple(sizes)}.")
        driver, self._sizes = self._driver, tuple(sizes)
        driver.crew.narrow(len(sources))
        self.by = "alone" if self.shards == 1 else self.by
        name = driver.ask("unique_id")[0] if self.by == "nccl" else None
        meeting = driver.crew.meeting() if self.by == "host" else None
        driver.ask_each("join", [(self.shards, rank, name, meeting) for rank in range(self.shards)])
        total = len(y) if multiplicity is None else int(multiplicity.sum(dtype=np.int64))
        most = 1 if multiplicity is None else int(multiplicity.max(initial=1))
        totals = Totals(len(y), total, most, 1.0 if weight is None else weight_scale(weight))
        firsts = np.cumsum([0, *sizes])[:-1].tolist()
        driver.ask_each("hold", [(source, cuts, a, totals) for source, a in zip(sources, firsts, strict=True)])
        bins = self._array(driver.keep(1, "receive", 0)[0], (len(y), cuts.n_features))
        return TrainingSet(DenseBins(bins, bins), cuts, y, weight, multiplicity, query_start)

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        return self._local.quantise(x, cuts)

    # the round

    @contextmanager
    def recorded(self, step: int) -> Iterator[None]:
        driver = self._driver
        driver.is_open = True
        driver.tell("open_round", step)
        try:
            yield
        except BaseException:
            driver.queue.clear()
            raise
        finally:
            driver.is_open = False
        driver.tell("close_round")

    def collect(self, ensemble: Ensemble) -> Ensemble:
        trees: tuple[Any, ...] = ensemble.trees
        waiting = [tree for tree in trees if isinstance(tree, _Tree) and tree.host is None]
        self._fetch(waiting)
        return replace(ensemble, trees=tuple(tree.fetched if isinstance(tree, _Tree) else tree for tree in trees))

    def to_host(self, found: Array) -> Array:
        if not isinstance(found, Distributed):
            return found
        return np.concatenate(self._driver.ask("fetch", found), axis=-1)

    # the target, once a round

    def start(self, data: TrainingSet, bias: Array) -> Array:
        if not is_distributed(data):
            return self._local.start(data, bias)
        (number,) = self._driver.keep(1, "begin", np.asarray(bias, np.float64))
        return self._array(number, (len(bias), data.n_rows))

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        (number,) = self._driver.keep(1, "differentiate", self._held(loss), scores, curvature)
        both = self._array(number, scores.shape)
        return Gradients(both, both)

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        return gradients if sample.rows is None else self._refuse("sampling")

    # the tree

    def plant(self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits) -> _Growing:
        (number,) = self._driver.keep(1, "plant", target.gradients.g, target.version, output, candidates, limits)
        return _Growing(self._array(number, ()), output, limits.max_depth)

    def histograms(self, frontier: _Growing) -> None:
        self._driver.tell("histograms", frontier.held)

    def best_splits(self, frontier: _Growing) -> None:
        self._driver.tell("best_splits", frontier.held)

    def partition(self, frontier: _Growing, most: int | None = None) -> bool:
        """The first levels are split without asking whether they have nodes; see ``cuda.frontier``."""
        frontier.level += 1
        if most is None and frontier.level >= STATIC_LEVELS and frontier.level != frontier.max_depth:
            return bool(self._driver.ask("partition", frontier.held, most)[0])
        self._driver.tell("partition", frontier.held, most)
        return most is None

    def harvest(self, frontier: _Growing, data: TrainingSet, target: Target) -> Structure:
        (number,) = self._driver.keep(1, "harvest", frontier.held, target.gradients.g, target.version)
        return cast(Structure, _Structure(self._array(number, ()), frontier.output, target.version))

    def leaf_values(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, limits: Limits, version: int,
        noise: Noise | None = None,
    ) -> tuple[Tree, Array]:  # fmt: skip
        if noise is not None:
            self._refuse("langevin")
        grown = cast(_Structure, structure)
        tree, leaf_of_row = self._driver.keep(2, "leaf_values", grown.held, gradients.g, limits, version)
        made = _Tree(self._array(tree, ()), grown.output, grown.version)
        return cast(Tree, made), self._array(leaf_of_row, (data.n_rows,))

    def leaf_quantiles(self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet) -> Tree:
        self._driver.tell("leaf_quantiles", cast(Any, tree).held, leaf_of_row, self._held(loss), scores)
        return tree

    def bound_leaves(
        self, tree: Tree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> Tree:
        self._driver.tell("bound_leaves", cast(Any, tree).held, leaf_of_row, limits, refined)
        return tree

    # the model

    def add_leaves(self, scores: Array, tree: Tree, factor: float, leaf_of_row: Array) -> None:
        self._driver.tell("add_leaves", scores, cast(Any, tree).held, factor, leaf_of_row)

    def add_tree(self, scores: Array, tree: Tree, factor: float, bins: Bins, cuts: Cuts) -> None:
        if isinstance(scores, Distributed):
            given: Any = tree
            known = given.host or given.held if isinstance(given, _Tree) else given
            self._driver.tell("add_tree", scores, known, factor)
            return
        seen: Any = tree
        if isinstance(seen, _Tree):
            self._fetch([seen])
            seen = seen.fetched
        self._local.add_tree(scores, seen, factor, bins, cuts)

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        if isinstance(sums, Distributed):
            self._driver.tell("show", sums, bias, scale, out)
        else:
            self._local.scores(sums, bias, scale, out)

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        if not isinstance(scores, Distributed):
            return self._local.loss_value(loss, scores, y, weight)
        total = float(self._driver.ask("loss_total", self._held(loss), scores, weight is not None)[0])
        return total / (len(y) if weight is None else float(pointwise.sum_in_order(weight)))

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        return self._local.predict(self.collect(ensemble), x)

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        return self._local.staged_predict(self.collect(ensemble), x)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        return self._local.leaves(self.collect(ensemble), x)

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        return self._local.contributions(self.collect(ensemble), x)

    # what these shards do not do; the recipe is refused before they start

    def sample(self, *given: Any) -> NoReturn:
        self._refuse("sampling")

    def draw(self, *given: Any) -> NoReturn:
        self._refuse("sampling")

    def losses(self, *given: Any) -> NoReturn:
        self._refuse("sampling")

    def keep(self, *given: Any) -> NoReturn:
        self._refuse("sampling")

    def node_control(self, *given: Any) -> NoReturn:
        self._refuse("sampling")

    def leaf_control(self, *given: Any) -> NoReturn:
        self._refuse("sampling")

    def noise(self, *given: Any) -> NoReturn:
        self._refuse("langevin")

    def random_structure(self, *given: Any) -> NoReturn:
        self._refuse("langevin")

    def line_search(self, *given: Any) -> NoReturn:
        self._refuse("step")

    def smoothing(self) -> NoReturn:
        self._refuse("base_learner")

    # parts of the above

    def _refuse(self, argument: str) -> NoReturn:
        raise DeviceError(f"{argument}: {ACCEPTED}, and nothing else. Use device='cpu', or execution=None.")

    def _array(self, number: int, shape: tuple[int, ...]) -> Distributed:
        return self._driver.array(number, shape, self._sizes)

    def _fetch(self, trees: Sequence[_Tree]) -> None:
        """Bring these to the host, for good. Raises InputError if a gradient of one was not a finite number."""
        waiting = [tree for tree in trees if tree.host is None]
        if not waiting:
            return
        found = self._driver.ask("trees", tuple(tree.held for tree in waiting))[0]
        for tree, host in zip(waiting, found, strict=True):
            tree.host, tree.held = host, None

    def _held(self, loss: Loss) -> Distributed:
        """The loss, sent to the shards once."""
        for known, held in self._losses:
            if known is loss:
                return held
        (number,) = self._driver.keep(1, "receive", loss)
        self._losses.append((loss, self._array(number, ())))
        return self._losses[-1][1]


def _way(offers: Sequence[Any]) -> tuple[str, str]:
    """How shards that offer this add up, and why."""
    if len(offers) == 1:
        return "alone", "one shard has all the rows"
    without = sum(not one.nccl for one in offers)
    if without:
        return "host", (
            f"CuPy of {without} of {len(offers)} shards has no NCCL (pip install nvidia-nccl-cu13, or -cu12), so what "
            "they add up goes through the memory of the host, which takes longer"
        )
    if len({one.gpu for one in offers}) < len(offers):
        return "host", "some share a GPU, which NCCL does not do, so what they add up goes through the host's memory"
    return "nccl", "what they add up goes by NCCL"
