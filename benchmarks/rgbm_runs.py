"""One run of random-then-greedy boosting (RGBM), followed round by round, and the grid of runs that the paper makes.

The grid is that of the paper's program: t features (type 3) of all p, each t having more rounds the smaller it is, by
p^(1/4) a step, so that all runs read about as many values. Stumps of two values, 100 bins, the constant step
1 / sigma, logistic loss with a ridge of 1e-4. F starts at the best constant, the paper's at 0. ``--scale 0.1`` takes a
tenth of the rounds; more than MOST_ROUNDS are never run (the paper's t = 1 on rcv1 has 941,936).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.backends import get
from gpuboost.benchmarks.experiments import Options
from gpuboost.benchmarks.store import Array, Data

RIDGE, BINS = 1e-4, 100
MOST_ROUNDS = 25_000
CHECKS = 240  # rounds at which losses are noted

GRIDS: dict[str, tuple[tuple[int, int], ...]] = {
    "a9a": ((123, 200), (36, 666), (24, 920), (11, 2217), (3, 7383), (1, 24587)),
    "colon": ((2000, 200), (299, 1337), (44, 8941), (6, 59792), (1, 399853)),
    "rcv1": ((47236, 20), (3204, 294), (217, 4334), (14, 63893), (1, 941936)),
    "year": ((90, 200), (29, 616), (9, 1897), (3, 5842), (1, 17993)),
}
"""(t, rounds). The largest t stands for all features."""


@dataclass(frozen=True)
class Curve:
    """One run at some of its rounds. Seconds are of training alone, by the wall and of this process."""

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


class Stopwatch:
    """A callback that notes when each round was done, and the training loss of some, the time of which is taken off."""

    def __init__(self, checks: set[int]) -> None:
        self._checks, self._off, self._off_cpu = checks, 0.0, 0.0
        self.rounds: list[int] = []
        self.seconds: list[float] = []
        self.cpu: list[float] = []
        self.train: list[float] = []

    def start(self) -> Stopwatch:
        self._began, self._began_cpu = time.perf_counter(), time.process_time()
        return self

    def __call__(self, record: Any) -> bool:
        done = record.round + 1
        if done == 1:  # binning lies before the first round
            self.start()
        if done in self._checks:
            now, cpu = time.perf_counter(), time.process_time()
            self.rounds.append(done)
            self.seconds.append(now - self._began - self._off)
            self.cpu.append(cpu - self._began_cpu - self._off_cpu)
            self.train.append(record.training_loss())
            self._off += time.perf_counter() - now
            self._off_cpu += time.process_time() - cpu
        return False


def checks(rounds: int) -> list[int]:
    """The first round, the last one, and others evenly by their logarithm."""
    return sorted({round(x) for x in np.geomspace(1, rounds, min(CHECKS, rounds))})


def follow(data: Data, dataset: gb.Dataset, t: int, rounds: int, threads: int, seed: int) -> Curve:
    """One run: timed alone, and its held-out losses made afterwards, tree by tree."""
    loss = gb.losses.Logistic(RIDGE) if data.task == "binary" else gb.losses.SquaredError()
    kind = gb.GradientBoostingClassifier if data.task == "binary" else gb.GradientBoostingRegressor
    watch = Stopwatch(set(checks(rounds)))
    model = kind(
        loss=loss, n_estimators=rounds, learning_rate=1.0, step="constant", max_depth=1, reg_lambda=0.0,
        min_child_weight=0.0, max_bins=BINS, learners=None if t >= data.X.shape[1] else t, random_state=seed,
        n_jobs=threads, device="cpu", callbacks=[watch],
    )  # fmt: skip
    model.fit(dataset)
    return Curve(t, watch.rounds, watch.seconds, watch.cpu, watch.train, held_out(model, data, watch.rounds))


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


def compared(options: Options, name: str, data: Data, seed: int) -> list[Curve]:
    dataset = gb.Dataset(data.X, data.y, max_bins=BINS, n_jobs=options.threads)
    curves = []
    for t, rounds in grid(name, data.X.shape[1], options):
        options.tell(f"{name}: t = {t}, {rounds:,} rounds, seed {seed}")
        curves.append(follow(data, dataset, t, rounds, options.threads, seed))
    return curves


def shuffled(x: Any, y: Array, seed: int) -> Data:
    """A random 80/20 split, as the paper's program makes it."""
    order = np.random.RandomState(seed).permutation(len(y))
    train, test = order[: len(y) * 4 // 5], order[len(y) * 4 // 5 :]
    return Data("binary", x[train], y[train], x[test], y[test])
