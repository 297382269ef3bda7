"""Dataset: checked, cut and binned once; never written to. Weights told apart."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import gpuboost as gb
from gpuboost.data.dataset import Dataset
from gpuboost.data.queries import check_group
from gpuboost.data.weights import check_weight, kept_rows, split_weights
from gpuboost.types import Cuts, DenseBins

X = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, 5.0], [4.0, 6.0]])


class Counting:
    """A quantise that says how often it was called, and bins by definition."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: np.ndarray, cuts: Cuts) -> DenseBins:
        self.calls += 1
        columns = [np.searchsorted(t, x[:, f]) + np.isnan(x[:, f]) for f, t in enumerate(cuts.thresholds)]
        rows = np.column_stack(columns).astype(np.uint8)
        return DenseBins(rows, np.ascontiguousarray(rows.T))


def test_it_is_binned_once() -> None:
    data, quantise = Dataset(X, [0, 1, 0, 1]), Counting()
    first = data.binned(quantise)
    assert first.rows.tolist() == [[0, 0], [1, 2], [2, 0], [3, 1]]
    assert data.binned(quantise) is first
    assert data.training_set(quantise).bins is first
    assert quantise.calls == 1
    data.binned(quantise, "device")
    assert quantise.calls == 2


def test_the_training_set_holds_what_was_given() -> None:
    training = Dataset(X, [0, 1, 0, 1]).training_set(Counting())
    assert training.y.dtype == np.float64
    assert training.y.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert (training.weight, training.multiplicity) == (None, None)
    assert Dataset(X, list("abab")).training_set(Counting(), y=np.arange(4.0)).y.tolist() == [0, 1, 2, 3]


def test_rows_of_weight_zero_are_not_there() -> None:
    data = Dataset(X, [1, 2, 3, 4], weight=[2, 0, 1, 0])
    assert [t.tolist() for t in data.cuts.thresholds] == [[2.0], []]
    training = data.training_set(Counting())
    assert training.bins.rows.tolist() == [[0, 0], [1, 0]]
    assert training.y.tolist() == [1.0, 3.0]
    assert training.multiplicity.tolist() == [2, 1]
    other = data.training_set(Counting(), weight=np.array([0.5, 0.5, 0.0, 1.5]))
    assert other.weight.tolist() == [0.5, 0.5, 1.5]
    assert other.multiplicity is None


def test_some_rows_keep_the_cuts_of_all() -> None:
    data = Dataset(X, list("abcd"), weight=[1, 2, 3, 4], group=[2, 2])
    part = data.take(np.array([3, 0]))
    assert part.cuts is data.cuts
    assert (part.y.tolist(), part.weight.tolist(), part.group.tolist()) == (["d", "a"], [4.0, 1.0], [1, 0])
    assert part.x.tolist() == X[[3, 0]].tolist()
    assert len(part) == 2


def test_it_tells_what_it_is() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Categorical(["x", "y"])})
    assert repr(Dataset(X)) == "Dataset(4 rows, 2 features, max_bins=255)"
    assert repr(Dataset(frame, [0, 1], max_bins=16)) == (
        "Dataset(2 rows, 2 features, 1 of them categorical, with y, max_bins=16)"
    )
    assert repr(Dataset(sp.eye(3), weight=[1, 2, 3])) == (
        "Dataset(3 rows, 3 features, sparse, with weight, max_bins=255)"
    )
    assert gb.Dataset is Dataset
    assert Dataset(X).shape == (4, 2)


def test_it_is_never_written_to() -> None:
    data = Dataset(X)
    with pytest.raises(AttributeError, match="never written to"):
        data.cuts = None
    assert data.x is X


def test_it_survives_pickling() -> None:
    data = Dataset(X, [0, 1, 0, 1], weight=[1, 2, 3, 4])
    data.binned(Counting())
    back = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(back.x, X)
    assert back.weight.tolist() == [1, 2, 3, 4]
    assert back.training_set(Counting()).multiplicity.tolist() == [1, 2, 3, 4]


def test_threads_do_not_change_the_cuts(rng: np.random.Generator) -> None:
    x = rng.normal(size=(20_000, 30)).astype(np.float32)
    one, two = (Dataset(x, n_jobs=n) for n in (1, -1))
    for a, b in zip(one.cuts.thresholds, two.cuts.thresholds, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("given", "weight", "multiplicity"),
    [
        ([1.0, 1.0], None, None),
        ([1.0, 4096.0], None, [1, 4096]),
        ([1.0, 4097.0], [1.0, 4097.0], None),
        ([2.0, 2.0], None, [2, 2]),
        ([0.5, 2.0], [0.5, 2.0], None),
    ],
)
def test_whole_weights_are_multiplicities(
    given: list[float], weight: list[float] | None, multiplicity: list[int] | None
) -> None:
    found = split_weights(np.array(given))
    assert [None if part is None else part.tolist() for part in found] == [weight, multiplicity]
    assert found[1] is None or found[1].dtype == np.int32
    assert split_weights(None) == (None, None)


def test_kept_rows() -> None:
    assert kept_rows(None) is None
    assert kept_rows(np.array([0.5, 1.0])) is None
    assert kept_rows(np.array([0.0, 1.0, 0.0, 2.0])).tolist() == [1, 3]
    assert check_weight(pd.Series([1, 2]), 2).tolist() == [1.0, 2.0]


def test_groups_as_ids_or_sizes() -> None:
    assert check_group(None, 3) is None
    assert check_group(["a", "a", "b"], 3).tolist() == ["a", "a", "b"]
    assert check_group([2, 1], 3).tolist() == [0, 0, 1]


def test_a_dataset_to_predict_that_is_another_is_told_how() -> None:
    frame = pd.DataFrame({"town": pd.Categorical(["x", "y"] * 20), "size": np.arange(40.0)})
    model = gb.GradientBoostingRegressor(n_estimators=2, n_jobs=1).fit(frame, frame["size"])
    others = {
        "column 0 of this one is 'size', that of the training data 'town'": frame[["size", "town"]],
        "column 'town' has other categories": frame[:1].astype({"town": str}),
        "this one has 1 features, the training data 2": frame[["size"]],
    }
    for words, rows in others.items():
        with pytest.raises(gb.InputError, match=f"X: a Dataset must have the features, .*; {words}. Pass the data"):
            model.predict(gb.Dataset(rows))


@pytest.mark.parametrize(("name", "here"), [("sample_weight", "weight"), ("label", "y"), ("base_margin", "init_score")])
def test_names_of_other_libraries_are_answered(name, here):
    with pytest.raises(TypeError, match=f"Dataset: unknown parameter '{name}'; here it is {here}"):
        Dataset(X, **{name: np.ones(len(X))})


@pytest.mark.parametrize("kind", ["regressor", "quantiles", "classifier", "ranker"])
def test_score_takes_what_the_dataset_holds(kind: str) -> None:
    rng = np.random.default_rng(0)
    x, weight, query = rng.normal(size=(60, 2)), np.repeat(rng.integers(1, 4, 6), 10), np.repeat(np.arange(6), 10)
    y = x[:, 0] + rng.normal(size=60)
    few = {"n_estimators": 2, "n_jobs": 1}
    grade, level = np.digitize(y, [-0.5, 0.5]), gb.losses.Quantile([0.1, 0.9])
    model, target, group = {
        "regressor": (gb.GradientBoostingRegressor(**few), y, {}),
        "quantiles": (gb.GradientBoostingRegressor(loss=level, **few), y, {}),
        "classifier": (gb.GradientBoostingClassifier(**few), grade, {}),
        "ranker": (gb.GradientBoostingRanker(eval_metric="auc", **few), grade, {"group": query}),
    }[kind]
    model.fit(x, target, **group)
    expected = model.score(x, target, sample_weight=weight, **group)
    assert expected != model.score(x, target, **group)
    assert expected == model.score(gb.Dataset(x, target, weight=weight, **group))
    assert expected == model.score(gb.Dataset(x, weight=weight, **group), target)
    with pytest.raises(gb.InputError, match="y: a target is needed to be judged by"):
        model.score(x, **group)
