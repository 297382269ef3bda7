"""The model file: JSON of one documented format (docs/model_file.md), the same bytes for the same model.

Floats are written as the shortest text that reads back to the same bits, so a loaded model predicts the same bits and
is saved again as the same bytes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.model import strict_json as strict
from gpuboost.model.component_json import KEYS as COMPONENT_KEYS
from gpuboost.model.component_json import components_from, largest, lines_of
from gpuboost.model.forest_json import sharing_tree_from, trees_from
from gpuboost.model.tree_json import TreeFeatures, cuts_from, cuts_lines, shares, tree_line
from gpuboost.records import dataclass
from gpuboost.storage import write
from gpuboost.types import Ensemble, FittedTree

FORMAT, VERSION = "gpuboost", 5
CONFORMAL = "gpuboost conformal predictor"
"""The format of another file, which holds model files."""
# A model is written as the first version that says all of it. 3 has target statistics, 4 may have them, 5 has them and
# may have shared nodes.
PLAIN, WITH_COMPONENTS, WITH_STATISTICS, WITH_SHARED_NODES, WITH_PRIOR_WEIGHTS = 1, 2, 3, 4, 5

KEYS = ("format", "version", "loss", "columns", "parameters", "extra", "bias", "scale", "features", "trees")


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """The content of a model file."""

    ensemble: Ensemble
    loss: dict[str, Any]
    columns: dict[str, Any]
    parameters: dict[str, Any]
    extra: dict[str, Any]


def to_json(
    ensemble: Ensemble,
    loss: dict[str, Any],
    columns: dict[str, Any],
    parameters: dict[str, Any],
    extra: dict[str, Any],
) -> str:
    """The text of a model file, one line per feature and per tree, in ASCII.

    The four dictionaries hold JSON values and are written with their keys sorted.

    Raises:
        InputError: if a number of the model is not finite, or a dictionary holds what JSON cannot.
    """
    version = WITH_STATISTICS if "statistics" in columns else WITH_COMPONENTS if ensemble.components else PLAIN
    sharing = _sharing(ensemble)
    version = WITH_SHARED_NODES if any(sharing) else version
    version = WITH_PRIOR_WEIGHTS if _has_prior_weights(columns) else version
    heads = [("format", FORMAT), ("version", version)]
    heads += [("loss", loss), ("columns", columns), ("parameters", parameters), ("extra", extra)]
    heads += [("bias", ensemble.bias.tolist()), ("scale", list(ensemble.scales) or float(ensemble.scale))]
    lines = [f'"{name}": {_written(name, value)}' for name, value in heads]
    lines.append('"features": ' + _list([_written("features", line) for line in cuts_lines(ensemble.cuts)]))
    if ensemble.components:
        parts = lines_of(ensemble)
        entries: tuple[list[Any], ...] = (parts.spaces, parts.centres, parts.components)
        for name, listed in zip(COMPONENT_KEYS, entries, strict=True):
            lines.append(f'"{name}": ' + _list([_written(name, line) for line in listed]))
        return "{\n" + ",\n".join(lines) + "\n}\n"
    each, is_set = zip(ensemble.trees, ensemble.factors, sharing, strict=True), ensemble.cuts.is_categorical
    trees = [tree_line(tree, factor, is_set, sharing=shared) for tree, factor, shared in each]
    lines.append('"trees": ' + _list([_written("trees", line) for line in trees]))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def from_json(text: str | bytes) -> ModelRecord:
    """The content of a model file.

    Raises:
        InputError: if the text is not exactly what ``to_json`` writes, or was written by a newer gpuboost. The message
            says where. The dictionaries are not checked here, but by the modules that write them.
    """
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        strict.refuse("", f"the file is text in UTF-8; byte {error.start} is {error.object[error.start]}")
    document = strict.parse(decoded)
    if isinstance(document, dict) and document.get("format") == CONFORMAL:
        strict.refuse("", f"this is a {CONFORMAL}, and no model file", advice="gb.load_conformal reads it.")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        strict.refuse("format", 'a model file begins with {"format": "gpuboost", ...}; this one does not')
    version = strict.integer(document.get("version"), "version", 1, 2**31)
    if version > VERSION:
        advice = "Load it with a gpuboost at least as new as the one that saved it."
        strict.refuse(
            "version", f"{version} was made by a newer gpuboost; this one reads up to {VERSION}", advice=advice
        )
    strict.record(document, "", KEYS if version != WITH_COMPONENTS else (*KEYS[:-1], *COMPONENT_KEYS))
    if isinstance(document["columns"], dict):
        _check_statistics(document["columns"], version)
    ensemble = _ensemble(document)
    return ModelRecord(
        ensemble, *(strict.free(document[name], name) for name in ("loss", "columns", "parameters", "extra"))
    )


def save(path: str | os.PathLike[str], text: str) -> None:
    """Write a model file, whole or not at all.

    Raises:
        OSError: if the folder is not there, or cannot be written to, or the path is one.
    """
    write(path, text.encode("ascii"))


def load(path: str | os.PathLike[str]) -> ModelRecord:
    """Read a model file; see ``from_json``. Errors of the file system are left as they are."""
    return from_json(Path(path).read_bytes())


def _ensemble(document: dict[str, Any]) -> Ensemble:
    bias = strict.numbers(document["bias"], "bias")
    scales = _scales(document["scale"])
    if not len(bias):
        strict.refuse("bias", "there is one number for each output, so at least one")
    cuts = cuts_from(document["features"])
    kind, columns = "trees" if "trees" in document else "components", TreeFeatures.of(cuts)
    trees = strict.items(document[kind], kind)
    if len(trees) % len(bias):
        strict.refuse(kind, f"there is one for each of the {len(bias)} outputs in every round", len(trees))
    past = tuple(scales.tolist()) if isinstance(document["scale"], list) else ()
    if past and len(past) * len(bias) != len(trees):
        strict.refuse("scale", f"there is one for each of the {len(trees) // len(bias)} rounds", len(past))
    if kind == "components":
        parts = components_from(document, len(bias), columns)
        factors, components = tuple(factor for _, factor in parts), tuple(component for component, _ in parts)
        _check_reach(bias, scales.max(), [(factor, largest(component)) for component, factor in parts], kind)
        return Ensemble(bias, cuts, (), factors, float(scales[-1]), past, components)
    pairs = _trees(trees, len(bias), columns, document["version"])
    factors = tuple(factor for _, factor in pairs)
    _check_reach(
        bias, scales.max(), [(factor, float(np.abs(tree.value).max(initial=0.0))) for tree, factor in pairs], kind
    )
    return Ensemble(bias, cuts, tuple(tree for tree, _ in pairs), factors, float(scales[-1]), past)


def _check_statistics(columns: dict[str, Any], version: int) -> None:
    if version < WITH_SHARED_NODES and ("statistics" in columns) != (version == WITH_STATISTICS):
        why = f"files of version {WITH_STATISTICS} have it, and of lower ones do not"
        strict.refuse("columns.statistics", why, version)
    if _has_prior_weights(columns) != (version == WITH_PRIOR_WEIGHTS):
        why = f"files of version {WITH_PRIOR_WEIGHTS} list it for each table, and of lower ones have one number"
        strict.refuse("columns.statistics.prior_weight", why, version)


def _has_prior_weights(columns: dict[str, Any]) -> bool:
    """True if the tables of target statistics differ in the weight of the prior."""
    statistics = columns.get("statistics")
    return isinstance(statistics, dict) and isinstance(statistics.get("prior_weight"), list)


def _sharing(ensemble: Ensemble) -> list[bool]:
    """Flags of the trees that have the nodes of their round's first tree."""
    k, trees = ensemble.n_outputs, ensemble.trees
    return [i % k > 0 and tree.nodes is trees[i - i % k].nodes for i, tree in enumerate(trees)]


def _trees(lines: list[Any], k: int, columns: TreeFeatures, version: int) -> list[tuple[FittedTree, float]]:
    """The trees and their factors. k: outputs."""
    places = [f"trees[{i}]" for i in range(len(lines))]
    sharing = {i for i, line in enumerate(lines) if version >= WITH_SHARED_NODES and i % k > 0 and shares(line)}
    own = [i for i in range(len(lines)) if i not in sharing]
    read = trees_from([lines[i] for i in own], [places[i] for i in own], [i % k for i in own], columns)
    pairs = dict(zip(own, read, strict=True))
    for i in sorted(sharing):
        pairs[i] = sharing_tree_from(lines[i], places[i], i % k, pairs[i - i % k][0].nodes)
    if version == WITH_SHARED_NODES and not sharing:
        strict.refuse("version", f"in files of version {version} some trees share the nodes of another", version)
    return [pairs[i] for i in range(len(lines))]


def _check_reach(bias: NDArray[np.float64], scale: float, parts: list[tuple[float, float]], kind: str) -> None:
    """Refuse finite numbers whose products or sums are not finite.

    scale: the largest one. parts: (factor, largest value) of each tree.
    """
    with np.errstate(over="ignore"):
        sizes = np.abs(np.array(parts, dtype=np.float64).reshape(-1, 2)).prod(axis=1)
        total = np.abs(bias).sum() + max(1.0, scale) * sizes.sum()
    if not np.isfinite(total):
        strict.refuse(kind, "scores that float64 can hold were expected; factors times values overflow")


def _scales(value: Any) -> NDArray[np.float64]:
    """The scales of the model: one after each round, or one for all."""
    many = isinstance(value, list)
    scales = strict.numbers(value if many else [value], "scale")
    if not len(scales):
        strict.refuse("scale", "a model without rounds has the scale 1", value)
    if scales.min() <= 0.0:
        strict.refuse(f"scale[{scales.argmin()}]" if many else "scale", "it is greater than 0", float(scales.min()))
    if many and (np.diff(scales) > 0.0).any():
        strict.refuse(f"scale[{np.argmax(np.diff(scales) > 0.0) + 1}]", "a model is shrunk, so it never grows", value)
    return scales


def _written(name: str, value: Any) -> str:
    try:
        return json.dumps(
            value, sort_keys=name not in ("features", "trees", *COMPONENT_KEYS), allow_nan=False, separators=(",", ":")
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name}: a model file holds finite numbers, text, lists and dictionaries; {error}."
        ) from error


def _list(lines: list[str]) -> str:
    return "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"
