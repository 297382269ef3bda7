"""Importance sampling (SMART) against its paper: rounds to a loss, average rate, and what a round costs.

The paper gives no settings (step length, leaves, ridge, rho). So the baseline is brought to the rounds it prints for
a8a, 60 to a test loss of 0.325 and about 97 to the best, by leaves and learning rate; all strategies then share them.
Rates are the paper's average rates at the first target. What is compared is order and ratios, not seconds.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.data.ranking_sets import letor_like, mslr10k_5k
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.harness import paper_figures
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.harness.store import Data
from gpuboost.errors import OutsideTheoryWarning

TARGET = 0.325  # test loss, nats a row
CALIBRATED: dict[str, Any] = {
    "loss": "logitboost",
    "growth": "leafwise",
    "max_leaves": 56,
    "max_depth": None,
    "learning_rate": 0.055,
    "reg_lambda": 0.0,
    "min_child_weight": 0.1,
}
"""Logistic loss in half log-odds: the least curvature of a leaf is 0.025 in log-odds."""

TRIMMED = 0.5
"""Share of the curvature that trimming keeps of lists to rank: it comes to about a tenth of the documents."""

Strategy = gb.ImportanceSampling | gb.WeightTrimming | gb.GOSS | None


def strategies(first: float, second: float, uniform: float) -> dict[str, Strategy]:
    """The paper's rows at these rates, every reading of its second order, and this library's own."""
    sampled: dict[str, Any] = {"floor": uniform, "variance_control": "none"}
    return {
        "baseline": None,
        "uniform": gb.ImportanceSampling(uniform, **sampled),
        "trimming": gb.WeightTrimming(0.7, variance_control="none"),
        "1st order": gb.smart_first_order(first, paper=True),
        "2nd order, no correction": gb.smart_second_order(second, paper=True, variance_control="none"),
        "2nd order, node (B)": gb.smart_second_order(second, paper=True),
        "2nd order, previous leaf (A)": gb.smart_second_order(second, paper=True, variance_control="previous_leaf"),
        "2nd order, leaf refit": gb.smart_second_order(second, variance_control="leaf_refit"),
        "uniform, leaf refit": gb.ImportanceSampling(uniform, floor=uniform),
        "uniform 0.3, leaf refit": gb.ImportanceSampling(0.3, floor=0.3),
        "gradient, leaf refit": gb.smart_first_order(0.3),
        "mvs, leaf refit": gb.MVS(0.3),
        "goss, leaf refit": gb.GOSS(0.2, 0.1),
        "loss, leaf refit": gb.ImportanceSampling(0.3, score="loss"),
    }


PAPER = {
    "baseline": "60, 0.319 at 97",
    "uniform": "58, 0.319 at 96, rate 0.40, time 0.25",
    "trimming": "443, 0.325 at 443, rate 0.42, time 0.29",
    "1st order": "57, 0.319 at 89, rate 0.45, time 0.19",
    "2nd order, node (B)": "34, 0.319 at 142, rate 0.23, time 0.11",
}
"""Table 2, a8a: rounds to 0.325, best loss and its round, average rate there, time of a round relative to baseline."""


@dataclass(frozen=True)
class Run:
    """One fit, followed round by round."""

    scores: list[float]
    seconds: float  # median of a round, evaluation apart
    rates: tuple[float, ...]

    def first(self, target: float) -> int | None:
        return next((i + 1 for i, score in enumerate(self.scores) if score < target), None)

    @property
    def best(self) -> int:
        return int(np.argmin(self.scores)) + 1

    def rate(self, rounds: int) -> float:
        return statistics.fmean(self.rates[:rounds]) if self.rates else 1.0


def follow(data: Data, sampling: Strategy, seed: int, threads: int, **params: Any) -> Run:
    """Losses on the held-out rows (1 - NDCG@10 of rankings) by a fit that is judged, seconds by one that is not."""
    kind = {"ranking": gb.GradientBoostingRanker, "binary": gb.GradientBoostingClassifier}[data.task]
    ranked = data.task == "ranking"
    named = {"group": data.group} if ranked else {}
    held_out = (data.X_test, data.y_test, data.group_test) if ranked else (data.X_test, data.y_test)

    def model(**more: Any) -> Any:
        return kind(sampling=sampling, random_state=seed, n_jobs=threads, device="cpu", **{**params, **more})

    rows = gb.Dataset(data.X, data.y, n_jobs=threads, **named)
    stamps: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideTheoryWarning)  # each reading is run, whatever is known of it
        judged = model().fit(rows, eval_set=[held_out])
        timed = min(int(params["n_estimators"]), 30)
        model(n_estimators=timed, callbacks=[lambda _: stamps.append(time.perf_counter())]).fit(rows)
    scores = next(iter(judged.evals_result_["validation_0"].values()))
    report = judged.fit_report_.sampling
    return Run(
        [1.0 - score for score in scores] if ranked else list(scores),
        statistics.median(np.diff(stamps)),
        () if report is None else report.rates,
    )


def a8a(options: Options) -> Finding:
    """Every strategy, mean over seeds."""
    data = real.a8a(3000 if options.small else None)
    seeds, trees = options.repeats or (1 if options.small else 20), 30 if options.small else 200
    runs_by_name: dict[str, list[Run]] = {}
    for name, sampling in strategies(0.5028, 0.3052, 0.4).items():
        for seed in range(seeds if sampling is not None else 1):
            options.tell(f"a8a: {name}, seed {seed + 1} of {seeds}")
            run = follow(data, sampling, seed, options.threads, n_estimators=trees, **CALIBRATED)
            runs_by_name.setdefault(name, []).append(run)
    baseline = statistics.median(run.seconds for run in runs_by_name["baseline"])
    rows = tuple((name, *_cells(runs, baseline), PAPER.get(name, "")) for name, runs in runs_by_name.items())
    columns = ("strategy", "rounds to 0.325", "rate", "best", "at", "rate there", "time of a round", "paper")
    return Finding(
        f"a8a: test loss, {trees} rounds, {seeds} seeds",
        columns,
        rows,
        (_calibration(runs_by_name["baseline"][0]), _verdict(runs_by_name)),
        {name: [_numbers(run) for run in runs] for name, runs in runs_by_name.items()},
    )


def _cells(runs: list[Run], baseline: float) -> tuple[str, ...]:
    firsts = [run.first(TARGET) for run in runs]
    reached = [first for first in firsts if first is not None]
    to_target = f"{statistics.fmean(reached):.1f}" if len(reached) == len(runs) else f"{len(reached)} of {len(runs)}"
    return (
        to_target,
        f"{statistics.fmean(run.rate(first or len(run.scores)) for run, first in zip(runs, firsts, strict=True)):.3f}",
        f"{statistics.fmean(min(run.scores) for run in runs):.5f}",
        f"{statistics.fmean(run.best for run in runs):.0f}",
        f"{statistics.fmean(run.rate(run.best) for run in runs):.3f}",
        f"{statistics.median(run.seconds for run in runs) / baseline:.2f}",
    )


def _calibration(baseline: Run) -> str:
    return (
        f"baseline: {baseline.first(TARGET)} rounds to {TARGET} (paper: 60), best {min(baseline.scores):.4f} at "
        f"{baseline.best} (paper: 0.319 at 97)"
    )


def _verdict(runs_by_name: Mapping[str, list[Run]]) -> str:
    """Rounds to the target of each reading of the second order, over the baseline's, as text (paper: 34 / 60)."""
    base = runs_by_name["baseline"][0].first(TARGET)
    parts = []
    for name, runs in runs_by_name.items():
        firsts = [run.first(TARGET) for run in runs]
        if name.startswith("2nd order"):
            mean = (
                None if base is None or None in firsts else statistics.fmean(f for f in firsts if f is not None) / base
            )
            parts.append(f"{name.removeprefix('2nd order, ')} {'never' if mean is None else f'{mean:.2f}'}")
    return "rounds to the target, of the baseline's (paper: 0.57): " + "; ".join(parts)


def _numbers(run: Run) -> dict[str, Any]:
    return {"scores": run.scores, "seconds_of_a_round": run.seconds, "rates": run.rates}


def mslr(options: Options) -> Finding:
    """The first 5,000 documents of MSLR-WEB10K, at the rates of the paper's table 4."""
    return _ranking(options, "MSLR piece", mslr10k_5k(1000 if options.small else None), 20 if options.small else 100)


def letor(options: Options) -> Finding:
    """A synthetic set of the size of the paper's MSLR-WEB10K."""
    queries = 60 if options.small else 6100
    data = letor_like(queries=queries, queries_test=max(queries // 6, 20), seed=11)
    return _ranking(options, "synthetic lists", data, 10 if options.small else 100)


def _ranking(options: Options, name: str, data: Data, trees: int) -> Finding:
    sampled: dict[str, Any] = {"variance_control": "none"}
    named: dict[str, tuple[Strategy, str]] = {
        "all rows": (None, "83 and 97"),
        "uniform 0.08, as the paper": (
            gb.ImportanceSampling(0.08, floor=0.08, **sampled),
            "100 and 117, time 0.094 and 0.159",
        ),
        "trimming, as the paper": (gb.WeightTrimming(TRIMMED, **sampled), "52 and 47, time 0.093 and 0.180"),
        "loss 0.15, as the paper": (
            gb.ImportanceSampling(0.1468, score="loss", **sampled),
            "30K only: 95, time 0.221",
        ),
        "1st order 0.09, as the paper": (
            gb.smart_first_order(0.0902, paper=True),
            "83 and 94, time 0.096 and 0.173",
        ),
        "2nd order 0.06, as the paper, leaf refit": (
            gb.smart_second_order(0.0604, paper=True, variance_control="leaf_refit"),
            "54 and 63, time 0.061 and 0.075",
        ),
        "uniform 0.1": (gb.ImportanceSampling(0.1, floor=0.1), ""),
        "mvs 0.1": (gb.MVS(0.1), ""),
        "goss 0.05 + 0.05": (gb.GOSS(0.05, 0.05), ""),
    }
    notes = (
        "paper: tables 4 and 6 (MSLR-WEB10K and 30K), rounds to an NDCG@10 of 0.453 and 0.464, time of a round there; "
        "it does not define the loss of a document; here it is 1 - NDCG of the document's list",
    )
    return _compared(options, name, data, trees, named, "NDCG@10", lambda loss: 1.0 - loss, notes)


def higgs(options: Options) -> Finding:
    """Few columns: a tree is soon grown, and what every row costs in a round weighs the more."""
    size = {"n": 20_000, "n_test": 5000} if options.small else {"n": 1_000_000, "n_test": 100_000}
    named: dict[str, tuple[Strategy, str]] = {
        "all rows": (None, ""),
        "uniform 0.1": (gb.ImportanceSampling(0.1, floor=0.1), ""),
        "gradient 0.1": (gb.smart_first_order(0.1), ""),
        "mvs 0.1": (gb.MVS(0.1), ""),
        "goss 0.05 + 0.05": (gb.GOSS(0.05, 0.05), ""),
        "mvs 0.3": (gb.MVS(0.3), ""),
    }
    trees = 10 if options.small else 100
    return _compared(options, "Higgs-like", higgs_like(**size, seed=1), trees, named, "log loss", float)


def _compared(
    options: Options, name: str, data: Data, trees: int, named: Mapping[str, tuple[Strategy, str]], score: str,
    shown: Callable[[float], float], notes: tuple[str, ...] = (),
) -> Finding:  # fmt: skip
    """After the same number of rounds: how good, how many rows, and what of the time.

    And rounds to what all rows come to after six tenths of their rounds, about where the paper has its first target.
    """
    repeats = options.repeats or (1 if options.small else 3)
    runs: dict[str, list[Run]] = {}
    for seed in range(repeats):
        for label, (sampling, _) in named.items():
            options.tell(f"{name}: {label}, repeat {seed + 1} of {repeats}")
            run = follow(data, sampling, seed, options.threads, n_estimators=trees, learning_rate=0.1, max_depth=6)
            runs.setdefault(label, []).append(run)
    seconds = {label: statistics.median(run.seconds for run in several) for label, several in runs.items()}
    best, last = "all rows", {label: statistics.fmean(run.scores[-1] for run in ran) for label, ran in runs.items()}
    target = statistics.fmean(min(run.scores[: max(6 * trees // 10, 1)]) for run in runs[best])
    rows = tuple(
        (
            label,
            f"{shown(last[label]):.5f}",
            f"{(shown(last[label]) / shown(last[best]) - 1.0):+.2%}",
            _rounds_to(target, several),
            f"{statistics.fmean(run.rate(trees) for run in several):.3f}",
            f"{1000.0 * seconds[label]:.1f}",
            f"{seconds[label] / seconds['all rows']:.3f}",
            named[label][1],
        )
        for label, several in runs.items()
    )
    n, d = data.X.shape
    return Finding(
        f"{name}: {n:,} x {d}, {trees} rounds of depth 6, {repeats} repeats",
        (
            "strategy",
            f"test {score}",
            "of all rows'",
            f"rounds to {shown(target):.4f}",
            "rate",
            "ms a round",
            "of all rows'",
            "paper",
        ),
        rows,
        notes,
        {label: [_numbers(run) for run in several] for label, several in runs.items()},
    )


def _rounds_to(target: float, runs: list[Run]) -> str:
    firsts = [next((i + 1 for i, score in enumerate(run.scores) if score <= target), None) for run in runs]
    reached = [first for first in firsts if first is not None]
    return f"{statistics.fmean(reached):.0f}" if len(reached) == len(runs) else f"{len(reached)} of {len(runs)}"


EXPERIMENT = Experiment(
    "smart",
    "Importance sampling",
    {
        "a8a": Part("a8a with every strategy and reading: rounds, rate and time beside the paper's table 2", a8a),
        "mslr": Part("5,000 documents of MSLR-WEB10K at the paper's rates", mslr),
        "letor": Part("700,000 x 136 documents to rank at the paper's rates: time of a round and NDCG@10", letor),
        "higgs": Part("1,000,000 x 28: time of a round and test loss", higgs),
    },
    draw=paper_figures.smart,
)
