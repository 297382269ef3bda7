"""Random-then-greedy boosting (RGBM) against its paper: how many learners should compete in a round?

The runs are those of ``rgbm_runs``; here is what each set's come to, and what a round costs.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.data.synthetic import text_like, year_like
from gpuboost.benchmarks.harness import paper_figures, peers, rgbm_plot
from gpuboost.benchmarks.harness.cases import Setting
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.harness.store import Data
from gpuboost.benchmarks.suites.rgbm_runs import BINS, Curve, compared, follow, shuffled
from gpuboost.benchmarks.suites.rgbm_theory import theory

ENOUGH = 1.02  # "the loss of t = p": within 2 % of it
COLON = "paper (figure 5): the best test loss is that of a medium t, at a moderate training loss"


def table(name: str, curves: Sequence[Curve], paper: str) -> Finding:
    """The runs of one set, beside the run in which all features compete."""
    every, rows = curves[0], []
    near = every.train[-1] * ENOUGH
    for curve in curves:
        best = int(np.argmin(curve.test))
        rows.append((
            str(curve.t), f"{curve.rounds[-1]:,}", f"{curve.train[-1]:.5f}",
            f"{curve.at(every.rounds[-1]) / every.train[-1]:.4f}", *_until(curve, every, every.train[-1]),
            *_until(curve, every, near), f"{1e3 * curve.cpu[-1] / curve.rounds[-1]:.3f}",
            f"{curve.test[best]:.5f} at {curve.rounds[best]:,}",
        ))  # fmt: skip
    columns = (
        "t", "rounds", "training loss", f"of t = {every.t} after {every.rounds[-1]}", "rounds to that", "of its time",
        f"rounds to {ENOUGH:g} of it", "of its time to there", "CPU ms a round", "best test loss",
    )  # fmt: skip
    notes = paper, f"its time: of t = {every.t}, {every.cpu[-1]:.3f} s of CPU for {every.rounds[-1]} rounds"
    return Finding(name, columns, tuple(rows), notes, {"curves": [vars(curve) for curve in curves]})


def _until(curve: Curve, every: Curve, loss: float) -> tuple[str, str]:
    """Rounds until the training loss is that low, and their time as a share of that of the run with all features."""
    index, whole = curve.first(loss), every.first(loss)
    if index is None or whole is None:
        return "never", ""
    return f"{curve.rounds[index]:,}", f"{curve.cpu[index] / max(every.cpu[whole], 1e-9):.2f}"


def a9a(options: Options) -> Finding:
    """Rows of 14 indicators each, sparse."""
    whole = real.a9a(3000 if options.small else None)
    paper = "paper (figure 1): after 200 rounds t = 24 is as good as t = 123, and by the clock a medium t is best"
    return table("a9a, sparse", compared(options, "a9a", shuffled(whole.X[:, 1:], whole.y, 40), 40), paper)


def a9a_dense(options: Options) -> Finding:
    """The same rows in full, as the paper's program has them."""
    whole = real.a9a(3000 if options.small else None)
    data = shuffled(whole.X[:, 1:].toarray(), whole.y, 40)
    return table("a9a, dense", compared(options, "a9a", data, 40), "the same model as from sparse rows")


def colon(options: Options) -> Finding:
    """The best test loss by t, over random splits."""
    x, y = real.colon_cancer()
    splits = max(options.repeats, 2) if options.repeats else (2 if options.small else 10)
    runs = [compared(options, "colon", shuffled(x, y, 40 + split), 40 + split, timed=1) for split in range(splits)]
    rows = []
    for i, curve in enumerate(runs[0]):
        best = [min(run[i].test) for run in runs]
        error = statistics.stdev(best) / len(best) ** 0.5
        rounds = statistics.median(run[i].rounds[int(np.argmin(run[i].test))] for run in runs)
        wins = sum(min(run, key=lambda run_curve: min(run_curve.test)) is run[i] for run in runs)
        mean = f"{statistics.fmean(best):.4f} ± {error:.4f}"
        spread = f"{min(best):.4f} to {max(best):.4f}"
        rows.append((str(curve.t), f"{curve.rounds[-1]:,}", mean, spread, f"{rounds:,.0f}", str(wins)))
    columns = "t", "rounds", "best test loss, mean and its error", "over splits", "at round (median)", "splits it wins"
    numbers = {
        "curves": [vars(run_curve) for run_curve in runs[0]],
        "splits": [[vars(run_curve) for run_curve in run] for run in runs],
    }
    notes = (
        COLON,
        _where([run_curve.t for run_curve in runs[0]], [[min(run_curve.test) for run_curve in run] for run in runs]),
    )
    return Finding(f"colon-cancer: {splits} random splits", columns, tuple(rows), notes, numbers)


def _where(ts: Sequence[int], best: Sequence[Sequence[float]]) -> str:
    """The t of the least mean best test loss, and how much worse the two ends are on the same splits, as text."""
    means = [statistics.fmean(of_t) for of_t in zip(*best, strict=True)]
    argmin = min(range(len(means)), key=means.__getitem__)
    place = "inside the range" if 0 < argmin < len(ts) - 1 else "at an end of the range"
    beside = []
    for end in {0, len(ts) - 1} - {argmin}:
        more = [split[end] - split[argmin] for split in best]
        error = statistics.stdev(more) / len(more) ** 0.5
        beside.append(f"t = {ts[end]:,} has {statistics.fmean(more):+.4f} ± {error:.4f}")
    return f"here: least at t = {ts[argmin]:,}, {place}; on the same splits " + ", ".join(beside)


def rcv1(options: Options) -> Finding:
    """A thousand documents of 47,236 words."""
    x, y, x_test, y_test = real.rcv1_small()
    data = Data("binary", x, y, x_test, y_test)
    return table(
        "rcv1 sample", compared(options, "rcv1", data, 40), "paper (figure 5): a medium t is best by the clock"
    )


def year(options: Options) -> Finding:
    """In place of YearPredictionMSD, which is not free to pass on."""
    size = {"n": 4000, "n_test": 1000} if options.small else {"n": 320_000, "n_test": 80_000}
    data = year_like(**size, seed=4)
    return table(
        "synthetic, 400,000 x 90", compared(options, "year", data, 40), "squared error: the loss at its best is noise"
    )


def sparse(options: Options) -> Finding:
    """20,000 documents of 47,000 words: time by t, and memory by what is stored."""
    rows = 1000 if options.small else 20_000
    data = text_like(n=rows, n_test=10, seed=5, d=47_000, per_row=75)
    dataset = gb.Dataset(data.X, data.y, max_bins=BINS, n_jobs=options.threads)
    repeats, rounds = options.repeats or 3, 20 if options.small else 100
    lines = []
    for t in (47_000, 21_700, 2170, 217, 22):
        options.tell(f"sparse: t = {t}")
        curves = [follow(data, dataset, t, rounds, options.threads, seed, timed=1) for seed in range(repeats)]
        milliseconds = [1e3 * curve.cpu[-1] / (rounds - 1) for curve in curves]
        entries = data.X.nnz * t / 47_000
        lines.append((f"{t:,}", f"{entries:,.0f}", f"{statistics.median(milliseconds):.3f}", milliseconds))
    return Finding(
        f"{rows:,} x 47,000, {data.X.nnz / rows / 47_000:.2%} stored: {data.X.nnz:,} entries",
        ("t", "entries of drawn features", "CPU ms a round"),
        tuple(line[:3] for line in lines),
        ("a round has a cost by rows (gradients, scores) beside that by entries", *_memory(rows)),
        {line[0]: line[3] for line in lines},
    )


def _memory(rows: int) -> list[str]:
    """Peak memory of a fit with t = 217, of half the documents and of all of them, as text."""
    lines = []
    for n in (rows // 2, rows):
        data = text_like(n=n, n_test=10, seed=5, d=47_000, per_row=75)
        tracemalloc.start()
        dataset = gb.Dataset(data.X, data.y, max_bins=BINS, n_jobs=1)
        tracemalloc.reset_peak()
        follow(data, dataset, 217, 3, 1, 0, timed=1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        lines.append(f"memory of data and fit, t = 217, {data.X.nnz:,} entries: {peak / 2**20:.0f} MiB at most")
    return lines


def stumps(options: Options) -> Finding:
    """200 stumps of all features of a9a, all libraries."""
    data = real.a9a(3000 if options.small else None)
    setting = Setting(trees=20 if options.small else 200, depth=1)
    named = ["gpuboost", *(name for name in ("xgboost", "lightgbm", "sklearn") if options.beside(name))]
    repeats = options.repeats or (1 if options.small else 7)
    wall: dict[str, list[float]] = {name: [] for name in named}
    cpu: dict[str, list[float]] = {name: [] for name in named}
    dense = {"sklearn"}  # it takes no sparse rows
    for repeat in range(repeats + 1):  # the first one loads threads and kernels
        for name in named if repeat % 2 else reversed(named):
            options.tell(f"stumps: {name}, repeat {repeat} of {repeats}")
            x = data.X.toarray() if name in dense else data.X
            taken, used = _timed(name, Data(data.task, x, data.y, x[:1], data.y[:1]), setting, options.threads)
            if repeat:
                wall[name].append(taken)
                cpu[name].append(used)
    ours = statistics.median(wall["gpuboost"])
    rows = tuple(
        (
            name, f"{statistics.median(wall[name]):.3f}", f"{min(wall[name]):.3f}",
            f"{statistics.median(cpu[name]):.3f}", f"{statistics.median(wall[name]) / ours:.2f}",
        )
        for name in named
    )  # fmt: skip
    return Finding(
        f"a9a, {setting.trees} trees of depth 1, {options.threads} threads, {repeats} repeats",
        ("library", "s, median", "least", "CPU s, median", "of gpuboost's"),
        rows,
        ("training without binning; scikit-learn learns from the same rows in full",),
        {"wall": wall, "cpu": cpu},
    )


def _timed(name: str, data: Data, setting: Setting, threads: int) -> tuple[float, float]:
    peer = peers.open_peer(name, data.task, setting, threads, data.y)
    binned = peer.bin(peer.prepare(data.X), data.y, None, None)
    start, used = time.perf_counter(), time.process_time()
    peer.train(binned)
    return time.perf_counter() - start - (peer.binning_seconds or 0.0), time.process_time() - used


def draw(findings: dict[str, Finding], path: Any) -> None:
    """Figures 1 and 5 of the paper, of what was run; figures 2 to 4 beside them, or alone."""
    if "theory" in findings:
        named = Path(path)
        beside = named if len(findings) == 1 else named.with_name(f"{named.stem}_theory{named.suffix}")
        paper_figures.rgbm_theory(findings["theory"], str(beside))
        if len(findings) == 1:
            return
    curves = {
        name: finding.numbers["curves"]
        for name, finding in findings.items()
        if finding.numbers and "curves" in finding.numbers
    }
    rgbm_plot.draw(curves, path)


PARTS: dict[str, tuple[str, Callable[[Options], Finding]]] = {
    "a9a": ("26,048 x 123, sparse: t from 1 to 123 (figure 1)", a9a),
    "a9a-dense": ("the same rows in full", a9a_dense),
    "colon": ("colon-cancer, 49 x 2,000, random splits: where the best test loss lies", colon),
    "rcv1": ("1,000 x 47,236 documents", rcv1),
    "year": ("320,000 x 90 synthetic, squared error", year),
    "theory": ("figures 2 to 4: chances of ranks and minimal cosine angles, computed", theory),
    "sparse": ("20,000 x 47,000 synthetic documents: time by t", sparse),
    "stumps": ("200 stumps of all features of a9a, beside other libraries (--peers)", stumps),
}

EXPERIMENT = Experiment(
    "rgbm",
    "Random-then-greedy boosting: how many weak learners should compete",
    {name: Part(title, run) for name, (title, run) in PARTS.items()},
    draw=draw,
)
