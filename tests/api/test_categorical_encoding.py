"""``categorical_encoding``: ordered target statistics and one-hot features through the estimators."""

from __future__ import annotations

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from emulator import emulated_gpu

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.errors import InputError, RecipeError

Ordered = gb.OrderedTargetStatistics
FEW = {"n_estimators": 4, "max_depth": 3, "random_state": 1, "n_jobs": 2, "device": "cpu"}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    n = 600
    city, job, size = rng.integers(0, 40, n), rng.integers(0, 9, n), rng.normal(size=n)
    effect, joint = rng.normal(size=40), rng.normal(size=(40, 9))
    y = effect[city] + joint[city, job] + 0.5 * size + 0.1 * rng.normal(size=n)
    X = pd.DataFrame({"city": pd.Categorical(city), "size": size, "job": pd.Categorical([f"j{j}" for j in job])})
    X.loc[::11, "city"] = np.nan
    X.loc[::13, "size"] = np.nan
    weight = rng.integers(0, 3, n).astype(float)
    three = np.array(["low", "mid", "top"])[np.digitize(y, [-0.7, 0.7])]
    return SimpleNamespace(X=X, y=y, weight=weight, three=three)


def text_of(model, folder):
    model.save_model(folder / "model.json")
    return (folder / "model.json").read_text()


def regressor(**params):
    return gb.GradientBoostingRegressor(**{**FEW, "categorical_encoding": Ordered(permutations=2), **params})


KINDS = {
    "two permutations": (gb.GradientBoostingRegressor, "y", {}),
    "one": (gb.GradientBoostingRegressor, "y", {"categorical_encoding": Ordered(1, combinations=1, counts=False)}),
    "three classes": (gb.GradientBoostingClassifier, "three", {"learners": 0.5}),
    "drawn rows": (gb.GradientBoostingRegressor, "y", {"sampling": 0.5, "growth": "oblivious"}),
    "features of nodes": (gb.GradientBoostingRegressor, "y", {"learners": gb.RandomByNode(3)}),
    "constraints": (gb.GradientBoostingRegressor, "y", {"monotonic_cst": {"size": 1}, "max_bins": 9}),
    "one hot": (gb.GradientBoostingRegressor, "y", {"categorical_encoding": "one_hot"}),
}


SLOW = [kind for kind in KINDS if kind != "two permutations"]


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k in SLOW)) for k in KINDS])
def test_the_cpu_and_a_gpu_make_the_same_bytes_and_a_file_predicts_the_same(kind, data, tmp_path):
    make, target, params = KINDS[kind]
    y, fits = getattr(data, target), []
    with emulated_gpu() as there:
        for device in ("cpu", "cuda"):
            model = make(**{**FEW, "categorical_encoding": Ordered(permutations=2), **params, "device": device})
            fits.append(model.fit(data.X, y, sample_weight=data.weight, eval_set=(data.X, y)))
            grouped_there = there.counts["kernel write_means"] > 0
            assert grouped_there == (device == "cuda" and kind != "one hot")
            steps, sequences = model.fit_report_.rounds, 2 if kind == "two permutations" else 1
            if kind in ("two permutations", "one", "one hot"):  # two rounds of each sequence are recorded
                assert there.counts["graph"] >= (device == "cuda") * (steps - 2 * sequences)
        host, gpu = fits
        assert text_of(gpu, tmp_path) == text_of(host, tmp_path)
        assert gpu.evals_result_ == host.evals_result_
        np.testing.assert_array_equal(gpu.predict(data.X), host.predict(data.X))
    again = gb.load_model(tmp_path / "model.json")
    assert text_of(again, tmp_path) == text_of(host, tmp_path)
    np.testing.assert_array_equal(again.predict(data.X), host.predict(data.X))
    copied = pickle.loads(pickle.dumps(host))
    np.testing.assert_array_equal(copied.predict(data.X), host.predict(data.X))


@pytest.mark.slow
def test_rows_on_a_gpu_are_learned_from_and_predicted_as_rows_of_the_host(data, tmp_path):
    x = np.column_stack([data.X["city"].cat.codes, data.X["size"], data.X["job"].cat.codes]).astype(np.float32)
    params = {"categorical_features": [0, 2]}
    host = regressor(**params).fit(x, data.y)
    with emulated_gpu():
        there = open_gpu("cuda:0").upload(x)
        gpu = regressor(**params, device="cuda").fit(there, data.y)
        assert text_of(gpu, tmp_path) == text_of(host, tmp_path)
        np.testing.assert_array_equal(gpu.predict(there).get(), host.predict(x))


def test_values_of_rows_to_predict_are_means_of_all_training_rows_and_the_prior_for_unseen_ones(data):
    model = regressor(categorical_encoding=Ordered(prior_weight=2.0)).fit(data.X, data.y, sample_weight=data.weight)
    job = data.X["job"].to_numpy() == "j3"
    prior = np.average(data.y, weights=data.weight)
    mean = ((data.weight * data.y)[job].sum() + 2 * prior) / (data.weight[job].sum() + 2)
    rows = data.X.iloc[:2].assign(job=pd.Categorical(["j3", "unseen"]))
    seen = dict(zip(model.columns_.seen_names(), model.columns_.encode(rows).T, strict=True))
    np.testing.assert_allclose(seen["job: mean"], [mean, prior], rtol=1e-6)
    np.testing.assert_allclose(seen["job: rows"], [data.weight[job].sum(), 0.0])
    assert list(seen) == [
        "city: mean",
        "size",
        "job: mean",
        "city: rows",
        "job: rows",
        "city+job: mean",
        "city+job: rows",
    ]


def test_contributions_and_importances_are_of_the_columns_of_x(data):
    model = regressor().fit(data.X, data.y)
    shares = model.predict_contributions(data.X)
    assert shares.shape == (len(data.y), 4)
    np.testing.assert_allclose(shares.sum(axis=1), model.predict(data.X))
    pairs = model.predict_interactions(data.X)
    assert pairs.shape == (len(data.y), 4, 4)
    np.testing.assert_allclose(pairs, pairs.swapaxes(1, 2), atol=1e-12)
    np.testing.assert_allclose(pairs.sum(axis=2), shares, atol=1e-12)
    assert model.feature_importances_.shape == (3,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert (model.feature_importances_ > 0).all()
    assert {"city: mean", "size"} <= set(gb.export.trees_to_table(model)["split_feature"])


def test_exports_that_cannot_hold_statistics_refuse_them(data):
    model = regressor().fit(data.X, data.y)
    for export in (gb.export.to_onnx, gb.export.to_treelite, gb.export.to_shap_dict):
        with pytest.raises(InputError, match="target statistics of categories"):
            export(model)
    with pytest.raises(InputError, match="target statistics of categories"):
        gb.export.to_xgboost(model, "never_written.json")
    with pytest.raises(InputError, match="target statistics of categories"):
        gb.export.to_table(regressor(max_depth=1).fit(data.X, data.y))


def test_a_model_is_the_mean_of_a_sequence_for_each_permutation(data):
    model = regressor(n_estimators=3).fit(data.X, data.y, eval_set=(data.X, data.y))
    assert model.n_iter_ == 6
    ensemble = model.ensemble_
    np.testing.assert_allclose(ensemble.factors, 0.05)
    means = {
        f for f in range(ensemble.cuts.n_features) if (ensemble.cuts.columns == ensemble.cuts.columns[f]).sum() > 1
    }
    odd, even = ({int(f) for tree in ensemble.trees[i::2] for f in tree.nodes.feature if f in means} for i in (0, 1))
    assert odd
    assert even
    assert not odd & even
    rmse = np.sqrt(np.mean((model.predict(data.X) - data.y) ** 2))
    assert next(iter(model.evals_result_["validation_0"].values()))[-1] == pytest.approx(rmse)


def test_a_fit_that_is_resumed_or_continued_makes_the_bytes_of_an_uninterrupted_one(data, tmp_path):
    whole = regressor(n_estimators=6).fit(data.X, data.y)
    path = tmp_path / "checkpoint.json"
    regressor(n_estimators=3, callbacks=[gb.callbacks.Checkpoint(path, every=3)]).fit(data.X, data.y)
    resumed = regressor(n_estimators=6).fit(data.X, data.y, resume_from=path)
    assert text_of(resumed, tmp_path) == text_of(whole, tmp_path)
    half = regressor(n_estimators=3).fit(data.X, data.y)
    both = regressor(n_estimators=3).fit(data.X, data.y, init_model=half)
    np.testing.assert_array_equal(both.predict(data.X), whole.predict(data.X))


@pytest.mark.slow
def test_shards_make_the_same_bytes(data, tmp_path):
    plain = text_of(regressor().fit(data.X, data.y), tmp_path)
    shards = regressor(execution=gb.DataParallel(2, engine="threads")).fit(data.X, data.y)
    assert text_of(shards, tmp_path) == plain


def test_datasets_cross_validation_and_early_stopping(data, tmp_path):
    plain = text_of(regressor().fit(data.X, data.y), tmp_path)
    dataset = gb.Dataset(data.X, data.y)
    model = regressor().fit(dataset)
    assert text_of(model, tmp_path) == plain
    np.testing.assert_array_equal(model.predict(dataset), model.predict(data.X))
    assert len(gb.cv(regressor(), data.X, data.y, folds=2).evals_result_)
    stopped = regressor(n_estimators=40, learning_rate=1.0, validation_fraction=0.3, early_stopping_rounds=2)
    stopped.fit(data.X, data.y)
    assert stopped.best_iteration_ + 1 == stopped.n_iter_ < 80


REFUSED = {
    "Langevin": {"langevin": gb.Langevin()},
    "Asynchronous": {"execution": gb.Asynchronous(2)},
    "corrects gradients": {"sampling": gb.ImportanceSampling(0.5, variance_control="node")},
    "for trees": {"base_learner": gb.learners.Spline()},
    "labels or weights": {"learners": gb.WeightedGroups(2, [1.0, 1.0, 2.0])},
}


@pytest.mark.parametrize("why", REFUSED)
def test_pieces_that_contradict_several_permutations_are_refused_with_the_reason(why, data):
    model = regressor(**REFUSED[why])
    with pytest.raises(RecipeError, match=f"categorical_encoding: .*{why}"):
        model.fit(data.X, data.y)
    assert model.check(data.X, data.y).kind == "refused"


def test_one_permutation_goes_with_workers_and_with_langevin(data):
    one = {"categorical_encoding": Ordered(permutations=1)}
    for params in ({"execution": gb.Asynchronous(2)}, {"langevin": gb.Langevin()}):
        assert np.isfinite(regressor(**one, **params).fit(data.X, data.y).predict(data.X)).all()


@pytest.mark.parametrize("wrong", ["words", 3, None, Ordered])
def test_what_is_no_encoding_is_refused(wrong, data):
    with pytest.raises(RecipeError, match="categorical_encoding: must be one of"):
        regressor(categorical_encoding=wrong).fit(data.X, data.y)


@pytest.mark.parametrize(
    "wrong",
    [{"permutations": 0}, {"permutations": 65}, {"prior_weight": 0.0}, {"combinations": 4}, {"counts": 1},
     {"one_hot_max_size": -1}],
)  # fmt: skip
def test_settings_out_of_their_range_are_refused(wrong):
    with pytest.raises(RecipeError, match=f"categorical_encoding: {next(iter(wrong))} must be"):
        Ordered(**wrong)


DAMAGE = {
    "version": lambda file, statistics, table: file.update(version=1),
    "prior": lambda file, statistics, table: statistics.update(prior=[]),
    "keys": lambda file, statistics, table: table["keys"].reverse(),
    "weight": lambda file, statistics, table: table["weight"].__setitem__(0, -1),
    "sums": lambda file, statistics, table: table["sums"][0].pop(),
    "columns": lambda file, statistics, table: table.update(columns=[0, 1]),
    "permutations": lambda file, statistics, table: statistics.update(permutations=3),
    "tables": lambda file, statistics, table: statistics["tables"].pop(0),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_file_with_other_statistics_is_refused(how, data, tmp_path):
    document = json.loads(text_of(regressor(n_estimators=1).fit(data.X, data.y), tmp_path))
    statistics = document["columns"]["statistics"]
    DAMAGE[how](document, statistics, statistics["tables"][-1])
    (tmp_path / "damaged.json").write_text(json.dumps(document))
    with pytest.raises(InputError):
        gb.load_model(tmp_path / "damaged.json")


def test_the_automatic_choice_is_statistics_above_255_categories_and_sets_below(data, tmp_path):
    rng = np.random.default_rng(3)
    many = pd.DataFrame({"id": pd.Categorical(rng.integers(0, 400, 1500)), "x": rng.normal(size=1500)})
    y = rng.normal(size=400)[many["id"].astype(int)] + 0.3 * rng.normal(size=1500)
    auto = gb.GradientBoostingRegressor(**FEW).fit(many, y)
    assert auto.columns_.seen_names() == ["id: mean", "x", "id: rows"]
    assert auto.fit_report_.verdict.kind == "heuristic"
    np.testing.assert_array_equal(
        auto.predict(many), regressor(categorical_encoding="ordered").fit(many, y).predict(many)
    )
    held = gb.GradientBoostingRegressor(**FEW, langevin=gb.Langevin()).fit(many, y)
    few = gb.GradientBoostingRegressor(**FEW).fit(data.X, data.y)
    assert held.columns_.statistics is few.columns_.statistics is None
    sets = regressor(categorical_encoding="partition").fit(data.X, data.y)
    np.testing.assert_array_equal(few.predict(data.X), sets.predict(data.X))
    assert "categorical_encoding" not in text_of(few, tmp_path)
    with pytest.raises(RecipeError, match="categorical_encoding: the model to continue splits by sets"):
        regressor().fit(data.X, data.y, init_model=few)


def test_columns_pickled_before_statistics_load():
    columns = gb.Dataset(pd.DataFrame({"a": [1.0, 2.0]})).columns
    old = object.__new__(type(columns))
    old.__setstate__([columns.n_features, columns.names, columns.categories])
    assert old == columns


def test_a_column_of_many_categories_that_tells_nothing_does_not_lower_the_held_out_score():
    differences = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x, noise = rng.normal(size=2000), rng.integers(0, 400, 2000)
        y = (x + rng.normal(size=2000) > 0).astype(int)
        X = pd.DataFrame({"x": x, "id": pd.Categorical(noise)})
        losses = []
        for columns in (["x"], ["x", "id"]):
            model = gb.GradientBoostingClassifier(**{**FEW, "n_estimators": 15}, categorical_encoding="ordered")
            p = model.fit(X[columns][:1000], y[:1000]).predict_proba(X[columns][1000:])[:, 1]
            losses.append(-np.mean(np.log(np.where(y[1000:] == 1, p, 1 - p))))
        differences.append(losses[1] - losses[0])
    assert np.mean(differences) < 0.005 + 2 * np.std(differences) / np.sqrt(len(differences))


def test_a_category_of_few_rows_is_believed_where_rows_of_a_category_are_alike():
    """Held-out R2 of 600 categories of 2.7 rows; that of means whose prior knows both variances is 0.815."""
    scores = {"auto": [], 1.0: []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        effect, code, new = rng.normal(size=600), rng.integers(0, 600, 1600), rng.integers(0, 600, 4000)
        y, y_new = (effect[c] + 0.3 * rng.normal(size=len(c)) for c in (code, new))
        X, X_new = (pd.DataFrame({"c": pd.Categorical(c, categories=range(600))}) for c in (code, new))
        for weight, found in scores.items():
            model = gb.GradientBoostingRegressor(n_jobs=2, categorical_encoding=Ordered(prior_weight=weight))
            found.append(model.fit(X, y).score(X_new, y_new))
    auto, one = np.mean(scores["auto"]), np.mean(scores[1.0])
    assert auto > 0.79
    assert auto > one + 0.015
