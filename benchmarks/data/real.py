"""The real data sets under GPUBOOST_DATA, one function per set.

Sets that come with a test file use it. Of the others, row i of the file (from 0, header not counted) is held out
iff splitmix64(i + 42) % 5 == 0: no random generator, so any language can repeat the split. Categorical columns are
those that are not numbers; their categories are the sorted texts of all rows. Sets that are stored as LIBSVM text
stay sparse, with the file's own column numbers (column 0 is empty).
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gpuboost.benchmarks.harness.store import Array, Data, Task
from gpuboost.errors import InputError

ADULT = (
    "age workclass fnlwgt education education_num marital occupation relationship race sex gain loss hours country y"
)


def folder() -> Path:
    """The folder GPUBOOST_DATA names; InputError if there is none."""
    path = os.environ.get("GPUBOOST_DATA")
    if not path or not Path(path).is_dir():
        raise InputError(
            f"GPUBOOST_DATA: must name the folder of the data sets; it is {path!r}. "
            "See benchmarks/README.md for what lies in it."
        )
    return Path(path)


def _bytes(name: str) -> bytes:
    path = folder() / name
    if path.exists():
        content = path.read_bytes()
        return bz2.decompress(content) if path.suffix == ".bz2" else content
    packed = path.with_name(path.name + ".xz")
    if not packed.exists():
        raise InputError(f"GPUBOOST_DATA: {folder()} has no {name}, packed (.xz) or not.")
    return lzma.decompress(packed.read_bytes())


def _csv(name: str, **options: Any) -> Any:
    import pandas as pd

    return pd.read_csv(io.BytesIO(_bytes(name)), **options)


def held_out(n: int) -> tuple[Array, Array]:
    """(n,) whether a row is held out, and the hash of its number, uint64."""
    with np.errstate(over="ignore"):
        z = np.arange(n, dtype=np.uint64) + np.uint64(42) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z % np.uint64(5) == 0, z


def _tabular(task: Task, train: tuple[Any, Array], test: tuple[Any, Array], rows: int | None) -> Data:
    """Two frames and their targets; text columns become categorical, over the values of both."""
    import pandas as pd

    (x, y), (x_test, y_test) = train, test
    x, x_test = x.copy(), x_test.copy()
    for column in x.columns:
        if not pd.api.types.is_numeric_dtype(x[column]):
            texts, texts_test = x[column].astype(str), x_test[column].astype(str)
            categories = sorted(set(texts) | set(texts_test))
            x[column] = pd.Categorical(texts, categories=categories)
            x_test[column] = pd.Categorical(texts_test, categories=categories)
    return Data(task, x[:rows], np.asarray(y[:rows]), x_test[:rows], np.asarray(y_test[:rows]))


def _by_hash(task: Task, x: Any, y: Array, rows: int | None) -> Data:
    out, _ = held_out(len(y))
    return _tabular(task, (x[~out], y[~out]), (x[out], y[out]), rows)


def _libsvm(content: bytes, columns: int) -> tuple[Any, Array]:
    from scipy.sparse import csr_matrix

    labels, indptr, indices, values = [], [0], [], []
    for line in content.decode().splitlines():
        label, *entries = line.split("#")[0].split()
        labels.append(float(label))
        for entry in entries:
            column, value = entry.split(":")
            indices.append(int(column))
            values.append(float(value))
        indptr.append(len(indices))
    shape = (len(labels), columns)
    return csr_matrix((np.array(values, np.float32), indices, indptr), shape=shape), np.array(labels)


def _libsvm_pair(name: str, train: str, test: str, columns: int, rows: int | None) -> Data:
    x, y = _libsvm(_bytes(f"{name}/{train}"), columns)
    x_test, y_test = _libsvm(_bytes(f"{name}/{test}"), columns)
    return Data("binary", x[:rows], (y > 0)[:rows], x_test[:rows], (y_test > 0)[:rows])


def a8a(rows: int | None = None) -> Data:
    return _libsvm_pair("a8a", "a8a", "a8a.t", 124, rows)


def a9a(rows: int | None = None) -> Data:
    return _libsvm_pair("a9a", "a9a", "a9a.t", 124, rows)


def colon_cancer() -> tuple[Array, Array]:
    """62 x 2,000 expression levels, and whether the tissue is a tumour (+1 in the file)."""
    x, y = _libsvm(_bytes("colon_cancer/colon-cancer.bz2"), 2001)
    return x[:, 1:].toarray(), y > 0


def rcv1_small() -> tuple[Any, Array, Any, Array]:
    """Documents in vw's format: 1,000 to learn from and 500 held out, with their 47,236 words."""
    train, test = (
        _libsvm(_bytes(f"rcv1_vw/{name}").replace(b"|f ", b""), 47_237)
        for name in ("rcv1_small.dat", "rcv1_small_test.data")
    )
    return train[0][:, 1:], train[1] > 0, test[0][:, 1:], test[1] > 0


def agaricus(rows: int | None = None) -> Data:
    return _libsvm_pair("agaricus", "agaricus.txt.train", "agaricus.txt.test", 127, rows)


def adult(rows: int | None = None) -> Data:
    def part(name: str, skip: int) -> tuple[Any, Array]:
        frame = _csv(f"adult/{name}", header=None, names=ADULT.split(), skipinitialspace=True, skiprows=skip)
        rich = frame.pop("y").str.rstrip(".") == ">50K"
        return frame, rich.to_numpy()

    return _tabular("binary", part("adult.data", 0), part("adult.test", 1), rows)


def higgs7k(rows: int | None = None) -> Data:
    def part(name: str) -> tuple[Array, Array]:
        table = _csv(f"higgs7k/{name}", sep="\t", header=None).to_numpy()
        return table[:, 1:].astype(np.float32), table[:, 0]

    (x, y), (x_test, y_test) = part("binary.train"), part("binary.test")
    return Data("binary", x[:rows], y[:rows], x_test[:rows], y_test[:rows])


def amazon(rows: int | None = None) -> Data:
    frame = _csv("amazon/train.csv")
    y = frame.pop("ACTION").to_numpy()
    return _by_hash("binary", frame.astype(str), y, rows)


def bank(rows: int | None = None) -> Data:
    frame = _csv("bank/bank.csv")
    labels = frame.pop("Class").astype(str).str.strip()
    return _by_hash("binary", frame, (labels == sorted(labels.unique())[-1]).to_numpy(), rows)


def breast_cancer(rows: int | None = None) -> Data:
    table = _csv("breast_cancer/breast_cancer.csv", skiprows=1, header=None).to_numpy(dtype=np.float64)
    out, _ = held_out(len(table))
    train, test = table[~out][:rows], table[out][:rows]
    return Data("binary", train[:, :30], train[:, 30], test[:, :30], test[:, 30])


def _covtype() -> tuple[Array, Array]:
    table = _csv("covtype/covtype.csv", dtype=np.float32)
    kind = table.pop("Cover_Type").to_numpy().astype(np.int64)
    return table.to_numpy(), kind


def covtype(rows: int | None = None) -> Data:
    """Class 2 against the rest, all 581,012 rows."""
    x, kind = _covtype()
    out, _ = held_out(len(x))
    y = kind == 2
    return Data("binary", x[~out][:rows], y[~out][:rows], x[out][:rows], y[out][:rows])


def covtype_sub(rows: int | None = None) -> Data:
    """Seven classes; the eighth of the rows for which (hash // 5) % 8 == 0."""
    x, kind = _covtype()
    out, hashes = held_out(len(x))
    kept = (hashes // np.uint64(5)) % np.uint64(8) == 0
    y, train, test = kind - 1, kept & ~out, kept & out
    return Data("multiclass", x[train][:rows], y[train][:rows], x[test][:rows], y[test][:rows])


def california(rows: int | None = None) -> Data:
    frame = _csv("california/housing.csv")
    return _by_hash("regression", frame, frame.pop("median_house_value").to_numpy(), rows)


def diamonds(rows: int | None = None) -> Data:
    frame = _csv("diamonds/diamonds.csv")
    return _by_hash("regression", frame, frame.pop("price").to_numpy(), rows)


def freMTPL2freq(rows: int | None = None) -> Data:  # noqa: N802, the data set's own name
    """Claims per year of exposure, weighted by the exposure."""
    frame = _csv("freMTPL2freq/freMTPL2freq.csv")
    exposure = frame["Exposure"].to_numpy()
    rate = frame["ClaimNb"].to_numpy() / exposure
    out, _ = held_out(len(frame))
    data = _by_hash("poisson", frame.drop(columns=["IDpol", "ClaimNb", "Exposure"]), rate, rows)
    weights = exposure[~out][:rows], exposure[out][:rows]
    return Data("poisson", data.X, data.y, data.X_test, data.y_test, *weights)


SETS: tuple[Callable[..., Data], ...] = (
    a9a,
    adult,
    higgs7k,
    amazon,
    california,
    diamonds,
    bank,
    covtype,
    freMTPL2freq,
    agaricus,
    a8a,
    breast_cancer,
    covtype_sub,
)
