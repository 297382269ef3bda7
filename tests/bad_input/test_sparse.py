"""Sparse matrices whose pointers lead elsewhere are refused before anything follows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import gpuboost as gb
from gpuboost.data.sparse import check_sparse
from gpuboost.data.tables import as_table

Matrix = Any


def matrix(kind: str = "csr") -> Matrix:
    """(40, 4), 53 entries stored."""
    return sp.random(40, 4, density=0.33, format=kind, random_state=np.random.default_rng(0))


def with_number(kind: str, entry: int, number: int) -> Matrix:
    broken = matrix(kind)
    (broken.col if kind == "coo" else broken.indices)[entry] = number
    return broken


def with_pointer(kind: str, place: int, pointer: int) -> Matrix:
    broken = matrix(kind)
    broken.indptr[place] = pointer
    return broken


def one_based() -> Matrix:
    return sp.csr_matrix((np.ones(6), np.array([1, 2, 3, 4, 2, 4]), np.array([0, 3, 6])), shape=(2, 4))


BROKEN: dict[str, tuple[Callable[[], Matrix], str]] = {
    "csr, columns from 1": (one_based, r"X: column numbers .* must be 0 to 3; stored entry 3 has 4\."),
    "csr, huge column": (lambda: with_number("csr", 3, 2**31 - 1), r"must be 0 to 3; stored entry 3 has 2147483647\."),
    "csr, negative column": (lambda: with_number("csr", 3, -5), r"must be 0 to 3; stored entry 3 has -5\."),
    "csc, row": (lambda: with_number("csc", 3, 999), r"X: row numbers .* must be 0 to 39; stored entry 3 has 999\."),
    "csc, negative row": (lambda: with_number("csc", 3, -1), r"must be 0 to 39; stored entry 3 has -1\."),
    "coo, column": (lambda: with_number("coo", 2, 7), r"X: column numbers .* must be 0 to 3; stored entry 2 has 7\."),
    "csr, pointers fall": (lambda: with_pointer("csr", 5, 0), r"X: indptr .* never falls"),
    "csr, pointer far out": (lambda: with_pointer("csr", 5, 10**9), r"X: indptr .* never falls; at row 5"),
    "csr, last pointer": (lambda: with_pointer("csr", -1, 10**6), r"X: indptr .* ends at its 53 .*; got 1000000"),
    "csr, first pointer": (lambda: with_pointer("csr", 0, 1), r"X: indptr .* starts at 0; got 1"),
    "csc, negative pointer": (lambda: with_pointer("csc", 2, -7), r"X: indptr .* never falls; at column 1"),
}


@pytest.fixture(scope="module")
def model() -> Any:
    x = matrix()
    return gb.GradientBoostingRegressor(n_estimators=2, n_jobs=1).fit(x, np.asarray(x.sum(axis=1)).ravel())


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_matrix_is_refused_everywhere(model: Any, case: str) -> None:
    make, message = BROKEN[case]
    y, fresh = np.arange(make().shape[0]), gb.GradientBoostingRegressor(n_estimators=1)
    for call in (
        lambda: model.predict(make()),
        lambda: model.apply(make()),
        lambda: model.predict_contributions(make()),
        lambda: gb.Dataset(make(), y),
        lambda: fresh.fit(make(), y),
        lambda: clone(fresh).set_params(execution=gb.DataParallel(2)).fit(make(), y),
        lambda: gb.cv(fresh, make(), y),
        lambda: fresh.fit(matrix(), np.arange(40), eval_set=[(make(), y)]),
    ):
        with pytest.raises(gb.InputError, match=message):
            call()


def test_pointers_of_the_wrong_length() -> None:
    broken = matrix()
    broken.indptr = broken.indptr[:-1]
    with pytest.raises(gb.InputError, match=r"X: indptr of a sparse matrix of 40 rows has 41 entries; got 40\."):
        check_sparse(broken)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_sound_matrices_of_every_format_pass(kind: str) -> None:
    assert (as_table(matrix().asformat(kind)).matrix != matrix()).nnz == 0


@given(*(st.integers(*ends) for ends in ((0, 1), (0, 40), (-3, 60), (0, 51), (-2, 45))))
def test_what_passes_is_what_scipy_can_read(by_column: int, place: int, pointer: int, entry: int, number: int) -> None:
    kind = ("csr", "csc")[by_column]
    broken = matrix(kind)
    broken.indptr[place % len(broken.indptr)] = pointer
    broken.indices[entry] = number
    try:
        check_sparse(broken)
    except gb.InputError:
        return
    major = np.repeat(np.arange(len(broken.indptr) - 1), np.diff(broken.indptr))
    minor = broken.indices[: len(major)]
    dense = np.zeros(broken.shape)
    np.add.at(dense, (major, minor) if kind == "csr" else (minor, major), broken.data[: len(major)])
    assert np.array_equal(broken.toarray(), dense)


@pytest.mark.parametrize("name", BROKEN)
def test_the_stumps_of_the_theory_refuse_it(name: str) -> None:
    make, message = BROKEN[name]
    with pytest.raises(gb.InputError, match=message):
        gb.theory.sign_stumps(make())


def test_the_stumps_of_the_theory_are_those_of_plain_rows() -> None:
    for kind in ("csr", "coo", "lil"):
        assert np.array_equal(gb.theory.sign_stumps(matrix(kind))[0], gb.theory.sign_stumps(matrix().toarray())[0])
