"""``gpuboost predict``: a saved model and a table in, a CSV out."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from io import TextIOWrapper
from typing import Any, TextIO

import numpy as np

from gpuboost.cli.tables import check_place, holds_text, names_of, read, selected
from gpuboost.data.formats.text_table import other_separator
from gpuboost.errors import InputError
from gpuboost.storage import writing


def run(options: argparse.Namespace) -> int:
    """Predict a file of rows with a saved model."""
    import gpuboost

    model: Any = gpuboost.load_model(options.model)
    _check(options, model)
    form = {"kind": options.format, "one_based": _counts_from_one(model), "text": _text_columns(model)}
    form |= {"n_features": model.n_features_in_, "separator": options.sep}
    form |= {"decimal": options.decimal, "thousands": options.thousands}
    rows = read(options.data, offset=options.offset, **form)
    x = _columns(model, rows.x, options.data)
    offset = {} if rows.offset is None else {"init_score": rows.offset}
    lines: Iterable[Sequence[Any]]
    if options.uncertainty:
        header, lines = _uncertainty(model, x)
    elif options.proba:
        header = [f"p({label})" for label in model.classes_]
        lines = model.predict_proba(x, **offset).tolist()
    else:
        header, lines = _predictions(model, model.predict(x, **offset))
    if not options.output:
        _write(sys.stdout, header, lines)
        return 0
    with writing(options.output) as file:
        out = TextIOWrapper(file, "utf-8", newline="")
        _write(out, header, lines)
        out.detach()  # flushes, and leaves the file open
    return 0


def _check(options: argparse.Namespace, model: Any) -> None:
    """Refuse options that the model cannot follow, before any work."""
    if options.proba and not hasattr(model, "classes_"):
        kind = "ranking" if hasattr(model, "eval_at") else "regression"
        raise InputError(f"--proba: {options.model} is a {kind} model, it has no classes; leave --proba out.")
    if options.offset and options.uncertainty:
        raise InputError("--offset: models trained with --langevin have no offsets; leave it out.")
    if options.proba and options.uncertainty:
        raise InputError("--uncertainty: has the mean probability of each class already; leave --proba out.")
    if options.output and options.output.lower().endswith(".parquet"):
        raise InputError(f"--output: predictions are written as CSV; got {options.output}. Let its name end in .csv.")
    if options.output:
        check_place("--output", options.output, options.data, options.model)


def _counts_from_one(model: Any) -> bool:
    """True if the model was trained on a LETOR file, whose columns are named by their indices."""
    names = getattr(model, "feature_names_in_", None)
    return names is not None and list(names) == [str(i + 1) for i in range(len(names))]


def _text_columns(model: Any) -> list[str]:
    """Names of the columns whose categories are text, which they stay in a file where all look like numbers."""
    columns = model.columns_
    return [name for name, listed in zip(columns.names or (), columns.categories, strict=False) if holds_text(listed)]


def _predictions(model: Any, predicted: Any) -> tuple[list[str], Iterable[Sequence[Any]]]:
    """One column, or one for each quantile or target of a model of several."""
    if predicted.ndim == 1:
        return ["prediction"], ([value] for value in predicted.tolist())
    levels = getattr(model.loss_, "alpha", range(predicted.shape[1]))
    return [f"prediction({level:g})" for level in levels], predicted.tolist()


def _uncertainty(model: Any, x: Any) -> tuple[list[str], list[list[float]]]:
    """The mean of the draws and the three variances or entropies, for a model trained with --langevin; of several
    targets those of each."""
    if not hasattr(model, "predict_uncertainty"):
        raise InputError("--uncertainty: a ranking has none; leave it out.")
    uncertainty = model.predict_uncertainty(x)
    header, blocks = [], []
    for name in ("mean", "total", "data", "knowledge"):
        values = getattr(uncertainty, name)
        several = [""] if values.ndim == 1 else [f"({number})" for number in range(values.shape[1])]
        header += [name + number for number in several]
        blocks.append(values.reshape(len(values), -1))
    if hasattr(model, "classes_"):
        header[: len(model.classes_)] = [f"p({label})" for label in model.classes_]
    return header, np.concatenate(blocks, axis=1).tolist()


def _columns(model: Any, x: Any, path: str) -> Any:
    """The model's own columns of a table that may hold others, such as the target."""
    names, there = getattr(model, "feature_names_in_", None), names_of(x)
    if names is None or there is None:
        return x
    lacking = [name for name in names if name not in there]
    if lacking:
        shown = ", ".join(map(str, lacking[:5])) + other_separator(there)
        raise InputError(f"{path}: lacks {len(lacking)} of the model's columns: {shown}.")
    return selected(x, list(names))


def _write(out: TextIO, header: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)  # floats in as many digits as bring them back exactly
