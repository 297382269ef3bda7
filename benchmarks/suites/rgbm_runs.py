"""One run of random-then-greedy boosting (RGBM), followed round by round, and the grid of runs that the paper makes.

The grid is that of the paper's program: t features (type 3) of all p, each t having more rounds the smaller it is, by
p^(1/4) a step, so that all runs read about as many values. Stumps of two values, 100 bins, the constant step
1 / sigma, logistic loss with a ridge of 1e-4, F_0 = 0. ``--scale 0.1`` takes a tenth of the rounds; more than
MOST_ROUNDS are never run (the paper's t = 1 on rcv1 has 941,936).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.backends import get
from gpuboost.benchmarks.harness.experiments import Options
from gpuboost.benchmarks.harness.store import Array, Data

RIDGE, BINS = 1e-4, 100
MOST_ROUNDS = 25_000
CHECKS = 240  # rounds at which losses are noted
TIMED = 3  # fits of which times are the median

GRIDS: dict[str, tuple[tuple[int, int], ...]] = {
    "a9a": ((123, 200), (36, 666), (24, 920), (11, 2217), (3, 7383), (1, 24587)),
    "colon": ((2000, 200), (299, 1337), (44, 8941), (6, 59792), (1, 399853)),
    "rcv1": ((47236, 20), (3204, 294), (217, 4334), (14, 63893), (1, 941936)),
    "year": ((90, 200), (29, 616), (9, 1897), (3, 5842), (1, 17993)),
}
"""(t, rounds). The largest t stands for all features."""


@dataclass(frozen=True)
class Curve:
    """One run at some of its rounds. Seconds are from the end of the first, by the wall and of this process's CPU."""

    t: int
    rounds: list[int]
    seconds: list[float]
    cpu: list[float]
    train: list[float]
    test: list[float]

    def first(self, loss: float) -> int | None:
        """The place of the first noted round whose training loss is no larger."""
        return next((i for i, here in enumerate(self.train) if here <= loss), None)

    def at(self, rounds: int) -> float:
        """The training loss after so many rounds, or the last one before."""
        return self.train[max(i for i, here in enumerate(self.rounds) if here <= rounds)]


class Notes:
    """A callback that notes the training loss of some rounds."""

    def __init__(self, wanted: Collection[int]) -> None:
        self._wanted = wanted
        self.train: list[float] = []

    def __call__(self, record: Any) -> bool:
        if record.round + 1 in self._wanted:
            self.train.append(record.training_loss())
        return False


class Stopwatch:
    """A callback that notes when some rounds were done, from the end of the first one on: binning lies before it."""

    def __init__(self, wanted: Collection[int]) -> None:
        self._wanted = wanted
        self._times: list[tuple[float, float]] = []

    def __call__(self, record: Any) -> bool:
        if record.round + 1 in self._wanted:
            self._times.append((time.perf_counter(), time.process_time()))
        return False

    @property
    def seconds(self) -> Array:
        """(2, rounds) by the wall and of this process."""
        times = np.array(self._times).T
        return times - times[:, :1]


def checks(rounds: int) -> list[int]:
    """The first round, the last one, and others evenly by their logarithm."""
    return sorted({round(x) for x in np.geomspace(1, rounds, min(CHECKS, rounds))})


def follow(
    data: Data, dataset: gb.Dataset, t: int, rounds: int, threads: int, seed: int, *, timed: int = TIMED
) -> Curve:
    """One run, for its losses, and ``timed`` more, for the median of their times: to look at a loss of all rows takes
    what a round needs out of the caches. Held-out losses are made afterwards, tree by tree."""
    loss = gb.losses.Logistic(RIDGE) if data.task == "binary" else gb.losses.SquaredError()
    kind = gb.GradientBoostingClassifier if data.task == "binary" else gb.GradientBoostingRegressor
    looked_at = checks(rounds)

    def fitted(watch: Notes | Stopwatch) -> Any:
        return kind(
            loss=loss, n_estimators=rounds, learning_rate=1.0, step="constant", max_depth=1, reg_lambda=0.0,
            min_child_weight=0.0, max_bins=BINS, start=0.0, random_state=seed,
            learners=None if t >= data.X.shape[1] else gb.RandomGroups(t),
            n_jobs=threads, device="cpu", callbacks=[watch],
        ).fit(dataset)  # fmt: skip

    notes, watches = Notes(set(looked_at)), [Stopwatch(set(looked_at)) for _ in range(timed)]
    model = fitted(notes)
    for watch in watches:
        fitted(watch)
    seconds, cpu = np.median([watch.seconds for watch in watches], axis=0).tolist()
    return Curve(t, looked_at, seconds, cpu, notes.train, held_out(model, data, looked_at))


def held_out(model: Any, data: Data, rounds: Sequence[int]) -> list[float]:
    machine, ensemble, out = get("cpu"), model.ensemble_, []
    bins = machine.quantise(data.X_test, ensemble.cuts)
    scores = np.repeat(ensemble.bias[:, None], len(data.y_test), axis=1)
    y, wanted = np.asarray(data.y_test, np.float64), set(rounds)
    for done, (tree, factor) in enumerate(zip(ensemble.trees, ensemble.factors, strict=True), 1):
        machine.add_tree(scores, tree, factor, bins, ensemble.cuts)
        if done in wanted:
            out.append(machine.loss_value(model.loss_, scores, y, None))
    return out


def grid(name: str, features: int, options: Options) -> list[tuple[int, int]]:
    """The paper's, cut to what this run may take, and to the features that are there."""
    scale = options.scale * (0.02 if options.small else 1.0)
    return [(min(t, features), max(2, min(int(n * scale), MOST_ROUNDS))) for t, n in GRIDS[name]]


def compared(options: Options, name: str, data: Data, seed: int, *, timed: int = TIMED) -> list[Curve]:
    dataset = gb.Dataset(data.X, data.y, max_bins=BINS, n_jobs=options.threads)
    curves = []
    for t, rounds in grid(name, data.X.shape[1], options):
        options.tell(f"{name}: t = {t}, {rounds:,} rounds, seed {seed}")
        curves.append(follow(data, dataset, t, rounds, options.threads, seed, timed=timed))
    return curves


def shuffled(x: Any, y: Array, seed: int) -> Data:
    """A random 80/20 split, as the paper's program makes it."""
    order = np.random.RandomState(seed).permutation(len(y))
    train, test = order[: len(y) * 4 // 5], order[len(y) * 4 // 5 :]
    return Data("binary", x[train], y[train], x[test], y[test])
