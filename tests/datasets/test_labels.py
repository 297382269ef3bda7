"""Labels as codes: what numpy.unique says, however the labels are stored."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

import gpuboost as gb
from gpuboost.data.labels import whole_labels

DTYPES = (np.bool_, np.int8, np.uint8, np.int16, np.int64, np.uint64, np.float16, np.float32, np.float64)


@given(st.lists(st.integers(-200, 200), min_size=1, max_size=60), st.sampled_from(DTYPES))
def test_whole_labels_are_those_of_unique(numbers, dtype):
    y = np.array(numbers, np.int64).astype(dtype)
    classes, codes = np.unique(y, return_inverse=True)
    found = whole_labels(y)
    if int(y.max()) > 1_000_000:  # of negative numbers as unsigned ones
        assert found is None
        return
    assert found is not None
    np.testing.assert_array_equal(found[0], classes)
    assert found[0].dtype == classes.dtype
    np.testing.assert_array_equal(found[1], codes)
    assert found[1].dtype == codes.dtype


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_other_numbers_are_left_to_unique_or_coded_like_it(numbers):
    y = np.array(numbers)
    found = whole_labels(y)
    if found is None:
        assert (y != np.floor(y)).any() or y.max() / 2 - y.min() / 2 >= 511 or np.abs(y).max() >= 2.0**53
    else:
        classes, codes = np.unique(y, return_inverse=True)
        np.testing.assert_array_equal(found[0], classes)
        np.testing.assert_array_equal(found[1], codes)


def test_blocks_agree_at_their_borders():
    y = np.random.default_rng(0).integers(3, 900, 70_001).astype(np.float32)
    y[40_000] = 5.0
    found = whole_labels(y)
    assert found is not None
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(found[0], classes)
    np.testing.assert_array_equal(found[1], codes)
    y[-1] = 5.5
    assert whole_labels(y) is None


@pytest.mark.parametrize("y", [np.array(["a", "b"]), np.array([1, 2], object), np.empty(0), np.array([1j, 2.0])])
def test_what_is_no_number_is_left_to_unique(y):
    assert whole_labels(y) is None


def test_codes_do_not_depend_on_how_labels_are_stored():
    x = np.arange(60.0).reshape(-1, 1)
    y = np.arange(60) // 20
    stored = (y, y.astype(np.float32), y + 0.5, np.array(["a", "b", "c"])[y], y * 2_000)
    plain = gb.GradientBoostingClassifier(n_estimators=3).fit(x, y).predict_proba(x)
    for labels in stored:
        with np.errstate(all="raise"):
            if labels.dtype.kind == "f" and (labels % 1).any():
                with pytest.raises(gb.InputError, match="continuous"):
                    gb.GradientBoostingClassifier(n_estimators=3).fit(x, labels)
                continue
            found = gb.GradientBoostingClassifier(n_estimators=3).fit(x, labels)
        np.testing.assert_array_equal(found.predict_proba(x), plain)
        np.testing.assert_array_equal(found.classes_, np.unique(labels))


@pytest.mark.parametrize("kind", ["bool", "int64", "float64"])
def test_labels_in_an_array_of_objects_are_those_of_their_type(kind):
    x, y = np.arange(60.0).reshape(-1, 1), (np.arange(60) // 20 > 0).astype(kind)
    objects = y.astype(object)
    plain, found = (gb.GradientBoostingClassifier(n_estimators=3).fit(x, labels) for labels in (y, objects))
    assert gb.dumps(found) == gb.dumps(plain)
    assert found.score(x, objects) == plain.score(x, y)


@pytest.mark.parametrize("pair", [(1, "a"), (1, True), (2**63 + 5, 3)], ids=str)
def test_objects_of_no_one_type_are_no_labels(pair):
    with pytest.raises(gb.InputError, match="Unknown label type"):
        gb.GradientBoostingClassifier(n_estimators=3).fit(np.arange(6.0).reshape(-1, 1), np.array(pair * 3, object))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1, "a"], "labels of one kind are needed; got int and str"),
        ([float("nan"), "a"], "must not hold NaN, infinity or None; row 0 holds nan"),
        ([None, "a"], "must not hold NaN, infinity or None; row 0 holds None"),
    ],
    ids=str,
)
def test_what_stands_beside_text_in_a_list_is_no_text(labels, words):
    for y in (labels * 3, np.array(labels * 3, object)):
        with pytest.raises(gb.InputError, match=f"^y: .*{words}"):
            gb.GradientBoostingClassifier(n_estimators=3).fit(np.arange(6.0).reshape(-1, 1), y)


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "boolean", "int64[pyarrow]", "bool[pyarrow]"])
@pytest.mark.parametrize("frame", [False, True])
def test_labels_of_pandas_own_dtypes_stay_what_they_are(dtype: str, frame: bool) -> None:
    x, codes = np.arange(40.0)[:, None], np.arange(40) % 2
    y = pd.Series(codes, dtype=dtype, name="y")
    kind = np.asarray(y).dtype
    model = gb.GradientBoostingClassifier(n_estimators=2, n_jobs=1)
    told = pytest.warns(DataConversionWarning) if frame else nullcontext()
    with told:
        model.fit(x, y.to_frame() if frame else y)
    assert model.classes_.dtype == model.predict(x).dtype == kind
    assert model.classes_.tolist() == [0, 1]


def test_large_labels_of_pandas_own_dtypes_stay_apart() -> None:
    y = pd.Series(2**60 + np.arange(40) % 2, dtype="Int64")  # as float64 they are one
    model = gb.GradientBoostingClassifier(n_estimators=2, n_jobs=1).fit(np.arange(40.0)[:, None], y)
    assert model.classes_.tolist() == [2**60, 2**60 + 1]


@pytest.mark.parametrize("as_labels", [pd.Series, pd.Index, pd.array], ids=["series", "index", "array"])
@pytest.mark.parametrize("dtype", ["boolean", "Int64", "category"])
def test_labels_of_pandas_dtypes_stay_truth_values_and_integers(dtype, as_labels):
    x = np.arange(60.0).reshape(-1, 1)
    y = np.arange(60) // 30 if dtype == "Int64" else np.arange(60) > 29
    model = gb.GradientBoostingClassifier(n_estimators=3, n_jobs=1).fit(x, as_labels(y, dtype=dtype))
    assert model.classes_.dtype == y.dtype
    np.testing.assert_array_equal(model.predict(x), y)


def test_a_class_of_weight_0_stays():
    x, y = np.arange(60.0).reshape(-1, 1), np.arange(60) // 20
    model = gb.GradientBoostingClassifier(n_estimators=3, n_jobs=1).fit(x, y, sample_weight=y < 2)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.predict_proba(x)[:, 2].max() < 1e-5
