"""Categorical columns: the encodings of this library, and other libraries at their own."""

from __future__ import annotations

from typing import Any

from gpuboost.benchmarks.data import real, synthetic
from gpuboost.benchmarks.harness.cases import Case, Setting, Suite

RIVALS = ("xgboost", "lightgbm", "catboost")
PEERS = ("gpuboost-partition", "gpuboost-ordered", *RIVALS)
SETTING = Setting(trees=200, matched=False)


def _case(name: str, title: str, make: Any, small: dict[str, Any], **arguments: Any) -> Case:
    return Case(name, title, make, arguments, SETTING, peers=PEERS, small=small, rivals=RIVALS)


FEW: dict[str, Any] = {"rows": 1000}

SUITE = Suite(
    name="categories",
    title="Categorical columns: held-out quality, and seconds of the fit; 200 trees of depth 6, rate 0.1",
    kind="quality",
    repeats=1,  # every library here is deterministic for a seed and a number of threads
    cases=(
        _case("amazon", "32,769 rows, nine columns of up to 7,518 ids", real.amazon, FEW),
        _case("adult", "48,842 rows, 8 of 14 columns categorical, up to 42 categories", real.adult, FEW),
        _case("bank", "45,211 rows, 9 of 16 columns categorical, up to 12 categories", real.bank, FEW),
        _case("diamonds", "53,940 rows, 3 of 9 columns categorical, up to 8 categories", real.diamonds, FEW),
        _case("freMTPL2freq", "678,013 rows, 4 of 9 columns categorical, up to 22", real.freMTPL2freq, FEW),
        _case(
            "zipf",
            "5,000 categories of Zipf frequency, 20,000 rows",
            synthetic.categories,
            {"n": 1000, "k": 300},
            n=20_000,
            n_test=10_000,
            k=5000,
            seed=0,
            zipf=True,
        ),
        _case(
            "few-rows",
            "3,000 categories of equal frequency, 8,000 rows",
            synthetic.categories,
            {"n": 1000, "k": 300},
            n=8000,
            n_test=10_000,
            k=3000,
            seed=0,
        ),
    ),
)
