"""The additive form of a model: the contribution of each feature, or pair of features, to a score, by bin.

For models whose every part looks at one feature or smoothly at two: components of ``gb.learners``, and stumps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.components import SmoothTerm, TreeComponent, collapsed
from gpuboost.errors import InputError
from gpuboost.types import Cuts, Ensemble, FittedTree, Nodes

Floats = NDArray[np.float64]


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
    """A tree that asks for one feature, as a table of its bins."""
    asked = np.unique(tree.nodes.feature[tree.nodes.feature >= 0])
    if len(asked) > 1:
        _refuse(f"a tree on {len(asked)} features")
    feature = int(asked[0]) if len(asked) else 0
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
