"""``categorical_encoding=``: how trees see categorical columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gpuboost.arguments import is_integer, is_real
from gpuboost.errors import RecipeError, shown
from gpuboost.records import dataclass

PARTITION, ONE_HOT, ORDERED = "partition", "one_hot", "ordered"
AUTO: Literal["auto"] = "auto"
WORDS = (AUTO, PARTITION, ORDERED, ONE_HOT)
MOST_PERMUTATIONS, MOST_JOINED = 64, 3
MOST_WEIGHT = 1e100  # of the prior: beyond it every statistic is the prior


@dataclass(frozen=True, slots=True)
class OrderedTargetStatistics:
    """Categories as numbers: the mean target of their rows (Prokhorenkova et al. 2018, arXiv 1706.09516).

    A training row is given the statistic of the rows before it in a random permutation, and a row to predict that of
    all training rows. For more than two classes there is a statistic for each class.

    Args:
        permutations: a model is the mean of this many sequences of trees, each with a permutation of its own, that grow
            in turn: a fit makes ``permutations * n_estimators`` rounds. Statistics of one permutation are noisy, and
            those of several for one sequence would leak a row's own target.
        prior_weight: rows of the mean target that each category's statistic begins with. ``"auto"``: of each column,
            combination and class, the variance of the target within categories over that between them, at most 1 and at
            least 0.01 (empirical Bayes, as ``smooth="auto"`` of scikit-learn's ``TargetEncoder``).
        combinations: up to this many columns are combined to one category, 1 to 3. Of more than 12 columns, the 12 that
            explain most of the target are combined.
        counts: True: the number of training rows of a category is a feature, too.
        one_hot_max_size: columns of at most this many categories are split by sets of categories, which for two is
            one-hot encoding, and are in no combination.

    Raises:
        RecipeError: if a number is out of its range.
    """

    permutations: int = 4
    prior_weight: float | Literal["auto"] = AUTO
    combinations: int = 2
    counts: bool = True
    one_hot_max_size: int = 2

    def __post_init__(self) -> None:
        _integer("permutations", self.permutations, 1, MOST_PERMUTATIONS)
        _integer("combinations", self.combinations, 1, MOST_JOINED)
        _integer("one_hot_max_size", self.one_hot_max_size, 0, None)
        weight: Any = self.prior_weight
        if not (weight == AUTO if isinstance(weight, str) else is_real(weight, 0.0) and 0.0 < weight <= MOST_WEIGHT):
            _refuse("prior_weight", f"'auto', or a number above 0, at most {MOST_WEIGHT:g}", self.prior_weight)
        if not isinstance(self.counts, bool):
            _refuse("counts", "True or False", self.counts)

    def columns(self, sizes: Mapping[int, int]) -> tuple[int, ...]:
        """The columns that it encodes. sizes: categorical column -> number of its categories."""
        return tuple(f for f, size in sorted(sizes.items()) if size > max(1, self.one_hot_max_size))


def _integer(name: str, value: Any, low: int, high: int | None) -> None:
    if not is_integer(value, low) or (high is not None and value > high):
        _refuse(name, f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}", value)


def _refuse(name: str, rule: str, value: Any) -> None:
    raise RecipeError(f"categorical_encoding: {name} must be {rule}; got {shown(value)}.")


def checked_encoding(value: Any) -> str | OrderedTargetStatistics:
    """The word, or the policy that "ordered" stands for. Raises RecipeError if it is neither."""
    if isinstance(value, OrderedTargetStatistics):
        return value
    if not isinstance(value, str) or value not in WORDS:
        raise RecipeError(
            f"categorical_encoding: must be one of {', '.join(map(repr, WORDS))}, or a gb.OrderedTargetStatistics; "
            f"got {shown(value)}."
        )
    return OrderedTargetStatistics() if value == ORDERED else value
