"""Asynchronous boosting (Asynch-SGBDT) against its paper: loss by trees and workers, times, speed-up.

The paper has a cluster of 32 machines. Here the real algorithm runs on a simulated one: which gradients a tree is
fitted to, and when it comes in, are those of such a cluster. Every table says what is measured and what simulated.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.store import Data
from gpuboost.benchmarks.synthetic import higgs_like, text_like
from gpuboost.errors import OutsideTheoryWarning

WORKERS = (1, 4, 16, 32)


@dataclass(frozen=True)
class Shape:
    """A data set like one of the paper's, and its trees."""

    title: str
    rows: int
    test: int
    columns: int
    per_row: int  # stored entries; 0 if dense
    leaves: int
    trees: int

    def data(self) -> Data:
        if self.per_row:
            return text_like(self.rows, self.test, seed=1, d=self.columns, per_row=self.per_row)
        return higgs_like(self.rows, self.test, seed=1)

    def params(self, threads: int) -> dict[str, Any]:
        """The paper's: 80 % of the features, gradient steps."""
        return {
            "max_depth": 8, "max_leaves": self.leaves, "learners": 0.8, "step": "gradient", "min_child_weight": 0.0,
            "random_state": 0, "n_jobs": threads, "device": "cpu",
        }  # fmt: skip


REAL_SIM = Shape("real-sim-shaped", 72_000, 8000, 20_958, 52, 100, 100)
HIGGS = Shape("higgs-shaped", 200_000, 50_000, 28, 0, 20, 100)
E2006 = Shape("E2006-log1p-shaped, a tenth of its columns", 16_087, 1000, 427_000, 600, 400, 0)
SMALL = {
    "real-sim": Shape("small real-sim-shaped", 4000, 1000, 2000, 20, 31, 30),
    "higgs": Shape("small higgs-shaped", 4000, 1000, 28, 0, 20, 30),
    "e2006": Shape("small E2006-shaped", 1500, 200, 10_000, 60, 31, 0),
}


def _shape(options: Options, name: str) -> Shape:
    return SMALL[name] if options.small else {"real-sim": REAL_SIM, "higgs": HIGGS, "e2006": E2006}[name]


def _fit(rows: Any, held_out: Any, params: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideTheoryWarning)  # beyond the limit is what is looked at
        return gb.GradientBoostingClassifier(**params).fit(rows, eval_set=held_out)


def _simulated(workers: int, leaves: str = "server", **more: Any) -> gb.SimulatedWorkers:
    """Build times vary by a quarter, the server takes a fiftieth: what the sparse sets come near to."""
    return gb.SimulatedWorkers(
        workers, build_time=gb.times.LogNormal(1.0), server_time=0.02, leaf_values=leaves, allow_unproven=True, **more
    )


def _curves(options: Options, shape: Shape) -> Finding:
    """Loss against trees, by workers and where leaf values come from, at a rate inside the limit and one beyond."""
    data, threads = shape.data(), options.threads
    rows = gb.Dataset(data.X, data.y, n_jobs=threads)
    held_out = {"train": (data.X, data.y), "test": (data.X_test, data.y_test)}
    table, numbers = [], {}
    for rate in (0.05, 0.5):
        alone: float | None = None
        for workers in WORKERS:
            for leaves in ("server", "worker") if workers > 1 else ("server",):
                options.tell(f"{shape.title}: rate {rate}, {workers} workers, leaf values of the {leaves}")
                execution = _simulated(workers, leaves) if workers > 1 else None
                run = {"n_estimators": shape.trees, "learning_rate": rate, "sampling": 0.6, "execution": execution}
                model = _fit(rows, held_out, shape.params(threads) | run)
                train, test = (next(iter(model.evals_result_[name].values())) for name in held_out)
                alone = train[-1] if alone is None else alone
                rises = int(np.sum(np.diff(train) > 0.0))
                found = f"{train[-1]:.4f}", f"{train[-1] / alone - 1.0:+.2%}", f"{min(test):.4f}", str(rises)
                table.append((f"{rate:g}", str(workers), leaves, f"{model.log_.mean_staleness:.1f}", *found))
                numbers[f"{rate:g}, {workers}, {leaves}"] = {"train": train, "test": test}
    n, d = data.X.shape
    return Finding(
        f"{shape.title}: {n:,} x {d:,}, {shape.trees} trees of {shape.leaves} leaves, 60 % of the rows; simulated",
        ("rate", "workers", "leaf values", "staleness", "train loss", "against one", "best test loss", "rises"),
        tuple(table),
        tuple(f"limit at {w} workers: {_limit(w):.3g} in units of 1 / smoothness" for w in WORKERS[1:]),
        numbers,
    )


def _limit(workers: int) -> float:
    return gb.theory.stability_limit(workers - 1)


def rates(options: Options) -> Finding:
    """Figures 7 to 9: sampling rates from 0.8 down to a tiny one, at 1, 4 and 16 workers."""
    table, numbers = [], {}
    for name in ("real-sim", "higgs"):
        shape = _shape(options, name)
        data, threads = shape.data(), options.threads
        rows, held_out = gb.Dataset(data.X, data.y, n_jobs=threads), {"test": (data.X_test, data.y_test)}
        for rate in (0.8, 0.6, 0.4, 0.2, 100.0 / shape.rows):
            cells = []
            for workers in (1, 4, 16):
                options.tell(f"{shape.title}: {rate:.2g} of the rows, {workers} workers")
                run = {"n_estimators": shape.trees, "learning_rate": 0.1, "sampling": rate}
                execution = _simulated(workers) if workers > 1 else None
                model = _fit(rows, held_out, shape.params(threads) | run | {"execution": execution})
                loss = next(iter(model.evals_result_["test"].values()))
                cells.append(f"{loss[-1]:.4f}")
                numbers[f"{name}, {rate:.2g}, {workers}"] = loss
            table.append((shape.title, f"{rate:.2g}", *cells))
    columns = ("set", "share of the rows", "1 worker", "4 workers", "16 workers")
    return Finding("test loss after the last tree; simulated", columns, tuple(table), (), numbers)


@dataclass(frozen=True)
class Times:
    """Measured on one core, in CPU seconds."""

    build: tuple[float, ...]
    server: tuple[float, ...]

    @property
    def saturation(self) -> float:
        return 1.0 + statistics.median(self.build) / statistics.median(self.server)


def _measured(options: Options, shape: Shape) -> Times:
    """The first trees of a fit by one worker, leaf-wise and at a rate of 0.8, as in the paper's figure 10."""
    data = shape.data()
    rows = gb.Dataset(data.X, data.y, n_jobs=options.threads)
    trees = options.repeats or (4 if options.small else 10)
    run = {
        "n_estimators": trees + 2,
        "growth": "leafwise",
        "max_depth": None,
        "max_leaves": 31 if options.small else 400,
    }
    run |= {"learning_rate": 0.01, "sampling": 0.8, "n_jobs": 1, "execution": gb.SimulatedWorkers(1)}
    lines = _fit(rows, None, shape.params(1) | run).log_.lines[1:]  # the first one also sorts the columns
    server = tuple(after.began - before.ended for before, after in pairwise(lines))
    return Times(tuple(line.built - line.began for line in lines), server)


def times(options: Options) -> Finding:
    """T_b and T_s as measured, the bound 1 + T_b / T_s, and the speed-up of up to 32 workers with such times."""
    table, numbers = [], {}
    for name in ("real-sim", "e2006", "higgs"):
        shape = _shape(options, name)
        options.tell(f"{shape.title}: measuring")
        found = _measured(options, shape)
        cells = [f"{_speed_up(found, workers):.1f}" for workers in (4, 8, 16, 32)]
        build, server = (1000.0 * statistics.median(each) for each in (found.build, found.server))
        size = f"{shape.rows:,} x {shape.columns:,}"
        table.append((shape.title, size, f"{build:.1f}", f"{server:.2f}", f"{found.saturation:.1f}", *cells))
        numbers[name] = {"build": found.build, "server": found.server, "saturation": found.saturation}
    columns = ("set", "rows x columns", "T_b ms", "T_s ms", "1 + T_b/T_s", *(f"{w} workers" for w in (4, 8, 16, 32)))
    notes = (
        "T_b, T_s: CPU time of one core, measured here; up to 400 leaves, rate 0.8, 80 % of the features.",
        "speed-up: simulated, with these times.",
        "paper, 32 workers: 14 (real-sim), 20 to 22 (E2006-log1p), on a cluster of one-core workers and gigabit TCP.",
    )
    return Finding("times and speed-up", columns, tuple(table), notes, numbers)


def _speed_up(found: Times, workers: int) -> float:
    """Of a queue with these times, by trees that cost nothing themselves."""
    spread = float(np.std(np.log(found.build)))
    build = gb.times.LogNormal(statistics.median(found.build), max(spread, 0.05))
    execution = gb.SimulatedWorkers(workers, build_time=build, server_time=statistics.median(found.server))
    x = np.arange(8.0)[:, None]
    model = gb.GradientBoostingRegressor(n_estimators=400, max_depth=1, execution=execution, n_jobs=1)
    return float(model.fit(x, x[:, 0]).log_.speed_up)


def threads(options: Options) -> Finding:
    """Trees a second: threads of one process, against as many processes that know nothing of each other."""
    shape, cores = _shape(options, "real-sim"), options.threads
    repeats = options.repeats or (1 if options.small else 3)
    found: dict[str, list[float]] = {"one process, one worker": [], f"{cores} processes": [], f"{cores} threads": []}
    for repeat in range(repeats):
        for name, (processes, workers) in zip(found, ((1, 1), (cores, 1), (1, cores)), strict=True):
            options.tell(f"{shape.title}: {name}, repeat {repeat + 1} of {repeats}")
            found[name].append(_trees_a_second(options.small, processes, workers))
    if options.peers:
        for used in (1, cores):
            options.tell(f"{shape.title}: LightGBM, {used} threads")
            found[f"LightGBM, {used} threads, column-wise"] = [_lightgbm(shape, used) for _ in range(repeats)]
    best = f"{cores} processes"
    medians = {name: statistics.median(several) for name, several in found.items()}
    table = tuple((name, f"{rate:.2f}", f"{rate / medians[best]:.2f}") for name, rate in medians.items())
    columns = ("what runs", "trees a second", f"of {best}")
    return Finding(f"{shape.title}: measured on {cores} cores", columns, table, ("aim: 0.85 by threads",), found)


def _trees_a_second(small: bool, processes: int, workers: int) -> float:
    """Of all processes together. Each waits until all of them are ready."""
    call = f"from gpuboost.benchmarks.asynchronous import lone; lone({small}, {workers})"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([sys.executable, "-c", call], **pipes) for _ in range(processes)]
    for one in running:
        assert one.stdout.readline() == "ready\n"
    for one in running:
        one.stdin.write("go\n")
        one.stdin.flush()
    return sum(float(one.communicate()[0]) for one in running)


def lone(small: bool, workers: int) -> None:
    """The part of one process: says that it is ready, waits for a line, and says how many trees a second it made."""
    shape = SMALL["real-sim"] if small else REAL_SIM
    data = shape.data()
    rows = gb.Dataset(data.X, data.y, n_jobs=1)
    stamps: list[float] = []
    trees = 60 if small else 40
    execution = gb.Asynchronous(workers) if workers > 1 else None
    params = shape.params(1) | {"learning_rate": 0.05, "sampling": 0.6, "execution": execution}
    gb.GradientBoostingClassifier(n_estimators=4, **params).fit(rows)
    print("ready", flush=True)
    sys.stdin.readline()
    after = [lambda _: stamps.append(time.perf_counter())]
    gb.GradientBoostingClassifier(n_estimators=trees * workers, callbacks=after, **params).fit(rows)
    skip = len(stamps) // 5  # while the first trees are under way nothing comes in, and columns are sorted
    print((len(stamps) - 1 - skip) / (stamps[-1] - stamps[skip]), flush=True)


def _lightgbm(shape: Shape, used: int) -> float:
    import lightgbm

    data = shape.data()
    params = {"objective": "binary", "num_leaves": shape.leaves, "max_depth": 8, "learning_rate": 0.05, "verbose": -1,
              "num_threads": used, "force_col_wise": True, "feature_fraction": 0.8, "bagging_fraction": 0.6,
              "bagging_freq": 1, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0}  # fmt: skip
    rows, stamps = lightgbm.Dataset(data.X, data.y, params=params).construct(), []
    after = [lambda _: stamps.append(time.perf_counter())]
    lightgbm.train(params, rows, 40, callbacks=after)
    return (len(stamps) - 1) / (stamps[-1] - stamps[0])


EXPERIMENT = Experiment(
    "async",
    "Asynchronous boosting",
    {
        "real-sim": Part(
            "72,000 x 20,958 sparse: loss by trees, workers and who finds the leaf values; simulated",
            lambda options: _curves(options, _shape(options, "real-sim")),
        ),
        "higgs": Part(
            "200,000 x 28 dense: the same",
            lambda options: _curves(options, _shape(options, "higgs")),
        ),
        "rates": Part("sampling rates 0.8 to 0.2 and a tiny one, 1, 4 and 16 workers; simulated", rates),
        "times": Part("time to build a tree and of the server, measured; speed-up of 32 workers, simulated", times),
        "threads": Part("trees a second by threads, against independent processes; measured", threads),
    },
)
