"""Held-out quality on real data: 200 trees, depth 6, rate 0.1, the rest each library's own defaults."""

from __future__ import annotations

from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.harness.cases import Case, Setting, Suite

COMMON = Setting(trees=200, matched=False, warm_up=False)

SUITE = Suite(
    name="quality",
    title="Held-out quality on real data sets",
    kind="quality",
    repeats=1,  # every library here is deterministic for a seed and a number of threads
    cases=tuple(
        Case(
            name=make.__name__,
            title=(make.__doc__ or make.__name__).strip(),
            make=make,
            arguments={},
            setting=COMMON,
            small={"rows": 2000},
            verdict="accuracy" if make is real.agaricus else None,  # every library ends at a loss of almost 0
        )
        for make in real.SETS
    ),
)
