"""Hand-overs of a tree, and the share of its CPU time that one thread spends between them.

``python -m gpuboost.benchmarks.harness.serial_fraction`` prints a table. One thread runs all parts of each piece of
work in turn, by the code of several: so the figures do not depend on other processes, nor on the number of processors.
Steps that the leader of a team takes alone inside a kernel count as work.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import gpuboost as gb
from gpuboost.backends import devices
from gpuboost.backends.cpu.compilation.background import Background
from gpuboost.backends.host.threads import Task, ThreadPool
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.training import job

FEATURES, WARM, FEW = 28, 3, 2
RECIPES: dict[str, dict[str, Any]] = {
    "depth-wise": {},
    "leaf-wise, 64 leaves": {"growth": "leafwise", "max_leaves": 64, "max_depth": None},
    "depth-wise, mvs 0.1": {"sampling": gb.MVS(0.1)},
    "oblivious": {"growth": "oblivious"},
    "monotone constraints": {"monotonic_cst": np.resize([1, 0, 0, -1], FEATURES)},
    "interaction constraints": {"interaction_cst": [list(range(14)), list(range(14, FEATURES))]},
}


@dataclass(slots=True)
class Spent:
    """Hand-overs so far, and the CPU seconds of the work that was handed over."""

    runs: int = 0
    seconds: float = 0.0


@contextmanager
def one_after_another() -> Iterator[Spent]:
    """Pools run the parts of their work in turn while open; the kernels of large trees are compiled where needed."""
    spent = Spent()

    def run(pool: ThreadPool, work: Task, parts: int | None = None) -> None:
        begin = time.thread_time()
        for part in range(parts or pool.size):
            work(part)
        spent.runs += 1
        spent.seconds += time.thread_time() - begin

    with ExitStack() as patches:
        patches.enter_context(patch.object(ThreadPool, "run", run))
        patches.enter_context(patch.object(Background, "request", lambda *_: True))
        for module in (devices, job):
            patches.enter_context(patch.object(module, "processors", lambda: 64))
        yield spent


def per_tree(data: gb.Dataset, settings: dict[str, Any], trees: int, threads: int) -> tuple[float, float, float]:
    """Hand-overs of a tree of depth 6, its CPU milliseconds, and those outside of the hand-overs."""
    model = gb.GradientBoostingClassifier(n_jobs=threads, device="cpu", random_state=1)
    model.set_params(**{"max_depth": 6, **settings})
    with one_after_another() as spent:
        model.set_params(n_estimators=WARM).fit(data)
        totals = []
        for number in (FEW, FEW + trees):
            spent.runs, spent.seconds, begin = 0, 0.0, time.thread_time()
            model.set_params(n_estimators=number).fit(data)
            whole = time.thread_time() - begin
            totals.append(np.array([spent.runs, 1e3 * whole, 1e3 * (whole - spent.seconds)]))
    runs, milliseconds, outside = ((totals[1] - totals[0]) / trees).tolist()
    return runs, milliseconds, outside


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of 28 features (1,000,000)")
    parser.add_argument("--trees", type=int, default=10, help="more in the longer of two fits (10)")
    parser.add_argument("--threads", type=int, default=2, help="for which the work is divided (2)")
    parser.add_argument("--recipe", action="append", choices=list(RECIPES), help="one or more; all of them if left out")
    asked = parser.parse_args()
    rows = higgs_like(n=asked.rows, n_test=10, seed=1)
    data = gb.Dataset(rows.X, rows.y)
    print(f"{asked.rows:,} x {FEATURES}, logistic loss, depth 6, work divided for {asked.threads} threads; per tree:")
    print("| trees | hand-overs | CPU ms | outside, ms | share |")
    print("|---|---|---|---|---|")
    for name in asked.recipe or RECIPES:
        runs, milliseconds, outside = per_tree(data, RECIPES[name], asked.trees, asked.threads)
        print(
            f"| {name} | {runs:.1f} | {milliseconds:.2f} | {outside:.2f} | {outside / milliseconds:.1%} |", flush=True
        )


if __name__ == "__main__":
    main()
