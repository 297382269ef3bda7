"""The four norms of RGBM (definition 3.2): mean correlation of the best learner under random-then-greedy selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_integer
from gpuboost.errors import InputError, shown


def rank_chances(k: int, t: int) -> NDArray[np.float64]:
    """(k,) gamma_t^k(j) = C(k - j, t - 1) / C(k, t), j = 1 .. k: how likely the best of t drawn from k has rank j.

    Raises InputError unless 1 <= t <= k.
    """
    if not is_integer(k, 1):
        raise InputError(f"k: must be the number of learners or groups, an integer of at least 1; got {k!r}.")
    if not is_integer(t, 1, k):
        raise InputError(f"t: must be from 1 to the number of learners or groups, {k}; got {t!r}.")
    chances, now = np.zeros(k), t / k
    for j in range(k - t + 1):  # the first of 1 .. k - t + 1; later ranks cannot be the best
        chances[j] = now
        now *= (k - j - t) / (k - j - 1) if j + 1 < k else 0.0
    return chances


@dataclass(frozen=True, slots=True)
class SelectionNorm:
    """The mean of the largest correlation among the drawn learners: ||a|| = E max over J of |a_j|.

    Parameters
    ----------
    t : int or None
        How many are drawn; None: all.
    groups : a label for each learner, or None
        What is drawn from: groups of equal labels, or the learners themselves.

    Notes
    -----
    Type 0 is ``SelectionNorm()``, Type 1 ``SelectionNorm(t)``, Type 2 ``SelectionNorm(1, groups)`` and Type 3
    ``SelectionNorm(t, groups)``.
    """

    t: int | None = None
    groups: Any = None

    def __post_init__(self) -> None:
        if self.t is not None and not is_integer(self.t, 1):
            raise InputError(f"t: must be None, or an integer of at least 1; got {shown(self.t)}.")
        if self.groups is not None and not _is_flat(self.groups):
            raise InputError(f"groups: must be a label for each learner, or None; got {shown(self.groups)}.")
        if self.groups is not None:
            object.__setattr__(self, "groups", tuple(np.asarray(self.groups).tolist()))

    def __call__(self, a: Any) -> Any:
        """(K,) correlations to their norm, or (K, m) to (m,)."""
        a = np.abs(np.asarray(a, np.float64))
        best = self._best(a)
        if self.t is None:
            return best.max(axis=0)
        ordered = np.sort(best, axis=0)[::-1]
        return np.tensordot(rank_chances(len(ordered), self.t), ordered, axes=1)

    def sizes(self, k: int) -> tuple[int, int]:
        """The number of groups, and the number of learners of the largest one; k: the number of learners."""
        if not is_integer(k, 1):
            raise InputError(f"k: must be the number of learners, an integer of at least 1; got {shown(k)}.")
        if self.groups is None:
            return k, 1
        counts = np.unique(self._numbers(k), return_counts=True)[1]
        return len(counts), int(counts.max())

    def _best(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.groups is None:
            return a
        numbers = self._numbers(len(a))
        best = np.zeros((int(numbers.max()) + 1, *a.shape[1:]))
        np.maximum.at(best, numbers, a)
        return best

    def _numbers(self, k: int) -> NDArray[np.intp]:
        if len(self.groups) != k:
            raise InputError(f"groups: a label for each learner is needed; got {len(self.groups)} for {k} learners.")
        return np.unique(np.array([str(label) for label in self.groups]), return_inverse=True)[1].ravel()


def _is_flat(labels: Any) -> bool:
    try:
        return np.ndim(np.asarray(labels)) == 1
    except ValueError:  # lists of several lengths
        return False
