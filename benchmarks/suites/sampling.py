"""Row samplers of the libraries, each at the same rate: how good the model is, and how long it took."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import gpuboost as gb
from gpuboost.benchmarks.data.ranking_sets import letor_like
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.harness import peers
from gpuboost.benchmarks.harness.cases import Setting
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.harness.scores import HIGHER_IS_BETTER, score
from gpuboost.benchmarks.harness.store import Data

RATE = 0.1

CATBOOST_MVS = {"bootstrap_type": "MVS", "subsample": RATE}
GOSS = {"data_sample_strategy": "goss", "top_rate": RATE / 2, "other_rate": RATE / 2}
UNIFORM = {"bagging_fraction": RATE, "bagging_freq": 1}

MVS, TWICE = "gpuboost: mvs", "gpuboost: mvs, twice the trees"
OURS: dict[str, dict[str, Any]] = {
    "gpuboost: all rows": {},
    "gpuboost: uniform": {"sampling": RATE},
    MVS: {"sampling": gb.MVS(RATE)},
    TWICE: {"sampling": gb.MVS(RATE)},
    "gpuboost: goss": {"sampling": gb.GOSS(RATE / 2, RATE / 2)},
}
THEIRS: dict[str, tuple[str, dict[str, Any]]] = {
    "xgboost: all rows": ("xgboost", {}),
    "xgboost: uniform": ("xgboost", {"subsample": RATE}),
    "xgboost: gradient_based": ("xgboost", {"subsample": RATE, "sampling_method": "gradient_based"}),
    "lightgbm: all rows": ("lightgbm", {}),
    "lightgbm: bagging": ("lightgbm", UNIFORM),
    "lightgbm: goss": ("lightgbm", GOSS),
    "catboost: all rows": ("catboost", {}),
    "catboost: mvs": ("catboost", CATBOOST_MVS),
}
"""Label of a sampler -> its library, and the parameters beyond the setting that all share (``peers``)."""

RIVALS = ("xgboost: gradient_based", "lightgbm: goss", "catboost: mvs")


def higgs(options: Options) -> Finding:
    size = {"n": 20_000, "n_test": 5000} if options.small else {"n": 1_000_000, "n_test": 100_000}
    return _compared(options, "Higgs-like", higgs_like(**size, seed=1))


def letor(options: Options) -> Finding:
    queries = 60 if options.small else 6100
    return _compared(options, "lists to rank", letor_like(queries=queries, queries_test=max(queries // 6, 20), seed=11))


def _compared(options: Options, name: str, data: Data) -> Finding:
    """100 trees of depth 6; samplers take turns. What is quick may have twice as many, to be as good as the others."""
    setting = Setting(trees=10 if options.small else 100)
    asked = _asked(options)
    repeats = options.repeats or (1 if options.small else 3)
    for library, more in asked.values():
        options.tell(f"{name}: warming up")
        _run(library, _few(data), replace(setting, trees=1), options.threads, more)
    seconds: dict[str, list[float]] = {}
    scores: dict[str, dict[str, float]] = {}
    for repeat in range(repeats):
        for label, (library, more) in asked.items():
            options.tell(f"{name}: {label}, repeat {repeat + 1} of {repeats}")
            sampler_setting = replace(setting, trees=2 * setting.trees) if label == TWICE else setting
            taken, scores[label] = _run(library, data, sampler_setting, options.threads, more)
            seconds.setdefault(label, []).append(taken)
    medians = {label: statistics.median(several) for label, several in seconds.items()}
    decides = next(iter(scores[MVS]))
    rows = tuple(
        (
            label,
            f"{scores[label][decides]:.5f}",
            f"{_worse(scores, label, _all_rows(label), decides):+.2%}",
            f"{medians[label]:.2f}",
            f"{medians[label] / medians[_all_rows(label)]:.3f}",
            f"{medians[label] / medians[MVS]:.2f}",
        )
        for label in asked
    )
    n, d = data.X.shape
    better = "higher is better" if decides in HIGHER_IS_BETTER else "lower is better"
    return Finding(
        f"{name}: {n:,} x {d}, {setting.trees} trees of depth 6, one row in {1.0 / RATE:g}, {repeats} repeats",
        ("sampler", decides, "worse than its own all rows", "train s", "of its own all rows", "of gpuboost's mvs"),
        rows,
        (
            f"{decides}: {better}; seconds of training are without binning, medians of the repeats",
            *(
                _beside(scores, medians, ours, label, decides)
                for ours, label in product((MVS, TWICE), RIVALS)
                if label in scores
            ),
        ),
        {label: {"seconds": seconds[label], "scores": scores[label]} for label in asked},
    )


def long(options: Options) -> Finding:
    """Best held-out loss of any number of trees: leaf values of a sample keep the noise of its rows."""
    n, lengths = (2_000, (2, 4)) if options.small else (200_000, (100, 200, 400, 800))
    data = higgs_like(n=n, n_test=n // 2, seed=1)
    scores: dict[str, list[float]] = {}
    for label, (library, more) in _asked(options, without=(TWICE,)).items():
        options.tell(f"{label}, up to {lengths[-1]} trees")
        runs = (_run(library, data, Setting(trees=trees), options.threads, more) for trees in lengths)
        scores[label] = [next(iter(metrics.values())) for _, metrics in runs]
    rows = tuple(
        (label, *(f"{loss:.5f}" for loss in every), f"{min(every) / min(scores[_all_rows(label)]) - 1.0:+.2%}")
        for label, every in scores.items()
    )
    columns = ("sampler", *(f"{trees} trees" for trees in lengths), "best, of its own all rows'")
    title = f"Held-out log loss by number of trees: {n:,} x 28, depth 6, one row in {1.0 / RATE:g}"
    return Finding(title, columns, rows, (), {"trees": lengths, "log loss": scores})


def _asked(options: Options, *, without: tuple[str, ...] = ()) -> dict[str, tuple[str, dict[str, Any]]]:
    """Samplers, and each one's library and parameters."""
    theirs = {label: sampler for label, sampler in THEIRS.items() if options.beside(sampler[0])}
    return {label: ("gpuboost", more) for label, more in OURS.items() if label not in without} | theirs


def _all_rows(label: str) -> str:
    return f"{label.split(':', maxsplit=1)[0]}: all rows"


def _worse(scores: Mapping[str, Mapping[str, float]], label: str, than: str, decides: str) -> float:
    """Relative difference of two scores, positive if that of ``label`` is worse than that of ``than``."""
    change = scores[label][decides] / scores[than][decides] - 1.0
    return 0.0 + (-change if decides in HIGHER_IS_BETTER else change)  # 0.0 +: no negative zero


def _beside(
    scores: Mapping[str, Mapping[str, float]], medians: Mapping[str, float], ours: str, label: str, decides: str
) -> str:
    """Time and score of one of our samplers relative to those of a peer's, as text."""
    worse = _worse(scores, ours, label, decides)
    than = f"{abs(worse):.2%} {'worse' if worse > 0.0 else 'better'}"
    return f"{ours} takes {medians[ours] / medians[label]:.2f} of the time of {label}, and is {than}"


def _few(data: Data) -> Data:
    """The first rows: enough to compile and load all kernels of the whole, outside of the timings."""
    few = 20_000
    group = None if data.group is None else data.group[:few]
    return replace(data, X=data.X[:few], y=data.y[:few], group=group)


def _run(
    library: str, data: Data, setting: Setting, threads: int, more: dict[str, Any]
) -> tuple[float, dict[str, float]]:
    """Seconds of training, binning apart, and the scores of the held-out rows."""
    peer = peers.open_peer(library, data.task, setting, threads, data.y, **more)
    binned = peer.bin(peer.prepare(data.X), data.y, data.weight, data.group)
    start = time.perf_counter()
    model = peer.train(binned)
    taken = time.perf_counter() - start - (peer.binning_seconds or 0.0)
    return taken, score(data, peer.predict(model, peer.prepare(data.X_test)))


EXPERIMENT = Experiment(
    "sampling",
    "Row samplers of the libraries",
    {
        "higgs": Part("1,000,000 x 28, two classes: one row in ten, by each library's samplers", higgs),
        "long": Part("200,000 x 28, two classes: the same, by number of trees", long),
        "letor": Part("700,000 x 136 documents to rank: the same", letor),
    },
)
