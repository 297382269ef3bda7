"""A number that stands for missing values."""

from __future__ import annotations

import json
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from emulator import emulated_gpu
from sklearn.base import clone

import gpuboost as gb

rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(150, 3)), 2)
Y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=150)
HOLES = rng.random(X.shape) < 0.2
WITH_NAN = np.where(HOLES, np.nan, X)
WITH_NUMBER = np.where(HOLES, -999.0, X)


def regressor(**params):
    return gb.GradientBoostingRegressor(n_estimators=4, max_depth=3, n_jobs=1, random_state=0, **params)


def trees(model):
    """The model file without what names the number."""
    lines = gb.dumps(model).splitlines()
    return [line for line in lines if not line.startswith(('"columns"', '"parameters"'))]


@cache
def model_of_nan():
    """The model of NaN; fitted by the first test that asks, since workers that collect the tests would each compile."""
    return regressor().fit(WITH_NAN, Y)


@pytest.mark.parametrize(
    "kind",
    [np.asarray, np.float32, np.asfortranarray, lambda x: x.tolist(), pd.DataFrame, sp.csr_matrix, np.ma.asarray],
)
def test_the_model_is_that_of_nan_in_its_place(kind):
    expected = regressor().fit(kind(WITH_NAN), Y)
    given, before = kind(WITH_NUMBER), kind(WITH_NUMBER)
    model = regressor(missing=-999.0).fit(given, Y, eval_set=(given, Y))
    assert trees(model) == trees(expected)
    assert model.predict(given).tobytes() == expected.predict(kind(WITH_NAN)).tobytes()
    assert model.predict(kind(WITH_NAN)).tobytes() == expected.predict(kind(WITH_NAN)).tobytes()
    assert (given != before).sum().sum() == 0 if not isinstance(given, list) else given == before
    last = np.sqrt(np.mean((model.predict(given) - Y) ** 2))
    assert model.evals_result_["validation_0"]["rmse"][-1] == pytest.approx(last, rel=1e-12)


def test_whole_numbers_and_fractions_of_float32_are_found():
    whole = np.where(HOLES, -1, np.rint(4 * X + 20)).astype(np.int16)
    expected = regressor().fit(np.where(HOLES, np.nan, whole), Y)
    assert trees(regressor(missing=-1).fit(whole, Y)) == trees(expected)
    narrow = np.where(HOLES, np.float32(-0.1), X.astype(np.float32) + 5)
    expected = regressor().fit(np.where(HOLES, np.float32(np.nan), narrow), Y)
    assert trees(regressor(missing=-0.1).fit(narrow, Y)) == trees(expected)
    assert trees(regressor(missing=7.0).fit(WITH_NAN, Y)) == trees(model_of_nan())


def test_categories_and_mixed_frames():
    city = np.where(HOLES[:, 2], "none", np.array(["a", "b", "c"])[np.abs(np.rint(X[:, 2])).astype(int) % 3])
    code = np.abs(np.rint(X[:, 2])).astype(int) % 3

    def frame(missing):
        return pd.DataFrame(
            {
                "x": np.where(HOLES[:, 0], missing, X[:, 0]),
                "city": pd.Categorical(city),
                "code": pd.Categorical(np.where(HOLES[:, 2], missing, code)),
            }
        )

    expected = regressor(categorical_encoding="partition").fit(frame(np.nan), Y)
    model = regressor(categorical_encoding="partition", missing=-999).fit(frame(-999), Y)
    assert model.columns_.categories == expected.columns_.categories
    assert model.predict(frame(-999)).tobytes() == expected.predict(frame(np.nan)).tobytes()
    named = regressor(categorical_features=[2], missing=-999).fit(np.column_stack([X[:, :2], frame(-999)["code"]]), Y)
    assert -999 not in named.columns_.categories[2]


def test_every_machine_and_place():
    expected = trees(regressor(missing=-999.0).fit(WITH_NUMBER, Y))
    with emulated_gpu() as cupy:
        model = regressor(missing=-999.0, device="cuda").fit(WITH_NUMBER, Y)
        assert trees(model) == expected
        assert model.predict(WITH_NUMBER).tobytes() == model_of_nan().predict(WITH_NAN).tobytes()
        there = cupy.empty(X.shape, np.float64)
        there.set(WITH_NUMBER)
        with pytest.raises(gb.InputError, match="missing: rows on a GPU have NaN"):
            model.predict(there)
    shards = regressor(missing=-999.0, execution=gb.DataParallel(2)).fit(WITH_NUMBER, Y)
    assert trees(shards) == expected


def test_the_model_keeps_it(tmp_path):
    model = regressor(missing=-999.0).fit(WITH_NUMBER, Y)
    path = tmp_path / "model.json"
    model.save_model(path)
    loaded = gb.load_model(path)
    assert loaded.missing == loaded.columns_.missing == -999.0
    assert gb.dumps(loaded) == path.read_text()
    for other in (loaded, pickle.loads(pickle.dumps(model)), clone(model).fit(WITH_NUMBER, Y), gb.load_predictor(path)):
        assert other.predict(WITH_NUMBER).tobytes() == model_of_nan().predict(WITH_NAN).tobytes()
    assert '"missing":NaN' not in gb.dumps(model_of_nan())
    assert np.isnan(gb.loads(gb.dumps(model_of_nan())).missing)
    for wrong in ('"missing":"x"', '"missing":true', '"missing":null'):
        with pytest.raises(gb.InputError, match="missing"):
            gb.loads(path.read_text().replace('"missing":-999.0', wrong, 1))


def test_a_dataset_has_its_own(tmp_path):
    data = gb.Dataset(WITH_NUMBER, Y, missing=-999.0)
    assert trees(regressor().fit(data)) == trees(model_of_nan()) == trees(regressor(missing=-999.0).fit(data))
    data.save(tmp_path / "rows.gbd")
    assert trees(regressor().fit(gb.Dataset.load(tmp_path / "rows.gbd"))) == trees(model_of_nan())
    with pytest.raises(gb.RecipeError, match=r"missing: the Dataset was made with NaN, the estimator asks for -999"):
        regressor(missing=-999.0).fit(gb.Dataset(WITH_NUMBER, Y))


def test_a_fitted_model_refuses_a_dataset_with_another(tmp_path):
    model, plain, own = regressor(missing=-999.0), gb.Dataset(WITH_NUMBER, Y), gb.Dataset(WITH_NUMBER, Y, missing=-999)
    rule = "missing: the model was fitted with -999, the Dataset was made with NaN; make it with missing=-999"
    with pytest.raises(gb.InputError, match=f"eval_set: validation_0: {rule}"):
        model.fit(WITH_NUMBER, Y, eval_set=plain)
    model.fit(WITH_NUMBER, Y)
    plain.save(tmp_path / "rows.gbd")
    for data in (plain, gb.Dataset.load(tmp_path / "rows.gbd")):
        for answer in (model.predict, model.predict_contributions, model.refit, model.staged_predict):
            with pytest.raises(gb.InputError, match=rule):
                list(answer(data))
    with pytest.raises(gb.InputError, match="made with -9;"):
        model.predict(gb.Dataset(WITH_NUMBER, missing=-9))
    with pytest.raises(gb.InputError, match=rule):
        gb.permutation_importance(model, plain)
    with pytest.raises(gb.InputError, match=rule):
        regressor().fit(plain, init_model=model)
    assert model.predict(own).tobytes() == model.predict(WITH_NUMBER).tobytes()
    assert gb.dumps(model.refit(own)) == gb.dumps(model.refit(WITH_NUMBER, Y))
    assert model_of_nan().predict(own).tobytes() == model_of_nan().predict(WITH_NAN).tobytes()


def test_joined_pieces_keep_it():
    pieces = [gb.Dataset(WITH_NUMBER[a:b], Y[a:b], missing=-999.0) for a, b in ((0, 60), (60, 150))]
    arrays = [(WITH_NUMBER[:60], Y[:60]), (WITH_NUMBER[60:], Y[60:])]
    expected = regressor(missing=-999.0).fit(WITH_NUMBER, Y)
    for data in (
        gb.Dataset.from_batches(pieces),
        gb.Dataset.from_batches(arrays, missing=-999.0),
        gb.Dataset.from_batches([pieces[0], arrays[1]], missing=-999.0),
        gb.Dataset.from_batches([piece.as_batch() for piece in pieces]),
    ):
        model = regressor().fit(data)
        assert model.columns_.missing == -999.0
        assert model.predict(WITH_NUMBER).tobytes() == expected.predict(WITH_NUMBER).tobytes()
    for wrong, asked, message in (
        ([pieces[0], arrays[1]], np.nan, "missing: that of piece 0 is -999, and that of piece 1 NaN"),
        ([pieces[0], gb.Dataset(WITH_NUMBER, Y, missing=-9)], np.nan, "piece 0 is -999, and that of piece 1 -9"),
        ([gb.Dataset(WITH_NUMBER, Y)], -999.0, "missing: the Datasets were made with NaN, from_batches asks for -999"),
        (arrays, "x", "^missing: must be NaN or the finite number"),
    ):
        with pytest.raises(gb.RecipeError, match=message):
            gb.Dataset.from_batches(wrong, missing=asked)


def test_a_continued_model_keeps_that_of_its_rows():
    begun = regressor(missing=-999.0).fit(WITH_NUMBER, Y)
    more = regressor(missing=-999.0).fit(WITH_NUMBER, Y, init_model=begun)
    assert (
        more.predict(WITH_NUMBER).tobytes()
        == regressor().fit(WITH_NAN, Y, init_model=model_of_nan()).predict(WITH_NAN).tobytes()
    )
    with pytest.raises(gb.RecipeError, match="missing: the model to continue was fitted with NaN"):
        regressor(missing=-999.0).fit(WITH_NUMBER, Y, init_model=model_of_nan())


def test_exports_that_would_read_it_as_a_value_are_refused(tmp_path):
    model = regressor(missing=-999.0).fit(WITH_NUMBER, Y)
    for export in (gb.export.to_c, gb.export.to_xgboost):
        with pytest.raises(gb.InputError, match="-999 stands for missing values"):
            export(model, tmp_path / "model.json")
    gb.export.to_xgboost(model.ensemble_, tmp_path / "model.json")
    assert "learner" in json.loads((tmp_path / "model.json").read_text())
    assert np.isnan(model.columns_.encode(WITH_NUMBER)).tolist() == HOLES.tolist()


@pytest.mark.parametrize("wrong", ["-999", None, np.inf, True, [0.0], 1j, 10**400])
def test_other_values_are_refused(wrong):
    with pytest.raises(gb.RecipeError, match=r"^missing: must be NaN or the finite number"):
        regressor(missing=wrong).fit(X, Y)
    with pytest.raises(gb.RecipeError, match=r"^missing: must be NaN or the finite number"):
        gb.Dataset(X, missing=wrong)


def test_zero_is_no_missing_value_of_a_sparse_matrix():
    with pytest.raises(gb.InputError, match="missing: entries that a sparse matrix does not store are 0"):
        regressor(missing=0.0).fit(sp.csr_matrix(WITH_NUMBER), Y)


def test_folds_and_chains_know_it():
    scores = gb.cv(regressor(missing=-999.0), WITH_NUMBER, Y, folds=3)
    assert str(scores) == str(gb.cv(regressor(), WITH_NAN, Y, folds=3))
    chain = {"langevin": gb.Langevin(shrinkage=0.1)}
    ours = gb.chains(regressor(missing=-999.0, **chain), WITH_NUMBER, Y, n_chains=2)
    theirs = gb.chains(regressor(**chain), WITH_NAN, Y, n_chains=2)
    assert [trees(model) for model in ours.models] == [trees(model) for model in theirs.models]
