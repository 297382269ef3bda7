"""Asynchronous boosting (Asynch-SGBDT) against its paper: loss by trees and workers, times, speed-up.

The paper has a cluster of 32 machines. Here the real algorithm runs on a simulated one: which gradients a tree is
fitted to, and when it comes in, are those of such a cluster. Every table says what is measured and what simulated.
"""

from __future__ import annotations

import statistics
import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.harness import paper_figures
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.suites.async_shapes import Shape, shape_of
from gpuboost.benchmarks.suites.async_threads import threads
from gpuboost.errors import OutsideTheoryWarning

WORKERS = (1, 4, 16, 32)
MANY = WORKERS[-1]


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
                cells = f"{train[-1]:.4f}", f"{train[-1] / alone - 1.0:+.2%}", f"{min(test):.4f}", str(rises)
                table.append((f"{rate:g}", str(workers), leaves, f"{model.log_.mean_staleness:.1f}", *cells))
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
        shape = shape_of(options, name)
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


def as_printed(options: Options, tiny: bool = False) -> Finding:
    """Figures 5 to 9 by the paper's own recipe: v = 0.01, rates 0.2 to 0.8, rows drawn by version, workers' leaves.

    Scaled: a tenth of the sets' rows, and 100 trees; ``--scale`` changes the number of trees. tiny: figure 9, a rate
    of 5e-6, about 500 rows by the paper, beside 0.6; here about 100 rows are drawn.
    """
    table, numbers = [], {}
    for name in ("higgs", "real-sim"):
        whole = shape_of(options, name)
        part = 1 if options.small else 10
        shape = replace(whole, rows=whole.rows // part, test=whole.test // part, trees=max(2, int(100 * options.scale)))
        data = shape.data()
        rows = gb.Dataset(data.X, data.y, n_jobs=options.threads)
        for rate in (100.0 / shape.rows, 0.6) if tiny else (0.2, 0.4, 0.6, 0.8):
            cells = []
            for workers in WORKERS:
                options.tell(f"{shape.title}: v = 0.01, {rate:g} of the rows, {workers} workers")
                params = gb.presets.asynch_sgbdt_paper(
                    workers, rate=rate, loss="logitboost", n_estimators=shape.trees, learning_rate=0.01,
                    max_leaves=shape.leaves, build_time=gb.times.LogNormal(1.0), server_time=0.02,
                )  # fmt: skip
                params |= {"random_state": 0, "n_jobs": options.threads}
                loss = next(
                    iter(_fit(rows, {"test": (data.X_test, data.y_test)}, params).evals_result_["test"].values())
                )
                cells.append(f"{loss[-1]:.4f}")
                numbers[f"{name}, {rate:g}, {workers}"] = loss
            table.append((f"{shape.title}, {shape.rows:,} rows", f"{rate:g}", *cells))
    columns = ("set", "share of the rows", *(f"{workers} workers" for workers in WORKERS))
    notes = ("scaled: stand-ins of a tenth of the rows, 100 trees (paper: 1,000 and 400); a simulated cluster.",)
    return Finding("v = 0.01 as printed: test loss after the last tree", columns, tuple(table), notes, numbers)


@dataclass(frozen=True)
class Times:
    """Measured on one core, in CPU seconds."""

    build: tuple[float, ...]
    server: tuple[float, ...]

    @classmethod
    def of(cls, log: gb.Log) -> Times:
        """The times of a run by one worker, without its first tree, which also sorts the columns."""
        lines = log.lines[1:]
        server = tuple(after.began - before.ended for before, after in pairwise(lines))
        return cls(tuple(line.built - line.began for line in lines), server)

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
    return Times.of(_fit(rows, None, shape.params(1) | run).log_)


def times(options: Options) -> Finding:
    """T_b and T_s as measured, the bound 1 + T_b / T_s, and the speed-up of up to 32 workers with such times."""
    table, numbers = [], {}
    for name in ("real-sim", "e2006", "higgs"):
        shape = shape_of(options, name)
        options.tell(f"{shape.title}: measuring")
        measured = _measured(options, shape)
        cells = [f"{_speed_up(measured, workers):.1f}" for workers in (4, 8, 16, 32)]
        build, server = (1000.0 * statistics.median(each) for each in (measured.build, measured.server))
        size = f"{shape.rows:,} x {shape.columns:,}"
        table.append((shape.title, size, f"{build:.1f}", f"{server:.2f}", f"{measured.saturation:.1f}", *cells))
        numbers[name] = {"build": measured.build, "server": measured.server, "saturation": measured.saturation}
    columns = ("set", "rows x columns", "T_b ms", "T_s ms", "1 + T_b/T_s", *(f"{w} workers" for w in (4, 8, 16, 32)))
    notes = (
        "T_b, T_s: CPU time of one core, measured here; up to 400 leaves, rate 0.8, 80 % of the features.",
        "speed-up: simulated, with these times.",
        "paper, 32 workers: 14 (real-sim), 20 to 22 (E2006-log1p), on a cluster of one-core workers and gigabit TCP.",
    )
    return Finding("times and speed-up", columns, tuple(table), notes, numbers)


def _law(measured: Times) -> tuple[gb.times.LogNormal, float]:
    """Distribution of build times, and the server's median time, for a simulation."""
    spread = max(float(np.std(np.log(measured.build))), 0.05)
    return gb.times.LogNormal(statistics.median(measured.build), spread), statistics.median(measured.server)


def _speed_up(measured: Times, workers: int) -> float:
    """Speed-up of a simulated queue with these times, by trees that cost nothing themselves."""
    build, server = _law(measured)
    execution = gb.SimulatedWorkers(workers, build_time=build, server_time=server)
    x = np.arange(8.0)[:, None]
    model = gb.GradientBoostingRegressor(n_estimators=400, max_depth=1, execution=execution, n_jobs=1)
    return float(model.fit(x, x[:, 0]).log_.speed_up)


def cluster(options: Options) -> Finding:
    """Figure 10 with its losses: 32 workers against one, at the same number of trees, with times measured here."""
    table, numbers = [], {}
    for name in ("real-sim", "e2006", "higgs"):
        shape, threads = shape_of(options, name), options.threads
        data = shape.data()
        rows, held_out = gb.Dataset(data.X, data.y, n_jobs=threads), {"train": (data.X, data.y)}
        run = shape.params(1) | {"n_estimators": shape.trees, "learning_rate": 0.05, "sampling": 0.8}
        options.tell(f"{shape.title}: one worker, measured")
        alone = _fit(rows, held_out, run | {"execution": gb.SimulatedWorkers(1)})
        build, server = _law(Times.of(alone.log_))
        options.tell(f"{shape.title}: {MANY} workers, simulated")
        execution = gb.SimulatedWorkers(MANY, build_time=build, server_time=server)
        many = _fit(rows, held_out, run | {"execution": execution, "n_jobs": threads})
        losses = [next(iter(model.evals_result_["train"].values())) for model in (alone, many)]
        (base_loss, last), rises = (loss[-1] for loss in losses), int(np.sum(np.diff(losses[1]) > 0.0))
        times = f"{1000.0 * build.median:.1f}", f"{1000.0 * server:.2f}", f"{many.log_.speed_up:.1f}"
        table.append(
            (shape.title, *times, f"{base_loss:.4f}", f"{last:.4f}", f"{last / base_loss - 1.0:+.2%}", str(rises))
        )
        numbers[name] = {"speed-up": many.log_.speed_up, "one": losses[0], "many": losses[1]}
    columns = ("set", "T_b ms", "T_s ms", f"speed-up of {MANY}", "loss of one", f"of {MANY}", "above it", "rises")
    notes = (
        f"{shape_of(options, 'real-sim').trees} trees, rate 0.05, 80 % of rows and features; training loss.",
        "T_b, T_s: CPU time of one core, measured here; speed-up: simulated with them, by trees that are really built.",
        "aim: 14 (real-sim) and 20 (E2006), within 1 % of one worker's loss.",
    )
    return Finding(f"{MANY} workers against one", columns, tuple(table), notes, numbers)


EXPERIMENT = Experiment(
    "async",
    "Asynchronous boosting",
    {
        "real-sim": Part(
            "72,000 x 20,958 sparse: loss by trees, workers and who finds the leaf values; simulated",
            lambda options: _curves(options, shape_of(options, "real-sim")),
        ),
        "higgs": Part(
            "200,000 x 28 dense: the same",
            lambda options: _curves(options, shape_of(options, "higgs")),
        ),
        "rates": Part("sampling rates 0.8 to 0.2 and a tiny one, 1, 4 and 16 workers; simulated", rates),
        "paper": Part("figures 5 to 8 as printed: v = 0.01, rates 0.2 to 0.8, 1 to 32 workers; simulated", as_printed),
        "tiny": Part(
            "figure 9 as printed: v = 0.01, about 100 rows a tree beside a rate of 0.6; simulated",
            lambda options: as_printed(options, tiny=True),
        ),
        "times": Part("time to build a tree and of the server, measured; speed-up of 32 workers, simulated", times),
        "cluster": Part("32 workers with times measured here against one: speed-up, simulated, and loss", cluster),
        "threads": Part("trees a second by threads, against independent processes; measured", threads),
    },
    draw=paper_figures.asynchronous,
)
