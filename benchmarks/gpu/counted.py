"""Launches, bytes and atomic additions of a round, counted on the emulator of the tests without a GPU.

It needs a clone, whose tests/ have the emulator, a C++ compiler, and pytest.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.gpu.budget import (
    bytes_per_row,
    noisy_bytes_per_row,
    sampled_bytes_per_row,
    searched_bytes_per_row,
    skipped,
)
from gpuboost.benchmarks.harness.experiments import Finding, Options

FEATURES, DEPTH, ROUNDS, MORE, RATE = 28, 8, 4, 3, 0.1
FEW, MANY = 6_000, 18_000
FEW_ROWS, LEAVES = 2_000, (16, 31, 64, 255)  # of leaf-wise trees
PASSES = 3  # of a line search: at 0, at 1, and where it ends
COLUMNS = ("kernel", "bytes per row and tree", "shared atomics per row and tree", "launches per tree", "note")
OF_NODES = (
    "line_sums",
    "sums",
    "candidates",
    "nodes",
    "counts",
)  # parameters whose size is that of histograms, not of rows
ONCE = ("bin", "start", "lay_rows", "lay_defaults", "lay_entries")  # kernels of a training, not of a round


def counted(options: Options) -> Finding:
    """The table. Bytes are those of 32-byte sectors, each counted once a launch, of arrays that grow with the rows."""
    title = f"Counted, not measured: {FEATURES} features, depth {DEPTH}, squared error"
    return _table(title, options, {}, bytes_per_row(FEATURES, DEPTH))


def counted_sample(options: Options) -> Finding:
    """The same where a tenth of the rows is drawn by importance."""
    title = f"Counted, not measured: {FEATURES} features, depth {DEPTH}, squared error, MVS({RATE})"
    return _table(title, options, {"sampling": gb.MVS(RATE)}, sampled_bytes_per_row(FEATURES, DEPTH, RATE))


def counted_noise(options: Options) -> Finding:
    """The same with noise on the gradient, for the shape of a tree and for its leaves."""
    title = f"Counted, not measured: {FEATURES} features, depth {DEPTH}, squared error, Langevin()"
    return _table(title, options, {"langevin": gb.Langevin()}, noisy_bytes_per_row(FEATURES, DEPTH))


def counted_search(options: Options) -> Finding:
    """The same with a line search along every tree: a parabola, of which Newton's method finds the end at once."""
    title = f"Counted, not measured: {FEATURES} features, depth {DEPTH}, squared error, line search"
    return _table(title, options, {"step": "line_search"}, searched_bytes_per_row(FEATURES, DEPTH, PASSES))


def counted_leafwise(options: Options) -> Finding:
    """Launches and waits of leaf-wise trees: a graph has all passes of few leaves, and none of many."""
    title = f"Counted, not measured: {FEATURES} features, leaf-wise trees, squared error"
    columns = ("leaves", "launches per tree", "searches of splits", "graphs per tree", "waits per tree")
    if reason := why_no_emulator():
        return skipped(title, columns, reason)
    numbers = {}
    for leaves in LEAVES:
        params = {"growth": "leafwise", "max_leaves": leaves, "max_depth": None}
        few, longer = (_spent(FEW_ROWS, rounds, options, params) for rounds in (ROUNDS, ROUNDS + MORE))
        runs, counts = (longer[kind] - few[kind] for kind in ("runs", "counts"))
        numbers[str(leaves)] = {
            "launches": runs.total() / MORE, "searches": runs["evaluate"] / MORE,
            "graphs": counts["graph"] / MORE, "waits": counts["sync"] / MORE,
        }  # fmt: skip
    rows = tuple((leaves, *(f"{number:.0f}" for number in of.values())) for leaves, of in numbers.items())
    return Finding(title, columns, rows, (f"{FEW_ROWS:,} rows, after {ROUNDS} trees",), {"trees": numbers})


def _table(title: str, options: Options, params: dict[str, Any], budget: float) -> Finding:
    if reason := why_no_emulator():
        return skipped(title, COLUMNS, reason)
    few, many, longer = (
        _spent(n, rounds, options, params) for n, rounds in ((FEW, ROUNDS), (MANY, ROUNDS), (FEW, ROUNDS + MORE))
    )
    rows = (MANY - FEW) * ROUNDS
    moved = {kernel: (many["bytes"][kernel] - few["bytes"][kernel]) / rows for kernel in many["bytes"]}
    adds = {kernel: (many["atomics"][kernel] - few["atomics"][kernel]) / rows for kernel in many["bytes"]}
    replayed = {kernel: (longer["runs"][kernel] - few["runs"][kernel]) / MORE for kernel in many["bytes"]}
    nodes = (longer["counts"]["graph nodes"] - few["counts"]["graph nodes"]) / MORE
    numbers = {
        "bytes per row and tree": moved, "budget": budget, "shared atomics": adds,
        "launches per tree": replayed, "graph nodes": nodes,
        "graphs per tree": (longer["counts"]["graph"] - few["counts"]["graph"]) / MORE,
        "waits per tree": (longer["counts"]["sync"] - few["counts"]["sync"]) / MORE,
    }  # fmt: skip
    lines = [
        (kernel, f"{moved[kernel]:.1f}", f"{adds[kernel]:.1f}", f"{replayed[kernel]:.0f}", "")
        for kernel in sorted(moved, key=lambda kernel: -moved[kernel])
    ]
    total = sum(moved.values())
    within = "within the budget" if total <= numbers["budget"] else "above the budget"
    lines.append(
        ("all", f"{total:.1f}", f"{sum(adds.values()):.1f}", f"{nodes:.0f}", f"{within}: {numbers['budget']:.0f} bytes")
    )
    notes = (
        f"{nodes:.0f} nodes of graphs, {numbers['graphs per tree']:.2g} launches of a graph and "
        f"{numbers['waits per tree']:.0f} waits per tree; between {FEW:,} and {MANY:,} rows, {ROUNDS} trees",
    )
    return Finding(title, COLUMNS, tuple(lines), notes, numbers)


def _tests() -> Path:
    """The folder ``tests`` of the clone that has this file."""
    return Path(__file__).resolve().parents[2] / "tests"


def why_no_emulator() -> str:
    """The reason why the emulator cannot be used; empty if it can."""
    if not (_tests() / "emulator").is_dir():
        return "the emulator is not there: it lies in tests/ of a clone of the project"
    if find_spec("pytest") is None:
        return "the emulator needs pytest: pip install pytest"
    with on_the_path():
        reason: str = import_module("emulator.compiler").why_not()
    return reason


@contextmanager
def on_the_path() -> Iterator[None]:
    """Context in which ``emulator`` can be imported."""
    sys.path.insert(0, str(_tests()))
    try:
        yield
    finally:
        sys.path.remove(str(_tests()))


def _spent(n: int, rounds: int, options: Options, params: dict[str, Any]) -> dict[str, Counter[str]]:
    """By kernel: bytes, atomic operations in shared memory, and runs; and what was submitted, by kind."""
    options.tell(f"counted: {n:,} rows, {rounds} trees")
    with on_the_path():
        emulator: Any = import_module("emulator")
    rng = np.random.default_rng(1)
    x = np.stack([rng.permutation(n) for _ in range(FEATURES)], axis=1).astype(np.float32)
    y = np.sin(6.0 * x[:, 0] / n) + x[:, 1] / n * (x[:, 2] > n // 2) + 0.1 * rng.normal(size=n)
    with emulator.emulated_gpu(build="counts") as cupy:
        settings = {
            "n_estimators": rounds, "max_depth": DEPTH, "learning_rate": 0.5, "random_state": 0, **params
        }  # fmt: skip
        with catch_warnings():
            simplefilter("ignore", gb.OutsideTheoryWarning)  # of the squared error's gradient with noise
            gb.GradientBoostingRegressor(device="cuda", **settings).fit(x, y)
        traffic, atomics = cupy.traffic(), cupy.shared_atomics()
    moved: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for kernel, parameters in traffic.items():
        if kernel not in ONCE:
            moved[kernel] = sum(
                parameter.fetched + parameter.stored for name, parameter in parameters.items() if name not in OF_NODES
            )
    for kernel in cupy.kernels:
        runs[kernel.name] += kernel.runs
    return {"bytes": moved, "atomics": atomics, "counts": cupy.counts, "runs": runs}
