"""Malformed sparse matrices, frames, Arrow tables and arrays through every door that takes rows.

Each is refused by an InputError that names X, or the answers are those of the same numbers in a plain array.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from support.hostile.campaign import Tally, described, is_refusal, many, outcome
from support.hostile.corpus import FEW

import gpuboost as gb

Array = np.ndarray
N, D = 50, 6


@pytest.fixture(scope="module")
def dense() -> Array:
    rng = np.random.default_rng(0)
    return np.where(rng.random((N, D)) < 0.4, rng.normal(size=(N, D)), 0.0)


@pytest.fixture(scope="module")
def doors(dense: Array) -> dict[str, Callable[[Any], Any]]:
    """Every function that takes rows; the answer is compared with that of plain rows."""
    y, group = dense[:, 0] + dense[:, 1], np.repeat(np.arange(5), 10)
    made: dict[str, Any] = {**FEW, "n_estimators": 2}
    of_effects = {name: value for name, value in made.items() if name != "max_depth"} | {
        "base_learner": gb.learners.Linear()
    }
    model = gb.GradientBoostingRegressor(**made).fit(dense, y)
    classes = gb.GradientBoostingClassifier(**made).fit(dense, y > 0)
    effects = gb.GradientBoostingRegressor(**of_effects).fit(dense, y)
    shards = gb.DataParallel(2)

    def fitted(X: Any, **more: Any) -> Any:
        given = (X,) if isinstance(X, gb.Dataset) else (X, y)
        return gb.GradientBoostingRegressor(**made, **more).fit(*given).predict(dense)

    def watched(X: Any) -> Any:
        return gb.GradientBoostingRegressor(**made).fit(dense, y, eval_set=(X, y)).evals_result_["validation_0"]["rmse"]

    def ranked(X: Any) -> Any:
        return gb.GradientBoostingRanker(**made).fit(X, (y > 0).astype(int), group=group).predict(dense)

    return {
        "fit": fitted,
        "fit, leaf-wise": lambda X: fitted(X, growth="leafwise"),
        "fit on shards": lambda X: fitted(X, execution=shards),
        "fit of effects": lambda X: gb.GradientBoostingRegressor(**of_effects).fit(X, y).predict(dense),
        "fit of a ranker": ranked,
        "eval_set": watched,
        "Dataset": lambda X: fitted(gb.Dataset(X, y)),
        "cv": lambda X: gb.cv(gb.GradientBoostingRegressor(**made), X, y, folds=2).predictions,
        "predict": model.predict,
        "predict_proba": classes.predict_proba,
        "predict of effects": effects.predict,
        "staged_predict": lambda X: np.array(list(model.staged_predict(X))),
        "apply": model.apply,
        "predict_contributions": model.predict_contributions,
        "sign_stumps": lambda X: gb.theory.sign_stumps(X)[0],
    }


def _put(array: Array, place: int, value: int) -> Array:
    changed = array.astype(np.int64) if abs(value) > 2**31 - 1 else array.copy()
    changed[place % len(changed)] = value
    return changed


def _rises(matrix: Any) -> bool:
    pointers = matrix.indptr
    return pointers[0] == 0 and bool((np.diff(pointers) >= 0).all()) and pointers[-1] <= len(matrix.indices)


def _compressed(matrix: Any, rng: np.random.Generator, value: int, place: int) -> str:
    """Change one array of a matrix of compressed rows or columns; the name of the change."""
    name = str(rng.choice(["indices", "indptr", "data", "last indptr", "falling"]))
    if name == "indices":
        matrix.indices = _put(matrix.indices, place, value)
    elif name == "data":
        matrix.data = matrix.data[: len(matrix.data) // 2]
    elif name == "falling":
        matrix.indptr = matrix.indptr[::-1].copy()
    else:
        matrix.indptr = _put(matrix.indptr, -1 if name == "last indptr" else place, value)
        if _rises(matrix):  # some entries are in another row or column, and none is outside
            return f"sound {matrix.format}.{name}[{place}] = {value}"
    return f"{matrix.format}.{name}[{place}] = {value}"


def malformed(dense: Array, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Matrices whose index arrays lie; scipy does not look at them."""
    numbers = (-1, -5, N, 10_000, 10**6, 2**31 - 1, -(2**31))
    while True:
        kind = rng.choice(["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
        matrix = sp.csr_matrix(dense).asformat(kind)
        value, place = int(rng.choice(numbers)), int(rng.integers(1000))
        if kind in ("csr", "csc", "bsr"):
            yield _compressed(matrix, rng, value, place), matrix
        elif kind == "coo":
            name = str(rng.choice(["row", "col"]))
            setattr(matrix, name, _put(getattr(matrix, name), place, value))
            yield f"coo.{name}[{place}] = {value}", matrix
        elif kind == "lil":
            matrix.rows[place % N] = [value]
            matrix.data[place % N] = [1.0]
            yield f"lil row {place % N} = [{value}]", matrix
        else:
            yield f"sound {kind}", matrix


def odd_frames(dense: Array, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Frames, tables and arrays of unusual make; some are sound."""
    frame = pd.DataFrame(dense, columns=[f"c{f}" for f in range(D)])
    while True:
        f = int(rng.integers(D))
        name, odd = f"c{f}", frame.copy()
        makes: tuple[Callable[[], Any], ...] = (
            lambda odd=odd, name=name: odd.assign(**{name: "text"}),
            lambda odd=odd, name=name: odd.assign(**{name: [[1]] * N}),
            lambda odd=odd, name=name: odd.assign(**{name: pd.Timestamp("2020-01-01")}),
            lambda odd=odd, name=name: odd.assign(**{name: pd.array([None] * N, dtype="Int64")}),
            lambda odd=odd, name=name: odd.assign(**{name: pd.Series(dense[:, 0]).astype("category")}),
            lambda odd=odd, name=name: odd.assign(**{name: np.full(N, 1j)}),
            lambda odd=odd, name=name: odd.assign(**{name: pd.arrays.SparseArray(dense[:, 0])}),
            lambda odd=odd, name=name: odd.assign(**{name: np.full(N, np.inf)}),
            lambda odd=odd: pd.concat([odd, odd], axis=1),
            lambda odd=odd: odd.iloc[:0],
            lambda odd=odd: odd.iloc[:, :0],
            lambda odd=odd: odd.set_axis([*range(D - 1), "x"], axis=1),
            lambda odd=odd: odd.set_axis(pd.MultiIndex.from_product([["a"], range(D)]), axis=1),
            lambda odd=odd: odd.iloc[::-1],
            lambda odd=odd: pa.Table.from_pandas(odd),
            lambda odd=odd: pa.Table.from_pandas(odd.iloc[:0]),
            lambda odd=odd, name=name: pa.Table.from_pandas(odd.assign(**{name: "text"})),
            lambda odd=odd, name=name: pa.Table.from_pandas(odd.assign(**{name: [[1]] * N})),
            lambda odd=odd: pa.table({f"c{i}": pa.array([None] * N) for i in range(D)}),
            lambda odd=odd: pa.table({f"c{i}": pa.array(["a"] * N).dictionary_encode() for i in range(D)}),
            lambda odd=odd: pa.table([pa.array([1.0] * N)] * D, names=["same"] * D),
            lambda odd=odd: pa.record_batch(odd),
            lambda: dense.astype(object),
            lambda: dense.astype(">f8"),
            lambda: dense.astype(np.float16),
            lambda: dense.astype(np.longdouble),
            lambda: dense.astype("U10"),
            lambda: np.asfortranarray(dense)[::-1][::-1],
            lambda: np.ma.masked_greater(dense, 1.0),
            lambda: np.matrix(dense),
            lambda: dense.astype([("a", "f8")]),
            lambda: dense[:, :, None],
            dense.tolist,
            lambda: [*dense[:-1].tolist(), [1.0]],
            lambda: [[None] * D] * N,
            lambda: np.broadcast_to(dense[:1], (N, D)),
            lambda: np.zeros((N, 0)),
            lambda: memoryview(np.ascontiguousarray(dense)),
        )
        number = int(rng.integers(len(makes)))
        yield f"make {number} of column {f}", makes[number]()


def _plain(X: Any) -> Array | None:
    """The same numbers as float64 rows, if there are such."""
    try:
        rows = X.toarray() if sp.issparse(X) else X.to_pandas() if hasattr(X, "to_pandas") else X
        rows = rows.filled(np.nan) if isinstance(rows, np.ma.MaskedArray) else rows
        rows = np.asarray(rows.astype(float) if isinstance(rows, pd.DataFrame) else rows, dtype=np.float64)
    except Exception:
        return None
    return rows if rows.shape == (N, D) and not np.isinf(rows).any() else None


def _through(
    doors: dict[str, Callable[[Any], Any]], makes: Iterator[tuple[str, Any]], number: int, tally: Tally
) -> None:
    rng = np.random.default_rng(8)
    for _, (what, X) in zip(range(number), makes, strict=False):
        name = list(doors)[rng.integers(len(doors))]
        tally.add("inputs")
        answers: list[Any] = []
        error = outcome(lambda name=name, X=X, answers=answers: answers.append(doors[name](X)))
        if error is not None:
            tally.add("refused")
            if not is_refusal(error, "X", "eval_set", "data"):
                tally.fault(f"{name}({what})", described(error))
            continue
        tally.add("accepted")
        sound = what.startswith("sound") or not sp.issparse(X)
        plain = _plain(X) if sound else None
        if not sound:
            tally.fault(f"{name}({what})", "a matrix that lies was accepted")
        elif plain is not None and "category" not in str(getattr(X, "dtypes", "")):
            error = outcome(lambda name=name, plain=plain, answers=answers: answers.append(doors[name](plain)))
            if error is not None:
                tally.fault(f"{name}({what})", f"accepted, and plain rows are refused: {described(error)}")
                continue
            same = np.allclose(*(np.asarray(answer, float) for answer in answers), 1e-3, 1e-3)
            if not same and "float16" not in str(getattr(X, "dtype", "")):
                tally.fault(f"{name}({what})", "other answers than plain rows")
    tally.check()


def test_malformed_sparse_matrices(dense: Array, doors: dict[str, Callable[[Any], Any]], tally: Tally) -> None:
    _sparse(dense, doors, tally, 150)


@pytest.mark.thorough
def test_many_malformed_sparse_matrices(dense: Array, doors: dict[str, Callable[[Any], Any]], tally: Tally) -> None:
    _sparse(dense, doors, tally, many(3000))


def _sparse(dense: Array, doors: dict[str, Callable[[Any], Any]], tally: Tally, number: int) -> None:
    with warnings.catch_warnings(action="ignore"):
        _through(doors, malformed(dense, np.random.default_rng(1)), number, tally)


def test_odd_frames(dense: Array, doors: dict[str, Callable[[Any], Any]], tally: Tally) -> None:
    _frames(dense, doors, tally, 80)


@pytest.mark.thorough
def test_many_odd_frames(dense: Array, doors: dict[str, Callable[[Any], Any]], tally: Tally) -> None:
    _frames(dense, doors, tally, many(1500))


def _frames(dense: Array, doors: dict[str, Callable[[Any], Any]], tally: Tally, number: int) -> None:
    with warnings.catch_warnings(action="ignore"):
        _through(doors, odd_frames(dense, np.random.default_rng(2)), number, tally)
