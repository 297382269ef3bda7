"""Statistics of row sampling in a fit: drawn rows, their weights, and the effective rows of each leaf."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from gpuboost.backends.protocol import Backend
from gpuboost.errors import OutsideTheoryWarning
from gpuboost.records import dataclass
from gpuboost.sampling import ImportanceSampling, Sampling
from gpuboost.types import Array, Drawn, Progress

WARN_ABOVE = 0.001  # share of all curvature in rows that are never drawn; a smaller share is negligible


EVERY = 16
"""Leaf sizes are counted in the first ``EVERY`` rounds and then in every ``EVERY``-th, to save time."""


@dataclass(frozen=True, slots=True)
class LeafSizes:
    """Effective rows of the leaves of one round's trees."""

    round: int  # 0 for the first of the fit
    least: float
    median: float


@dataclass(frozen=True, slots=True)
class SamplingReport:
    """Sampling statistics per round and per leaf.

    Rows of weights v have the effective size (sum v)^2 / sum v^2 (Kish 1965). Here v = w h, with w = 1 / p
    and h the second derivative: the terms of a leaf's denominator.
    """

    rates: tuple[float, ...]  # share of the rows that were drawn
    largest_weights: tuple[float, ...]  # 1 / p, of the rows drawn
    never: tuple[float, ...]  # share of the rows whose probability was 0
    effective: tuple[float, ...]  # effective rows of the sample as a whole; on a GPU of the last round only
    by_leaf: tuple[LeafSizes, ...]  # those of leaves, in the first 16 rounds and in every 16th; on a GPU of the last
    effective_rows: tuple[float, ...]  # those of each leaf of the last round that drew rows

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
    """Recorder of a report during a fit. A GPU is read after the fit, so its effective rows are of the last round."""

    sampling: Sampling
    backend: Backend
    rates: list[float] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)
    never: list[float] = field(default_factory=list)
    effective: list[float] = field(default_factory=list)
    by_leaf: list[LeafSizes] = field(default_factory=list)
    leaves: Callable[[], tuple[float, ...]] = tuple  # effective rows of each leaf of the last round that drew rows
    warned: bool = False
    on_device: Drawn | None = None
    numbers: list[int] = field(default_factory=list)  # of a device's draws, where not each one became a round
    n_rows: int = 0

    def see(self, progress: Progress) -> None:
        drawn, self.n_rows = progress.drawn, progress.scores.shape[1]
        sample: Any = None if drawn is None else drawn.sample
        if hasattr(sample, "log"):
            self.on_device = drawn
            if sample.number is not None:
                self.numbers.append(sample.number)
        if progress.sizes is not None:
            self._count(progress.sizes.rows, progress.sizes.largest, progress.sizes.n_excluded)
            self._weigh(progress.sizes.effective, partial(_effective_rows, progress.sizes.of_leaves))
        elif drawn is not None and isinstance(drawn.sample.rows, np.ndarray):
            weights = np.asarray(drawn.sample.inverse_probability)
            self._count(len(drawn.sample.rows), float(weights.max(initial=0.0)), drawn.sample.n_excluded)
            self._weigh_drawn(drawn)

    def _count(self, rows: int, largest: float, excluded: int) -> None:
        """Rows of the newest round."""
        self.rates.append(rows / self.n_rows)
        self.largest.append(largest)
        self.never.append(excluded / self.n_rows)

    def _weigh(self, effective: float, leaves: Callable[[], tuple[float, ...]], *, by_leaf: bool = False) -> None:
        """Effective rows of the newest round, and of its leaves, which are computed in few rounds."""
        number, self.leaves = len(self.rates) - 1, leaves
        self.effective.append(effective)
        if (by_leaf or number < EVERY or number % EVERY == 0) and (of_leaves := leaves()):
            self.by_leaf.append(LeafSizes(number, min(of_leaves), float(np.median(of_leaves))))

    def _weigh_drawn(self, drawn: Drawn, *, by_leaf: bool = False) -> None:
        """The same from the rows themselves."""
        self._weigh(_effective(drawn), partial(effective_rows, drawn), by_leaf=by_leaf)
        if drawn.sample.n_excluded and drawn.target.own_leaves and not self.warned and _by_gradient(self.sampling):
            self._warn(drawn)

    def _warn(self, drawn: Drawn) -> None:
        """Warn of rows of probability 0: they may have no gradient, but count in the denominators of leaves."""
        lost = curvature_lost(drawn)
        if lost > WARN_ABOVE:
            self.warned = True
            warnings.warn(
                f"sampling: {self.never[-1]:.1%} of rows have sampling probability 0 but positive second derivative: "
                f"leaf denominators are biased by factor {1.0 - lost:.2f}. Give a floor above 0.",
                OutsideTheoryWarning,
                stacklevel=2,
            )

    def _fetch(self, on_device: Drawn) -> None:
        """Read the device's records of all rounds, and its last draw."""
        from gpuboost.backends.cuda.draws import fetched

        drawn, draws = fetched(on_device, self.backend.to_host, self.numbers)
        self.rates += (draws["rows"] / self.n_rows).tolist()
        self.largest += draws["largest"].astype(np.float64).tolist()
        self.never += (draws["excluded"] / self.n_rows).tolist()
        self._weigh_drawn(drawn, by_leaf=True)

    def report(self) -> SamplingReport | None:
        """The report; None if no round sampled rows."""
        if self.on_device is not None:
            self._fetch(self.on_device)
            self.on_device = None
        if not self.rates:
            return None
        return SamplingReport(
            tuple(self.rates),
            tuple(self.largest),
            tuple(self.never),
            tuple(self.effective),
            tuple(self.by_leaf),
            self.leaves(),
        )


def _curvature(drawn: Drawn) -> tuple[Array, Any]:
    """(k, m) float32 curvature of the drawn rows times 1 / p, and their multiplicity."""
    rows, h, m = drawn.sample.rows, drawn.target.gradients.h, drawn.target.gradients.multiplicity
    if drawn.target.rows is None:
        h, m = h[:, rows], None if m is None else m[rows]
    return h, 1.0 if m is None else m


def _effective(drawn: Drawn) -> float:
    h, times = _curvature(drawn)
    weight = (h[0] if len(h) == 1 else h.sum(axis=0)).astype(np.float64)
    weight *= times
    if not len(weight):
        return 0.0
    total = float(np.cumsum(weight)[-1])  # in the order of the rows, as ``kernels.growth.repeated_draws`` adds them
    squares = float(np.cumsum(np.square(weight, out=weight))[-1])
    return total**2 / squares if squares > 0.0 else 0.0


def effective_rows(drawn: Drawn) -> tuple[float, ...]:
    """Effective sample size of each leaf that holds a drawn row with curvature, tree by tree."""
    rows, (h, times) = drawn.sample.rows, _curvature(drawn)
    sizes: list[float] = []
    for output, leaf_of_row in enumerate(drawn.leaves):
        if leaf_of_row is None:  # a component has no leaves
            continue
        leaf, weight = leaf_of_row[rows], h[output].astype(np.float64) * times
        sizes += _effective_rows(np.stack([np.bincount(leaf, weight), np.bincount(leaf, weight * weight)]))
    return tuple(sizes)


def _effective_rows(of_leaves: Array) -> tuple[float, ...]:
    """The same from ``SampleSizes.of_leaves``."""
    sums, squares = of_leaves[:, of_leaves[1] > 0.0]
    return tuple((sums**2 / squares).tolist())


def _by_gradient(sampling: Sampling) -> bool:
    """True if rows without a gradient are never drawn, whatever their second derivative."""
    return isinstance(sampling, ImportanceSampling) and sampling.kappa == 0.0 and not sampling.weighs_losses


def curvature_lost(drawn: Drawn) -> float:
    """Share of the second derivatives that is in rows without a gradient, which a score of |g| alone never draws."""
    g, h = np.asarray(drawn.gradients.g), np.asarray(drawn.gradients.h, np.float64)
    total = float(h.sum())
    return float(h[:, ~(g != 0.0).any(axis=0)].sum()) / total if total > 0.0 else 0.0
