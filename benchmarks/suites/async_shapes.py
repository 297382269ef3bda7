"""Data sets like those of the paper on asynchronous boosting, and the trees it grows on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpuboost.benchmarks.data.synthetic import higgs_like, text_like
from gpuboost.benchmarks.harness.experiments import Options
from gpuboost.benchmarks.harness.store import Data


@dataclass(frozen=True)
class Shape:
    """A data set like one of the paper's, and its trees."""

    title: str
    rows: int
    test: int
    columns: int
    per_row: int  # stored entries; 0 if dense
    leaves: int
    trees: int

    def data(self) -> Data:
        if self.per_row:
            return text_like(self.rows, self.test, seed=1, d=self.columns, per_row=self.per_row)
        return higgs_like(self.rows, self.test, seed=1)

    def params(self, threads: int) -> dict[str, Any]:
        """The paper's: 80 % of the features, gradient steps."""
        return {
            "max_depth": 8, "max_leaves": self.leaves, "learners": 0.8, "step": "gradient", "min_child_weight": 0.0,
            "random_state": 0, "n_jobs": threads, "device": "cpu",
        }  # fmt: skip


REAL_SIM = Shape("real-sim-shaped", 72_000, 8000, 20_958, 52, 100, 100)
HIGGS = Shape("higgs-shaped", 200_000, 50_000, 28, 0, 20, 100)
E2006 = Shape("E2006-log1p-shaped, a tenth of its columns", 16_087, 1000, 427_000, 600, 100, 100)
SMALL = {
    "real-sim": Shape("small real-sim-shaped", 4000, 1000, 2000, 20, 31, 30),
    "higgs": Shape("small higgs-shaped", 4000, 1000, 28, 0, 20, 30),
    "e2006": Shape("small E2006-shaped", 1500, 200, 10_000, 60, 31, 30),
}


def shape_of(options: Options, name: str) -> Shape:
    return SMALL[name] if options.small else {"real-sim": REAL_SIM, "higgs": HIGGS, "e2006": E2006}[name]
