"""What row sampling came to in a fit: how many rows, with what weights, and how much they say of each leaf."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from gpuboost.errors import OutsideTheoryWarning
from gpuboost.sampling import ImportanceSampling, Sampling
from gpuboost.types import Drawn, Progress

WARN_ABOVE = 0.001  # share of all curvature that is in rows that are never drawn; below it hardly matters


@dataclass(frozen=True, slots=True)
class SamplingReport:
    """Round by round, and the leaves of the last one."""

    rates: tuple[float, ...]  # share of the rows that were drawn
    largest_weights: tuple[float, ...]  # 1 / p, of the rows drawn
    never: tuple[float, ...]  # share of the rows whose probability was 0
    effective_rows: tuple[float, ...]  # (sum w h)^2 / sum (w h)^2 of each leaf of the last round that drew rows

    @property
    def mean_rate(self) -> float:
        """The mean of the rates: the average sample ratio per iteration (ASRI) of the SMART paper."""
        return float(np.mean(self.rates)) if self.rates else 1.0

    @property
    def largest_weight(self) -> float:
        return max(self.largest_weights, default=1.0)

    def __str__(self) -> str:
        text = f"{self.mean_rate:.4g} of the rows a round, weights up to {self.largest_weight:.4g}"
        if self.effective_rows:
            text += f", {min(self.effective_rows):.4g} to {max(self.effective_rows):.4g} effective rows a leaf"
        if any(self.never):
            text += f", up to {max(self.never):.1%} of the rows never drawn"
        return text


@dataclass(slots=True)
class SamplingRecord:
    """Fills a report while a fit goes on. What a device draws stays there, and leaves no report."""

    sampling: Sampling
    rates: list[float] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)
    never: list[float] = field(default_factory=list)
    drawn: Drawn | None = None
    warned: bool = False

    def see(self, progress: Progress) -> None:
        drawn = progress.drawn
        if drawn is None or not isinstance(drawn.sample.rows, np.ndarray):
            return
        n, weights = progress.scores.shape[1], np.asarray(drawn.sample.inverse_probability)
        self.rates.append(len(drawn.sample.rows) / n)
        self.largest.append(float(weights.max(initial=0.0)))
        self.never.append(drawn.sample.never / n)
        self.drawn = drawn
        if drawn.sample.never and drawn.target.own_leaves and not self.warned and _by_gradient(self.sampling):
            self._warn(drawn)

    def _warn(self, drawn: Drawn) -> None:
        """Rows of probability 0 may have no gradient to lose, but they have a part in the denominators of leaves."""
        lost = curvature_lost(drawn)
        if lost > WARN_ABOVE:
            self.warned = True
            warnings.warn(
                f"sampling: {self.never[-1]:.1%} of rows have sampling probability 0 but positive second derivative: "
                f"leaf denominators are biased by factor {1.0 - lost:.2f}. Give a floor above 0.",
                OutsideTheoryWarning,
                stacklevel=2,
            )

    def report(self) -> SamplingReport | None:
        """None if every round had every row."""
        if not self.rates:
            return None
        leaves = () if self.drawn is None else effective_rows(self.drawn)
        return SamplingReport(tuple(self.rates), tuple(self.largest), tuple(self.never), leaves)


def effective_rows(drawn: Drawn) -> tuple[float, ...]:
    """Of each leaf that holds a drawn row with curvature, tree by tree."""
    rows, h = drawn.sample.rows, drawn.target.gradients.h
    h = h if drawn.target.rows is not None else h[:, rows]
    m = drawn.target.gradients.multiplicity
    times = 1.0 if m is None else m if drawn.target.rows is not None else m[rows]
    found: list[float] = []
    for output, leaf_of_row in enumerate(drawn.leaves):
        leaf, weight = leaf_of_row[rows], h[output].astype(np.float64) * times
        sums, squares = np.bincount(leaf, weight), np.bincount(leaf, weight * weight)
        found += (sums[squares > 0.0] ** 2 / squares[squares > 0.0]).tolist()
    return tuple(found)


def _by_gradient(sampling: Sampling) -> bool:
    """Whether rows without a gradient are never drawn, whatever their second derivative."""
    return isinstance(sampling, ImportanceSampling) and sampling.kappa == 0.0 and not sampling.weighs_losses


def curvature_lost(drawn: Drawn) -> float:
    """Share of the second derivatives that is in rows without a gradient, which a score of |g| alone never draws."""
    g, h = np.asarray(drawn.gradients.g), np.asarray(drawn.gradients.h, np.float64)
    total = float(h.sum())
    return float(h[:, ~(g != 0.0).any(axis=0)].sum()) / total if total > 0.0 else 0.0
