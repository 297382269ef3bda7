"""``feature_costs=``: penalties on the gains of splits (cost-efficient gradient boosting)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_real
from gpuboost.errors import RecipeError, shown
from gpuboost.keys import Key
from gpuboost.learners.selection import Selection, SelectionTraits
from gpuboost.records import dataclass, declared
from gpuboost.types import Candidates, ColumnCosts, Cuts, Ensemble, Nodes, SplitCosts, Structure


@dataclass(frozen=True, slots=True)
class FeatureCosts:
    """Costs of features and of splits, which the gain of a split must exceed (Peter et al. 2017; LightGBM's ``cegb``).

    A split is made where its gain is above ``tradeoff * (feature + split * rows of the node)``. A feature is paid for
    until a tree of the model is split by it; from the next round on it is free. So columns that are expensive to
    measure are used where they are worth it, and trees are shallow where depth costs time.

    Parameters
    ----------
    feature : number, (d,) numbers, or mapping from names or numbers of columns to numbers
        Cost of the first use of a column, in units of gain (``cegb_penalty_feature_coupled``). Columns that a mapping
        leaves out cost nothing.
    split : float
        Cost of a split for each row of its node (``cegb_penalty_split``). Rows are the node's share of the curvature
        times the rows of the tree.
    tradeoff : float
        Factor of all costs (``cegb_tradeoff``).

    Raises
    ------
    RecipeError
        If a number is negative or not finite.
    """

    feature: Any = 0.0
    split: float = 0.0
    tradeoff: float = 1.0

    def __post_init__(self) -> None:
        for name in ("split", "tradeoff"):
            _check(name, getattr(self, name))
        costs = self.feature
        if isinstance(costs, Mapping):
            for name, cost in costs.items():
                _check(f"feature[{name!r}]", cost)
            object.__setattr__(self, "feature", dict(costs))
        elif isinstance(costs, (Sequence, np.ndarray)) and not isinstance(costs, (str, bytes)) and np.ndim(costs) == 1:
            for f, cost in enumerate(costs):
                _check(f"feature[{f}]", cost)
            object.__setattr__(self, "feature", tuple(float(cost) for cost in costs))
        else:
            _check("feature", costs)


def _check(name: str, value: Any) -> None:
    if not is_real(value, 0.0):
        raise RecipeError(f"feature_costs: {name} must be a finite number of at least 0; got {shown(value)}.")


@dataclass(slots=True, eq=False)
class ChargedDraw:
    """The draws of a prepared rule, with the costs of features that no tree was split by yet."""

    rule: Selection
    costs: ColumnCosts
    cuts: Cuts
    used: NDArray[np.bool_] = field(init=False)  # (columns of X,)
    bill: SplitCosts = field(init=False)

    def __post_init__(self) -> None:
        self.used = np.zeros(len(self.costs.columns), np.bool_)
        self._write_bill()

    def draw(self, n_groups: int, key: Key) -> Candidates:
        return replace(self.rule.draw(n_groups, key), costs=self.bill)

    def observe(self, structures: Sequence[Structure]) -> None:
        """Note the features of the round's trees."""
        self._note(structure.nodes for structure in structures)
        observe = declared(SelectionTraits, self.rule).observe
        if observe is not None:
            observe(structures)

    def recall(self, ensemble: Ensemble) -> None:
        """Note the features of a model to continue."""
        self._note(tree.nodes for tree in ensemble.trees)
        recall = declared(SelectionTraits, self.rule).recall
        if recall is not None:
            recall(ensemble)

    def _note(self, trees: Iterable[Nodes]) -> None:
        before = self.used.copy()
        for nodes in trees:
            for f in np.unique(nodes.feature[nodes.feature >= 0]):
                self.used[list(self._columns_of(int(f)))] = True
        if (before != self.used).any():
            self._write_bill()

    def _write_bill(self) -> None:
        left = np.where(self.used, 0.0, self.costs.columns)
        sums = [sum(float(left[c]) for c in self._columns_of(f)) for f in range(self.cuts.n_features)]
        self.bill = SplitCosts(np.array(sums), self.costs.by_row)

    def _columns_of(self, f: int) -> tuple[int, ...]:
        """The columns of X that a feature is made of."""
        column = int(self.cuts.columns[f])
        return (column,) if self.costs.made_of is None else self.costs.made_of[column]


def charged(rule: Selection, costs: ColumnCosts | None, cuts: Cuts) -> Selection:
    """The prepared rule, with the costs of its learners, if there are any."""
    return rule if costs is None else ChargedDraw(rule, costs, cuts)
