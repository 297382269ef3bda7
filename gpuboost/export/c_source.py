"""A model as one C file without dependencies, for programs and devices that have a C compiler and no Python."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from gpuboost.errors import InputError
from gpuboost.export.plain import PlainModel, PlainTree, plain
from gpuboost.storage import write
from gpuboost.types import Ensemble

_LINE = 116  # characters

_TAKEN = {
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
    "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "bool",
    "true", "false", "begin", "output", "column", "left", "right", "missing_left", "number", "first_code",
    "last_code", "listed_left", "codes", "bias", "goes_left", "isnan", "main",
}  # fmt: skip
"""Names that a function in the file cannot have"""

_PROGRAM = """\
/* Scores of a gradient boosting model, written by gpuboost. C99, no dependency but <math.h> for isnan.

   void {name}(const double *x, double *scores)

   x: {columns} numbers{names}; NaN is missing{codes}.
   scores: {outputs} number(s), the bits of gpuboost's scores. {link}
*/
#include <math.h>

#pragma STDC FP_CONTRACT OFF

static const int begin[] = {{{begin}}};
static const int output[] = {{{output}}};
static const int column[] = {{{column}}};
static const int left[] = {{{left}}};
static const int right[] = {{{right}}};
static const unsigned char missing_left[] = {{{missing_left}}};
static const double number[] = {{{number}}};
static const int first_code[] = {{{first_code}}};
static const int last_code[] = {{{last_code}}};
static const unsigned char listed_left[] = {{{listed_left}}};
static const int codes[] = {{{codes_listed}}};
static const double bias[] = {{{bias}}};

static int goes_left(int node, double value)
{{
    int low = first_code[node], high = last_code[node], i;
    if (low < 0)
        return isnan(value) ? missing_left[node] : value <= number[node];
    for (i = low; i < high; i++)
        if (value == (double)codes[i])
            return listed_left[node];
    return !listed_left[node];
}}

void {name}(const double *x, double *scores)
{{
    int tree, k;
    for (k = 0; k < {outputs}; k++)
        scores[k] = {start};
    for (tree = 0; tree < {trees}; tree++) {{
        int node = begin[tree];
        while (column[node] >= 0)
            node = begin[tree] + (goes_left(node, x[column[node]]) ? left[node] : right[node]);
        scores[output[tree]] += number[node];
    }}{finish}
}}
"""

_LINKS = {
    "identity": "They are the predictions.",
    "logistic": "The share, or the probability of the second class or of each label, is 1 / (1 + exp(-{scale}score)).",
    "softmax": "Probabilities of the classes are exp(score) over the sum of these.",
    "log": "The prediction is exp(score).",
}


def to_c(model: Any, path: str | os.PathLike[str] | None = None, *, function: str = "gpuboost_scores") -> str:
    """The text of a C file with one function that computes the scores of a row, written to the path if one is given.

    The scores have the bits of ``decision_function`` or, for a regression, of the score before the link; the comment at
    the top says how predictions come from them. Compile it without ``-ffast-math``. Categories are codes, which
    ``model.columns_.encode(X)`` makes. (CatBoost: ``save_model(format="cpp")``; LightGBM: ``convert_model``.)

    Parameters
    ----------
    model : fitted estimator, or its ``ensemble_``
    path : path, optional
    function : str
        Name of the function: letters, digits and underscores, and no name that C or the file has already.

    Raises
    ------
    InputError
        If the model cannot be exported, or the name is none of C.
    """
    asked: Any = function
    if not isinstance(asked, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", asked) or asked in _TAKEN:
        raise InputError(
            "function: must be a name of C: letters, digits and underscores, no keyword, and no other name in the "
            f"file, such as 'bias'; got {asked!r}."
        )
    plain_model = plain(model)  # refuses what cannot be exported
    ensemble: Ensemble = model if isinstance(model, Ensemble) else model.ensemble_
    scores = plain(replace(ensemble, scale=1.0, scales=()))
    shrunk = ensemble.scale != 1.0
    trees = scores.trees
    sizes = [len(tree.column) for tree in trees]
    codes = _codes(trees)
    names = "" if plain_model.names is None else f", the columns {', '.join(map(_comment, plain_model.names))}"
    text = _PROGRAM.format(
        name=function,
        columns=plain_model.n_columns,
        names=names,
        codes=", and categories are codes" if plain_model.is_categorical.any() else "",
        outputs=ensemble.n_outputs,
        link=_of_predictions(model, plain_model, ensemble),
        begin=_listed(np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist()),
        output=_listed(tree.output for tree in trees),
        column=_listed(c for tree in trees for c in tree.column.tolist()),
        left=_listed(c for tree in trees for c in tree.left.tolist()),
        right=_listed(c for tree in trees for c in tree.right.tolist()),
        missing_left=_listed(int(c) for tree in trees for c in tree.missing_left.tolist()),
        number=_listed(_number(c) for tree in trees for c in np.where(tree.column < 0, tree.value, tree.threshold)),
        first_code=_listed(first for first, _, _ in codes),
        last_code=_listed(last for _, last, _ in codes),
        listed_left=_listed(int(to_left) for _, _, to_left in codes),
        codes_listed=_listed([*(c for tree in trees for i in sorted(tree.listed) for c in tree.listed[i]), 0]),
        bias=_listed(_number(value) for value in ensemble.bias),
        start="0.0" if shrunk else "bias[k]",
        trees=len(trees),
        finish=_shrinking(ensemble) if shrunk else "",
    )  # fmt: skip
    if path is not None:
        write(path, text.encode("ascii"))
    return text


def _of_predictions(model: Any, plain_model: PlainModel, ensemble: Ensemble) -> str:
    """A sentence that says how predictions come from the scores."""
    if len(plain_model.bias) < ensemble.n_outputs:  # a loss whose other scores are of the spread
        return "The first one is the prediction, the mean."
    by = getattr(getattr(model, "loss_", None), "link_scale", 1.0)
    return _LINKS[plain_model.link].format(scale="" if by == 1.0 else f"{by:g} * ")


def _shrinking(ensemble: Ensemble) -> str:
    """Lines of C that turn the sum of the trees into scores of a shrunken model.

    The product is volatile: GCC ignores the pragma above, and would fuse it with the sum.
    """
    return f"""
    for (k = 0; k < {ensemble.n_outputs}; k++) {{
        volatile double scaled = {_number(ensemble.scale)} * scores[k];
        scores[k] = bias[k] + scaled;
    }}"""


def _codes(trees: list[PlainTree]) -> list[tuple[int, int, bool]]:
    """First and last + 1 place of the listed codes of each node, and their side; -1, -1 for a numeric node."""
    places, code_ranges = 0, []
    for tree in trees:
        for i in range(len(tree.column)):
            if i in tree.listed:
                code_ranges.append((places, places + len(tree.listed[i]), tree.listed_left[i]))
                places += len(tree.listed[i])
            else:
                code_ranges.append((-1, -1, False))
    return code_ranges


def _number(value: float) -> str:
    """A double as C reads it to the same bits."""
    return float(value).hex()


def _listed(items: Iterable[Any]) -> str:
    """The items with commas, in lines."""
    lines, line = [], ""
    for item in items:
        text = f"{item}, "
        if len(line) + len(text) > _LINE:
            lines.append(line.rstrip())
            line = ""
        line += text
    return "\n    ".join([*lines, line.rstrip().rstrip(",")])


def _comment(name: str) -> str:
    """A name in a comment of C: in ASCII, and without its end."""
    return ascii(name)[1:-1].replace("*/", "* /")
