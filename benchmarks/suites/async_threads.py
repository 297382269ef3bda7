"""Trees a second by threads of one process, and by as many independent processes, measured."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gpuboost as gb
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.suites.async_shapes import REAL_SIM, SMALL, Shape, shape_of


def threads(options: Options) -> Finding:
    """Trees a second: threads of one process, against as many independent processes.

    All processes are there from the start, and take turns, since a shared machine changes from one minute to the next.
    """
    shape, cores = shape_of(options, "real-sim"), options.threads
    repeats = options.repeats or (1 if options.small else 5)
    best = f"{cores} processes"
    with _party(options.small, [1] * cores + [cores]) as ready:
        teams = {"one process, one worker": ready[:1], best: ready[:cores], f"{cores} threads": ready[cores:]}
        rates_by_name: dict[str, list[float]] = {name: [] for name in teams}
        spent: dict[str, list[float]] = {name: [] for name in teams}
        for repeat in range(repeats):
            for name, team in teams.items():
                options.tell(f"{shape.title}: {name}, repeat {repeat + 1} of {repeats}")
                rate, seconds = _turn(team)
                rates_by_name[name].append(rate)
                spent[name].append(seconds)
    if options.beside("lightgbm"):
        for used in (1, cores):
            options.tell(f"{shape.title}: LightGBM, {used} threads")
            rates_by_name[f"LightGBM, {used} threads, column-wise"] = _lightgbm(shape, used, repeats)
    table = []
    for name, rates in rates_by_name.items():
        cpu = f"{1000.0 * min(spent[name]):.1f}" if name in spent else ""
        share = max(rates) / max(rates_by_name[best])
        table.append((name, f"{max(rates):.2f}", f"{statistics.median(rates):.2f}", f"{share:.2f}", cpu))
    columns = ("what runs", "trees a second", "median", f"of {best}", "CPU ms a tree")
    notes = (
        f"the best of {repeats} turns each; what else the machine does can only slow them",
        "aim: 0.85 by threads",
    )
    return Finding(f"{shape.title}: measured on {cores} cores", columns, tuple(table), notes, rates_by_name)


@contextmanager
def _party(small: bool, workers: Sequence[int]) -> Iterator[list[subprocess.Popen[str]]]:
    """A process for each number of workers; all of them have their data and their kernels."""
    running: list[subprocess.Popen[str]] = []
    try:
        for each in workers:
            call = f"from gpuboost.benchmarks.suites.async_threads import lone; lone({small}, {each})"
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            running.append(subprocess.Popen([sys.executable, "-c", call], **pipes))
        for process in running:
            assert _line_of(process) == "ready"
        yield running
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _turn(team: Sequence[subprocess.Popen[str]]) -> tuple[float, float]:
    """Trees a second of all of them together, and CPU seconds of a tree."""
    for process in team:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [tuple(map(float, _line_of(process).split())) for process in team]
    return sum(rate for rate, _ in answers), statistics.mean(seconds for _, seconds in answers)


def _line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def lone(small: bool, workers: int) -> None:
    """The work of one process: it prints that it is ready, and for each line of input the speed of a fit.

    That is trees a second, and CPU seconds a tree.
    """
    shape = SMALL["real-sim"] if small else REAL_SIM
    data = shape.data()
    rows = gb.Dataset(data.X, data.y, n_jobs=1)
    trees = 60 if small else 40
    execution = gb.Asynchronous(workers) if workers > 1 else None
    params = shape.params(1) | {"learning_rate": 0.05, "sampling": 0.6, "execution": execution}
    gb.GradientBoostingClassifier(n_estimators=4, **params).fit(rows)
    print("ready", flush=True)
    while sys.stdin.readline():
        stamps: list[float] = []
        after, began = [lambda _, stamps=stamps: stamps.append(time.perf_counter())], time.process_time()
        gb.GradientBoostingClassifier(n_estimators=trees * workers, callbacks=after, **params).fit(rows)
        spent = (time.process_time() - began) / len(stamps)
        skip = len(stamps) // 5  # while the first trees are under way nothing comes in, and columns are sorted
        print((len(stamps) - 1 - skip) / (stamps[-1] - stamps[skip]), spent, flush=True)


def _lightgbm(shape: Shape, used: int, repeats: int) -> list[float]:
    """Trees a second, of each repeat."""
    import lightgbm

    data = shape.data()
    params = {"objective": "binary", "num_leaves": shape.leaves, "max_depth": 8, "learning_rate": 0.05, "verbose": -1,
              "num_threads": used, "force_col_wise": True, "feature_fraction": 0.8, "bagging_fraction": 0.6,
              "bagging_freq": 1, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0}  # fmt: skip
    rows, rates = lightgbm.Dataset(data.X, data.y, params=params).construct(), []
    for _ in range(repeats):
        stamps: list[float] = []
        after = [lambda _, stamps=stamps: stamps.append(time.perf_counter())]
        lightgbm.train(params, rows, 40, callbacks=after)
        rates.append((len(stamps) - 1) / (stamps[-1] - stamps[0]))
    return rates
