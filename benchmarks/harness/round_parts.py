"""CPU time of the parts of a round on one thread: all rows, and a tenth of them by several samplers.

``python -m gpuboost.benchmarks.harness.round_parts`` prints a table for lists of documents to rank. CPU time of the
fit's thread hardly changes with what other processes do.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

import gpuboost as gb
from gpuboost.backends.cpu import growth
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.grower import TreeGrower
from gpuboost.backends.cpu.trees.histograms import Histograms
from gpuboost.backends.cpu.trees.split_search import Search
from gpuboost.benchmarks.data.ranking_sets import letor_like

RATE, WARM = 0.1, 2  # rate of the samplers, and rounds that compile
SAMPLERS: dict[str, Any] = {
    "all rows": None,
    "uniform": RATE,
    "mvs": gb.MVS(RATE),
    "goss": gb.GOSS(RATE / 2, RATE / 2),
    "mvs, leaves of the sample": gb.ImportanceSampling(RATE, variance_control="none"),
    "queries": gb.QuerySampling(RATE),
}
PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "gradients": ((Cpu, "gradients"),),
    "draw": ((Cpu, "draw"), (Cpu, "sample")),
    "copy of the drawn": ((Cpu, "weigh"), (growth, "rows_of_target")),
    "histograms": ((Histograms, "build"),),
    "split search": ((Search, "nodes"),),
    "row partitioning": ((TreeGrower, "_split_nodes"), (TreeGrower, "_finished")),
    "leaf values": ((Cpu, "leaf_values"),),
    "scores": ((Cpu, "add_leaves"),),
}
"""Functions whose time is a part's; none of them calls another."""
ROUND = ("gradients", "draw", "sample", "weigh", "grow", "leaf_values", "add_leaves")
REST = "rest of the growth"


@contextmanager
def timed() -> Iterator[Counter[str]]:
    """Milliseconds of each part, and of the whole ``round``, while open."""
    spent: Counter[str] = Counter()
    with ExitStack() as patches:
        for part, functions in PARTS.items():
            for owner, name in functions:
                patches.enter_context(patch.object(owner, name, _timed(getattr(owner, name), spent, part)))
        for verb in ROUND:
            patches.enter_context(patch.object(Cpu, verb, _timed(getattr(Cpu, verb), spent, "round")))
        yield spent


def _timed(call: Callable[..., Any], spent: Counter[str], part: str) -> Callable[..., Any]:
    @wraps(call)
    def measured(*args: Any, **named: Any) -> Any:
        begin = time.thread_time()
        try:
            return call(*args, **named)
        finally:
            spent[part] += 1e3 * (time.thread_time() - begin)  # type: ignore[assignment]

    return measured


def parts_of_a_round(data: gb.Dataset, sampling: Any, rounds: int) -> dict[str, float]:
    """Milliseconds of each part of a round of LambdaMART, trees of depth 6."""
    model = gb.GradientBoostingRanker(max_depth=6, learning_rate=0.1, sampling=sampling, n_jobs=1, device="cpu")
    model.set_params(n_estimators=WARM).fit(data)
    with timed() as spent:
        model.set_params(n_estimators=rounds).fit(data)
    spent[REST] = spent["round"] - sum(spent[part] for part in PARTS)
    return {part: spent[part] / rounds for part in (*PARTS, REST, "round")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=6100, help="of about 118 documents each (6100)")
    parser.add_argument("--rounds", type=int, default=20, help="of each fit (20)")
    parser.add_argument("--repeats", type=int, default=3, help="fits of each sampler, of which the fastest counts (3)")
    asked = parser.parse_args()
    lists = letor_like(queries=asked.queries, queries_test=1, seed=11)
    data = gb.Dataset(lists.X, lists.y, group=lists.group)
    fastest: dict[str, dict[str, float]] = {}
    for _ in range(asked.repeats):
        for name, sampling in SAMPLERS.items():
            parts = parts_of_a_round(data, sampling, asked.rounds)
            if name not in fastest or parts["round"] < fastest[name]["round"]:
                fastest[name] = parts
    print(f"{lists.X.shape[0]:,} x {lists.X.shape[1]}: CPU ms of a round")
    print("| part |", " | ".join(fastest), "|")
    print("|---" * (len(fastest) + 1) + "|")
    for part in (*PARTS, REST, "round"):
        print(f"| {part} |", " | ".join(f"{parts[part]:.1f}" for parts in fastest.values()), "|")
    whole = fastest["all rows"]["round"]
    print("| of all rows' |", " | ".join(f"{parts['round'] / whole:.3f}" for parts in fastest.values()), "|")


if __name__ == "__main__":
    main()
