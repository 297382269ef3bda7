"""The additive form of a model: the contribution of each feature, or pair of features, to a score, by bin.

For models whose every part looks at one feature or smoothly at two: components of ``gb.learners``, and stumps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.components import SmoothTerm, TreeComponent, collapsed
from gpuboost.errors import InputError
from gpuboost.records import dataclass
from gpuboost.types import Cuts, Ensemble, FittedTree, Nodes

Floats = NDArray[np.float64]

LINE = "linear"
"""The family whose second coefficient is a slope."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of one feature, (bins + 1,), the last for a missing value; or of two, (bins + 1, bins + 1)."""

    features: tuple[int, ...]  # of the cuts
    output: int
    values: Floats
    coefficients: tuple[tuple[str, Floats], ...]  # of each family, if it has them
    has_missing: bool = False  # True if missing values have a term of their own


def effects(model: Any) -> list[Effect]:
    """Effects of a fitted estimator or an ensemble: scores are its bias plus their sum.

    Raises:
        InputError: if the model is not additive; the message names the part that is not.
    """
    ensemble = model if isinstance(model, Ensemble) else getattr(model, "ensemble_", None)
    if not isinstance(ensemble, Ensemble):
        raise InputError(f"model: a fitted gpuboost estimator or an Ensemble has effects; got {model!r}. Fit it.")
    _refuse_statistics(model)
    smooth, rest = collapsed(ensemble)
    values: dict[tuple[int, tuple[int, ...]], Floats] = {}
    coefficients: dict[tuple[int, tuple[int, ...]], list[tuple[str, Floats]]] = {}
    missing: set[tuple[int, tuple[int, ...]]] = set()
    trees = [*zip(ensemble.trees, ensemble.factors[: len(ensemble.trees)], strict=True)]
    for component, factor in rest:
        if isinstance(component, TreeComponent) and component.slopes is None:
            trees.append((component.tree, factor))
        else:
            _refuse(type(component).__name__)
    for term in smooth:
        key = term.output, term.space.grid.features
        effect = ensemble.scale * _by_bin(term, ensemble.cuts)
        values[key] = values[key] + effect if key in values else effect
        coefficients.setdefault(key, []).append((term.space.family, ensemble.scale * term.coefficients))
        grid = term.space.grid
        if len(key[1]) == 1 and grid.cells[0][ensemble.cuts.n_bins[key[1][0]]] < grid.n_cells - 1:
            missing.add(key)
    for tree, factor in trees:
        feature, by_bin = _by_one_feature(tree, ensemble.cuts)
        key, effect = (tree.output, (feature,)), (ensemble.scale * factor) * by_bin
        values[key] = values[key] + effect if key in values else effect
        if not np.isin(by_bin[-1], by_bin[[0, -2]]):
            missing.add(key)
    return [
        Effect(key[1], key[0], values[key], tuple(coefficients.get(key, ())), key in missing) for key in sorted(values)
    ]


def _refuse_statistics(model: Any) -> None:
    if getattr(getattr(model, "columns_", None), "statistics", None) is not None:
        raise InputError(
            "model: its trees see target statistics of categories, and have no effect by column of X. Fit it with "
            "categorical_encoding='partition'; predict_contributions explains rows."
        )


def slopes(ensemble: Ensemble) -> Floats:
    """(d,) slopes of the lines in each column, (k, d) for k > 1 scores.

    Raises:
        InputError: if the model holds anything but lines.
    """
    smooth, rest = collapsed(ensemble)
    others = [type(component).__name__ for component, _ in rest] + ["a tree" for _ in ensemble.trees]
    others += [term.space.family for term in smooth if term.space.family != LINE]
    if others or not smooth:
        seen = others[0] if others else "nothing"
        raise InputError(
            f"coef_: it is of models of straight lines, and this one holds {seen}. Use gb.learners.Linear."
        )
    coef = np.zeros((ensemble.n_outputs, ensemble.cuts.n_columns))
    for term in smooth:
        column = int(ensemble.cuts.columns[term.space.grid.features[0]])
        coef[term.output, column] += ensemble.scale * term.coefficients[1]  # after the constant: see Linear.space
    return coef[0] if len(coef) == 1 else coef


def _by_bin(term: SmoothTerm, cuts: Cuts) -> Floats:
    """The function of a space for every bin, or pair of bins."""
    space, coefficients = term.space, term.coefficients
    cells = np.zeros(space.grid.n_cells)
    for i in range(space.basis.shape[1]):
        index = np.minimum(space.first + i, space.size - 1)
        cells[:-1] += np.where(space.first + i < space.size, space.basis[:, i] * coefficients[index], 0.0)
    cells[-1] = np.cumsum(space.mean * coefficients)[-1]
    cell_of_bin = [
        of_bin[: cuts.n_bins[f] + 1] for f, of_bin in zip(space.grid.features, space.grid.cells, strict=True)
    ]
    return np.asarray(
        cells[cell_of_bin[0]] if len(cell_of_bin) == 1 else cells[cell_of_bin[0][:, None] + cell_of_bin[1]]
    )


def _by_one_feature(tree: FittedTree, cuts: Cuts) -> tuple[int, Floats]:
    """A tree of one feature, as a table of its bins."""
    split = np.unique(tree.nodes.feature[tree.nodes.feature >= 0])
    if len(split) > 1:
        _refuse(f"a tree on {len(split)} features")
    feature = int(split[0]) if len(split) else 0
    b = int(cuts.n_bins[feature])
    return feature, np.array(
        [tree.value[_leaf(tree.nodes, c, b, cuts.categories[feature] is not None)] for c in range(b + 1)]
    )


def _leaf(nodes: Nodes, code: int, b: int, categorical: bool) -> int:
    node = 0
    while nodes.feature[node] >= 0:
        if code == b:
            left = bool(nodes.missing_left[node])
        elif categorical:
            left = bool(nodes.left_set[node, code // 32] >> np.uint32(code % 32) & 1)
        else:
            left = code <= nodes.bin[node]
        node = int(nodes.left[node] if left else nodes.right[node])
    return node


def _refuse(part: str) -> None:
    raise InputError(
        f"model: it has no additive form, as it holds {part}. Effects of single features add up for families of "
        "gb.learners other than LinearTree and deeper trees, and for max_depth=1."
    )
