"""Data sets as every run gets them: made once, kept as .npy files, read back by each fresh process."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpuboost.benchmarks.harness.cases import Case, Task

Array = Any

VECTORS = ("y", "y_test", "weight", "weight_test", "group", "group_test")


@dataclass(frozen=True)
class Data:
    """Training and held-out rows.

    X and X_test are (n, d): float32 or float64 arrays, scipy CSR matrices, or pandas frames whose categorical
    columns have category dtype with the same categories in both. y is float64; labels of a class are 0 .. k - 1.
    """

    task: Task
    X: Any
    y: Array
    X_test: Any
    y_test: Array
    weight: Array | None = None
    weight_test: Array | None = None
    group: Array | None = None  # (n,) the query of each row, for ranking
    group_test: Array | None = None


def cache_folder() -> Path:
    """GPUBOOST_BENCH_CACHE, or gpuboost/benchmarks in the user's cache folder."""
    path = os.environ.get("GPUBOOST_BENCH_CACHE")
    if path:
        return Path(path)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "gpuboost" / "benchmarks"


def prepared(case: Case) -> Path:
    """The folder that holds the case's data; made if it is not there yet, under a name that its source decides."""
    source = inspect.getsource(inspect.getmodule(case.make) or sys.modules[__name__])
    text = json.dumps([case.make.__name__, dict(case.arguments), source], sort_keys=True)
    folder = cache_folder() / f"{case.make.__name__}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
        inner = Path(draft) / "data"
        inner.mkdir()
        _write(inner, case.make(**case.arguments))
        inner.rename(folder)  # whole or not at all
    return folder


def _write(folder: Path, data: Data) -> None:
    about = {"task": data.task, "columns": None, "categories": {}}
    for name in ("X", "X_test"):
        x = getattr(data, name)
        if hasattr(x, "columns"):
            about["columns"] = list(x.columns)
            about["categories"] = {c: list(x[c].cat.categories) for c in x.columns if x[c].dtype == "category"}
            x = np.column_stack([_numbers(x[c]) for c in x.columns])
        if hasattr(x, "indptr"):
            for part in ("data", "indices", "indptr"):
                np.save(folder / f"{name}.{part}.npy", getattr(x, part))
            about[f"{name}.shape"] = x.shape
        else:
            np.save(folder / f"{name}.npy", np.ascontiguousarray(x))
    for name in VECTORS:
        if (values := getattr(data, name)) is not None:
            np.save(folder / f"{name}.npy", np.asarray(values, dtype=np.float64))
    (folder / "about.json").write_text(json.dumps(about))


def _numbers(column: Any) -> Array:
    """A column as float64: the codes of a categorical one, NaN where a value is missing."""
    if column.dtype != "category":
        return column.to_numpy(dtype=np.float64)
    codes = column.cat.codes.to_numpy(dtype=np.float64)
    return np.where(codes < 0, np.nan, codes)


def load(folder: Path) -> Data:
    """The data of a prepared folder. Imports pandas or scipy only if the data needs them."""
    about = json.loads((folder / "about.json").read_text())
    parts = {name: _read_matrix(folder, name, about) for name in ("X", "X_test")}
    for name in VECTORS:
        path = folder / f"{name}.npy"
        parts[name] = np.load(path) if path.exists() else None
    return Data(task=about["task"], **parts)


def _read_matrix(folder: Path, name: str, about: Mapping[str, Any]) -> Any:
    if f"{name}.shape" in about:
        from scipy.sparse import csr_matrix

        arrays = tuple(np.load(folder / f"{name}.{part}.npy") for part in ("data", "indices", "indptr"))
        return csr_matrix(arrays, shape=tuple(about[f"{name}.shape"]))
    x = np.load(folder / f"{name}.npy")
    if about["columns"] is None:
        return x
    import pandas as pd

    frame = pd.DataFrame(x, columns=about["columns"])
    for column, categories in about["categories"].items():
        codes = frame[column].fillna(-1).astype(np.int32)
        frame[column] = pd.Categorical.from_codes(codes, categories=categories)
    return frame
