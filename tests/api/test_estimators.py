"""The two estimators, on the real backend."""

from __future__ import annotations

import inspect
import math
import pickle
import pydoc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import gpuboost as gb
from gpuboost.api.docstrings import completed
from gpuboost.watch.record import Round

Data = tuple[np.ndarray, np.ndarray]


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"n_estimators": 20, "max_depth": 3, **params})


def classifier(**params: Any) -> gb.GradientBoostingClassifier:
    return gb.GradientBoostingClassifier(**{"n_estimators": 20, "max_depth": 3, **params})


def rmse(model: Any, x: Any, y: Any) -> float:
    return float(np.sqrt(np.mean((model.predict(x) - y) ** 2)))


class TestLearning:
    def test_a_regressor_learns(self, regression_data: Data) -> None:
        x, y = regression_data
        model = regressor(n_estimators=200).fit(x[:200], y[:200])
        assert rmse(model, x[200:], y[200:]) < 0.5 * y[200:].std()

    @pytest.mark.parametrize("growth", ["depthwise", "leafwise", "oblivious"])
    @pytest.mark.parametrize("step", ["newton", "gradient", "constant", gb.NewtonStep()])
    def test_a_classifier_learns(self, binary_data: Data, growth: str, step: Any) -> None:
        x, y = binary_data
        model = classifier(n_estimators=100, growth=growth, step=step).fit(x[:200], y[:200])
        assert model.score(x[200:], y[200:]) > 0.65

    def test_several_classes_of_any_name(self, multiclass_data: Data) -> None:
        x, y = multiclass_data
        model = classifier(n_estimators=50).fit(x[:200], y[:200])
        assert model.score(x[200:], y[200:]) > 0.7
        assert model.classes_.tolist() == ["one", "three", "two"]
        assert model.loss_ == gb.losses.Softmax(3)
        assert model.decision_function(x).shape == (300, 3)
        np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1.0)

    @pytest.mark.parametrize(
        "labels", [["no", "yes"], [-1, 1], [False, True], [0.0, 2.0], np.array(["a", "bc"], object)], ids=str
    )
    def test_two_classes_of_any_kind(self, binary_data: Data, labels: Any) -> None:
        x, y = binary_data
        named = np.asarray(labels)[y]
        model, plain = classifier().fit(x, named), classifier().fit(x, y)
        np.testing.assert_array_equal(model.predict(x), np.asarray(labels)[plain.predict(x)])
        np.testing.assert_array_equal(model.predict_proba(x), plain.predict_proba(x))
        assert model.predict(x).dtype == named.dtype

    @pytest.mark.parametrize(
        "loss", ["huber", "absolute_error", gb.losses.Quantile(0.9), "poisson", "gamma", "tweedie"]
    )
    def test_every_loss_beats_its_constant(self, regression_data: Data, loss: Any) -> None:
        x, y = regression_data
        y = np.exp(0.5 * y)
        model = regressor(n_estimators=60, loss=loss).fit(x[:200], y[:200], eval_set=(x[200:], y[200:]))
        (curve,) = model.evals_result_["validation_0"].values()
        assert curve[-1] < curve[0]

    def test_a_quantile_splits_the_rows_as_asked(self, regression_data: Data) -> None:
        x, y = regression_data
        below = y <= regressor(loss=gb.losses.Quantile(0.8), n_estimators=100).fit(x, y).predict(x)
        assert 0.72 < below.mean() < 0.88

    def test_exponential_and_softmax_of_two(self, binary_data: Data) -> None:
        x, y = binary_data
        for loss in ("exponential", "softmax"):
            model = classifier(loss=loss, n_estimators=60).fit(x, y)
            assert model.score(x, y) > 0.8
            assert model.decision_function(x).shape == (300,)
            np.testing.assert_array_equal(model.decision_function(x) > 0, model.predict(x) == 1)

    def test_class_weights_are_row_weights(self, binary_data: Data) -> None:
        x, y = binary_data
        weight = np.where(y == 1, 3.0, 1.0)
        by_class = classifier(class_weight={1: 3}).fit(x, y)
        np.testing.assert_array_equal(by_class.predict_proba(x), classifier().fit(x, y, weight).predict_proba(x))

    def test_balanced_classes_have_equal_totals(self, binary_data: Data) -> None:
        x, y = binary_data
        keep = (y == 1) | (np.arange(300) % 5 == 0)
        shares = classifier(class_weight="balanced", n_estimators=0).fit(x[keep], y[keep]).predict_proba(x[:1])
        np.testing.assert_allclose(shares, 0.5, rtol=1e-6)


def cubic(y: float, f: float) -> float:
    return abs(y - f) ** 3 / 3.0


def cubic_gradient(y: float, f: float) -> float:
    return (f - y) * abs(f - y)


def cubic_hessian(y: float, f: float) -> float:
    return 2.0 * abs(f - y) + 0.1


def log_odds(y: float, f: float) -> float:
    return math.log1p(math.exp(-f if y > 0.5 else f))


def log_odds_gradient(y: float, f: float) -> float:
    return 1.0 / (1.0 + math.exp(-f)) - y


def log_odds_hessian(y: float, f: float) -> float:
    p = 1.0 / (1.0 + math.exp(-f))
    return p * (1.0 - p)


def sigmoid(f: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-f))


class TestOwnLosses:
    def test_a_regressor_learns_it_and_its_file_predicts(self, regression_data: Data, tmp_path: Path) -> None:
        x, y = regression_data
        loss = gb.losses.custom(cubic, cubic_gradient, cubic_hessian, start="minimise")
        model = regressor(loss=loss, n_estimators=60).fit(x, y, eval_set=(x, y))
        curve = model.evals_result_["validation_0"]["loss"]
        assert curve[-1] < 0.1 * curve[0]
        model.save_model(tmp_path / "m.json")
        loaded = gb.load_model(tmp_path / "m.json")
        np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
        more = regressor(loss=loss, n_estimators=5).fit(x, y, init_model=tmp_path / "m.json")
        np.testing.assert_array_equal(more.predict(x), regressor(loss=loss, n_estimators=65).fit(x, y).predict(x))

    def test_a_classifier_needs_a_link_for_probabilities(self, binary_data: Data) -> None:
        x, y = binary_data
        functions = log_odds, log_odds_gradient, log_odds_hessian
        model = classifier(loss=gb.losses.custom(*functions, inverse_link=sigmoid)).fit(x, y)
        np.testing.assert_allclose(model.predict_proba(x)[:, 1], sigmoid(model.decision_function(x)))
        assert model.score(x, y) > 0.8
        bare = classifier(loss=gb.losses.custom(*functions)).fit(x, y)
        np.testing.assert_array_equal(bare.predict(x), model.predict(x))
        with pytest.raises(gb.InputError, match="inverse_link"):
            bare.predict_proba(x)


class TestInput:
    def test_a_dataset_gives_the_same_model_as_its_arrays(self, regression_data: Data) -> None:
        x, y = regression_data
        weight = np.arange(300) % 3
        model = regressor().fit(x, y, weight)
        data = gb.Dataset(x, y, weight=weight)
        for _ in range(2):  # also with the bins of an earlier fit
            np.testing.assert_array_equal(regressor().fit(data).predict(x), model.predict(x))
        beside = regressor().fit(gb.Dataset(x, weight=weight), y)
        np.testing.assert_array_equal(beside.predict(data), model.predict(x))

    def test_a_dataset_decides_about_its_bins(self, regression_data: Data) -> None:
        x, y = regression_data
        data = gb.Dataset(x, y, max_bins=16)
        assert max(regressor().fit(data).ensemble_.cuts.n_bins) <= 16
        with pytest.raises(gb.RecipeError, match="max_bins"):
            regressor(max_bins=32).fit(data)
        with pytest.raises(gb.RecipeError, match="categorical_features"):
            regressor(categorical_features=[0]).fit(data)

    def test_a_dataset_holds_target_and_weights_once(self, regression_data: Data) -> None:
        x, y = regression_data
        with pytest.raises(gb.InputError, match="y: the Dataset"):
            regressor().fit(gb.Dataset(x, y), y)
        with pytest.raises(gb.InputError, match="sample_weight: the Dataset"):
            regressor().fit(gb.Dataset(x, y, weight=np.ones(300)), sample_weight=np.ones(300))
        with pytest.raises(gb.InputError, match="needs a target"):
            regressor().fit(gb.Dataset(x))

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_matrix])
    def test_sparse_is_dense_with_zeros(self, regression_data: Data, kind: Any) -> None:
        x, y = regression_data
        x = np.where(np.abs(x) > 0.7, x, 0.0)
        dense, sparse = regressor().fit(x, y), regressor().fit(kind(x), y)
        np.testing.assert_array_equal(sparse.predict(x), dense.predict(kind(x)))
        np.testing.assert_array_equal(sparse.predict(kind(x)), dense.predict(x))

    def test_float32_is_predicted_as_it_was_trained(self, regression_data: Data) -> None:
        x, y = regression_data
        narrow = x.astype(np.float32)
        model = regressor().fit(narrow, y)
        np.testing.assert_array_equal(model.predict(narrow), model.predict(narrow.astype(np.float64)))

    def test_a_frame_with_categories(self, rng: np.random.Generator) -> None:
        town = rng.choice(["Bath", "Ely", "Wells", "York"], 400)
        y = np.isin(town, ["Ely", "York"]).astype(float) + 0.01 * rng.normal(size=400)
        frame = pd.DataFrame({"noise": rng.normal(size=400), "town": pd.Categorical(town)})
        model = regressor(n_estimators=100).fit(frame, y)
        assert rmse(model, frame, y) < 0.02
        assert model.feature_names_in_.tolist() == ["noise", "town"]
        named = regressor(n_estimators=100, categorical_features=["town"]).fit(frame.astype({"town": object}), y)
        np.testing.assert_array_equal(named.predict(frame), model.predict(frame))

    def test_weights_are_repeats_to_the_last_bit(self, binary_data: Data) -> None:
        x, y = binary_data
        times = np.arange(300) % 4
        weighted, repeated = classifier().fit(x, y, times), classifier().fit(x.repeat(times, 0), y.repeat(times))
        np.testing.assert_array_equal(weighted.predict_proba(x), repeated.predict_proba(x))

    def test_nothing_is_printed_unless_asked_for(self, regression_data: Data, capfd: pytest.CaptureFixture) -> None:
        regressor().fit(*regression_data)
        assert capfd.readouterr() == ("", "")
        regressor(verbose=10).fit(*regression_data)
        out, err = capfd.readouterr()
        assert out == ""
        assert [line.split("]")[0] for line in err.splitlines()[1:]] == ["[10/20", "[20/20"]


class TestWatching:
    def test_eval_sets_in_every_form(self, regression_data: Data) -> None:
        x, y = regression_data
        w = np.ones(100)
        forms: list[tuple[Any, list[str]]] = [
            ((x[:100], y[:100]), ["validation_0"]),
            ((x[:100], y[:100], w), ["validation_0"]),
            (gb.Dataset(x[:100], y[:100]), ["validation_0"]),
            ([(x[:100], y[:100]), (x[100:], y[100:])], ["validation_0", "validation_1"]),
            ({"old": (x[:100], y[:100]), "new": gb.Dataset(x[100:], y[100:])}, ["old", "new"]),
        ]
        seen = []
        for form, names in forms:
            model = regressor().fit(x, y, eval_set=form)
            assert list(model.evals_result_) == names
            seen.append(model.evals_result_[names[0]]["rmse"])
        assert all(one == seen[0] for one in seen)
        assert seen[0][-1] == pytest.approx(rmse(model, x[:100], y[:100]))

    def test_weights_of_an_eval_set_are_repeats(self, regression_data: Data) -> None:
        x, y = regression_data
        times = np.arange(300) % 3
        weighted = regressor().fit(x, y, eval_set=(x, y, times)).evals_result_["validation_0"]["rmse"]
        repeated = regressor().fit(x, y, eval_set=(x.repeat(times, 0), y.repeat(times)))
        np.testing.assert_allclose(weighted, repeated.evals_result_["validation_0"]["rmse"], rtol=1e-12)

    def test_several_metrics_and_one_of_ones_own(self, binary_data: Data) -> None:
        x, y = binary_data

        def brier(truth: np.ndarray, p: np.ndarray) -> float:
            return float(np.mean((truth - p) ** 2))

        model = classifier(eval_metric=["auc", "logloss", brier]).fit(x, y, eval_set=(x, y))
        assert list(model.evals_result_["validation_0"]) == ["auc", "logloss", "brier"]
        p = model.predict_proba(x)[:, 1]
        assert model.evals_result_["validation_0"]["brier"][-1] == pytest.approx(brier(y, p))

    def test_early_stopping_keeps_the_best_round(self, binary_data: Data) -> None:
        x, y = binary_data
        model = classifier(n_estimators=500, learning_rate=0.5, early_stopping_rounds=5)
        model.fit(x[:150], y[:150], eval_set=(x[150:], y[150:]))
        curve = model.evals_result_["validation_0"]["logloss"]
        assert model.best_iteration_ == int(np.argmin(curve))
        assert len(curve) == model.best_iteration_ + 6 < 500
        assert model.best_score_ == min(curve)
        assert model.n_iter_ == model.best_iteration_ + 1 == model.ensemble_.n_rounds
        assert model.fit_report_.rounds == len(curve)
        same = classifier(n_estimators=model.n_iter_, learning_rate=0.5).fit(x[:150], y[:150])
        np.testing.assert_array_equal(model.predict_proba(x), same.predict_proba(x))

    def test_early_stopping_follows_a_metric_that_grows(self, binary_data: Data) -> None:
        x, y = binary_data
        model = classifier(n_estimators=500, learning_rate=0.5, early_stopping_rounds=3, eval_metric="auc")
        model.fit(x[:150], y[:150], eval_set=(x[150:], y[150:]))
        assert model.best_iteration_ == int(np.argmax(model.evals_result_["validation_0"]["auc"]))

    def test_a_callback_may_decide_about_min_delta(self, binary_data: Data) -> None:
        x, y = binary_data
        rule = gb.callbacks.EarlyStopping(3, min_delta=0.05)
        model = classifier(n_estimators=500, callbacks=[rule]).fit(x, y, eval_set=(x, y))
        assert model.n_iter_ < 50
        assert model.best_score_ == rule.best_score
        with pytest.raises(gb.RecipeError, match="one rule decides"):
            classifier(callbacks=[rule], early_stopping_rounds=3).fit(x, y, eval_set=(x, y))

    def test_no_early_stopping_no_best_round(self, binary_data: Data) -> None:
        model = classifier().fit(*binary_data, eval_set=binary_data)
        assert model.best_iteration_ is None
        assert model.best_score_ is None
        assert len(model.evals_result_["validation_0"]["logloss"]) == model.n_iter_ == 20

    def test_a_validation_fraction_is_set_aside(self, multiclass_data: Data) -> None:
        x, y = multiclass_data
        model = classifier(validation_fraction=0.25, early_stopping_rounds=3, n_estimators=400, random_state=1)
        model.fit(x, y)
        assert model.fit_report_.rows == 225
        assert model.n_iter_ < 400
        np.testing.assert_array_equal(model.predict(x), clone(model).fit(x, y).predict(x))
        with pytest.raises(gb.RecipeError, match="not both"):
            clone(model).fit(x, y, eval_set=(x, y))

    def test_a_callback_sees_every_round_and_stops(self, regression_data: Data) -> None:
        x, y = regression_data
        seen: list[Round] = []

        def watch(record: Round) -> bool:
            seen.append(record)
            return record.evals["validation_0"]["rmse"] < 0.9

        model = regressor(callbacks=[watch], n_estimators=200).fit(x, y, eval_set=(x, y))
        assert [one.round for one in seen] == list(range(model.n_iter_))
        assert model.n_iter_ < 200
        assert seen[-1].ensemble is model.ensemble_
        assert seen[-1].training_loss() == pytest.approx(0.5 * seen[-1].evals["validation_0"]["rmse"] ** 2)

    def test_a_checkpoint_is_a_model_to_continue(self, regression_data: Data, tmp_path: Path) -> None:
        x, y = regression_data
        path = tmp_path / "m.json"

        def fails(record: Round) -> None:
            if record.round == 12:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            regressor(callbacks=[gb.callbacks.Checkpoint(path, every=5), fails]).fit(x, y)
        saved = gb.load_model(path)
        assert saved.n_iter_ == 13
        rest = regressor(n_estimators=7).fit(x, y, init_model=path)
        np.testing.assert_array_equal(rest.predict(x), regressor().fit(x, y).predict(x))


class TestContinuing:
    @pytest.mark.parametrize("params", [{}, {"sampling": 0.5, "learners": 2, "random_state": 3}], ids=str)
    def test_two_halves_are_one_whole(self, multiclass_data: Data, params: dict[str, Any]) -> None:
        x, y = multiclass_data
        whole = classifier(**params).fit(x, y)
        half = classifier(n_estimators=12, **params).fit(x, y)
        both = classifier(n_estimators=8, **params).fit(x, y, init_model=half)
        assert both.n_iter_ == 20
        assert half.n_iter_ == 12
        np.testing.assert_array_equal(both.predict_proba(x), whole.predict_proba(x))

    def test_the_bins_are_those_of_the_first_model(self, regression_data: Data) -> None:
        x, y = regression_data
        first = regressor().fit(x[:150], y[:150])
        second = regressor().fit(x[150:], y[150:], init_model=first, eval_set=(x, y))
        assert second.ensemble_.cuts is first.ensemble_.cuts
        assert second.evals_result_["validation_0"]["rmse"][-1] == pytest.approx(rmse(second, x, y))
        assert rmse(second, x, y) < rmse(first, x, y)

    def test_early_stopping_counts_the_rounds_of_both(self, binary_data: Data) -> None:
        x, y = binary_data
        first = classifier(learning_rate=0.5).fit(x[:150], y[:150])
        second = classifier(learning_rate=0.5, n_estimators=300, early_stopping_rounds=4)
        second.fit(x[:150], y[:150], eval_set=(x[150:], y[150:]), init_model=first)
        assert second.n_iter_ == second.best_iteration_ + 1 > 20
        assert second.fit_report_.rounds == len(second.evals_result_["validation_0"]["logloss"])

    def test_other_classes_are_refused(self, binary_data: Data) -> None:
        x, y = binary_data
        with pytest.raises(gb.InputError, match="classes"):
            classifier().fit(x, y, init_model=classifier().fit(x, y + 1))

    def test_rows_without_some_class_go_on_with_a_row_of_weight_0(self, multiclass_data: Data) -> None:
        x, y = multiclass_data
        first, two = classifier(n_estimators=2).fit(x, y), y != "two"
        with pytest.raises(gb.InputError, match=r"init_model: knows the classes .*; y holds .*. Add a row of weight 0"):
            classifier(n_estimators=2).fit(x[two], y[two], init_model=first)
        last = np.flatnonzero(~two)[:1]
        rows, weight = np.r_[np.flatnonzero(two), last], np.r_[np.ones(two.sum()), 0.0]
        more = classifier(n_estimators=2).fit(x[rows], y[rows], sample_weight=weight, init_model=first)
        assert more.n_iter_ == 4


class TestStages:
    def test_the_last_stage_is_the_prediction(self, multiclass_data: Data) -> None:
        x, y = multiclass_data
        model = classifier(n_estimators=5).fit(x, y)
        for staged, plain in (
            (model.staged_predict, model.predict),
            (model.staged_predict_proba, model.predict_proba),
            (model.staged_decision_function, model.decision_function),
        ):
            stages = list(staged(x))
            assert len(stages) == 5
            np.testing.assert_array_equal(stages[-1], plain(x))

    def test_a_stage_is_a_shorter_fit(self, regression_data: Data) -> None:
        x, y = regression_data
        stages = list(regressor().fit(x, y).staged_predict(x))
        np.testing.assert_array_equal(stages[6], regressor(n_estimators=7).fit(x, y).predict(x))

    def test_apply_names_a_leaf_of_every_tree(self, multiclass_data: Data) -> None:
        x, y = multiclass_data
        model = classifier(n_estimators=4).fit(x, y)
        leaves = model.apply(x)
        assert leaves.shape == (300, 12)
        for tree, column in zip(model.ensemble_.trees, leaves.T, strict=True):
            assert tree.nodes.is_leaf[column].all()
            np.testing.assert_array_equal(
                np.bincount(column, minlength=len(tree.value))[column], tree.nodes.count[column]
            )


class TestFiles:
    @pytest.mark.parametrize("labels", [["no", "yes"], [-1, 1], [False, True], [0.0, 2.0]], ids=str)
    def test_a_loaded_classifier_is_the_same(self, binary_data: Data, tmp_path: Path, labels: list[Any]) -> None:
        x, y = binary_data
        named = np.asarray(labels)[y]
        model = classifier(sampling=0.8, step=gb.GradientStep(), class_weight={labels[1]: 2.0}, random_state=4)
        model.fit(x, named, eval_set=(x, named))
        model.save_model(tmp_path / "m.json")
        loaded = gb.load_model(tmp_path / "m.json")
        assert type(loaded) is type(model)
        assert loaded.get_params() == model.get_params()
        assert loaded.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
        np.testing.assert_array_equal(loaded.predict_proba(x), model.predict_proba(x))
        loaded.save_model(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()

    def test_a_loaded_regressor_knows_its_columns(self, tmp_path: Path, rng: np.random.Generator) -> None:
        frame = pd.DataFrame({"a": rng.normal(size=80), "b": pd.Categorical(rng.choice(["x", "y", "z"], 80))})
        y = frame["a"].to_numpy() + (frame["b"] == "y")
        model = regressor(loss=gb.losses.Huber(0.5), early_stopping_rounds=3).fit(frame, y, eval_set=(frame, y))
        model.save_model(tmp_path / "m.json")
        loaded = gb.load_model(tmp_path / "m.json")
        np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
        assert loaded.loss_ == gb.losses.Huber(0.5)
        assert (loaded.best_iteration_, loaded.best_score_) == (model.best_iteration_, model.best_score_)
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(frame.rename(columns={"a": "c"}))
        assert loaded.fit(frame, y, eval_set=(frame, y)).n_iter_ == model.n_iter_

    def test_the_bytes_do_not_depend_on_threads_or_time(self, binary_data: Data, tmp_path: Path) -> None:
        x, y = np.tile(binary_data[0], (60, 1)), np.tile(binary_data[1], 60)  # enough rows to be shared out
        found = set()
        for i, jobs in enumerate((1, 2, 4, 2)):
            model = classifier(n_jobs=jobs, verbose=0, device=("auto", "cpu")[i % 2], n_estimators=5).fit(x, y)
            model.save_model(tmp_path / "m.json")
            found.add((tmp_path / "m.json").read_bytes())
        assert len(found) == 1

    def test_parts_that_do_not_belong_together_are_refused(self, binary_data: Data, tmp_path: Path) -> None:
        path = tmp_path / "m.json"
        classifier(n_estimators=1).fit(*binary_data).save_model(path)
        text = path.read_text()
        for old, new, words in (
            ('"estimator":"GradientBoostingClassifier"', '"estimator":"os.system"', "estimator: with classes"),
            ('"values":[0,1]', '"values":[0,1,2]', "2 were expected; found 3"),
            ('"values":[0,1]', '"values":[1,0]', "sorted"),
            ('"dtype":"int64"', '"dtype":"O"', "one type"),
            ('"n_features":5', '"n_features":4', "columns"),
            ('"name":"logistic"', '"name":"squared"', "unknown loss"),
            ('"best_score":null', '"best_score":"high"', "best_score"),
            ('"reg_lambda":null', '"reg_gamma":null', "reg_gamma"),
            ('"reg_lambda":null', '"verbose":1', "verbose"),
            ('"sampling":null', '"sampling":{"policy":"Popen","rate":1}', "sampling"),
            ('"sampling":null', '"sampling":{"policy":"UniformSampling","rate":7}', "rate"),
        ):
            assert old in text
            path.write_text(text.replace(old, new))
            with pytest.raises(gb.InputError, match=words):
                gb.load_model(path)

    def test_an_unfitted_model_cannot_be_saved(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="not fitted"):
            regressor().save_model(tmp_path / "m.json")
        assert not list(tmp_path.iterdir())


class TestSurface:
    def test_pickles_and_clones(self, binary_data: Data) -> None:
        x, y = binary_data
        model = classifier(sampling=gb.UniformSampling(0.5), random_state=1).fit(x, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
        np.testing.assert_array_equal(clone(model).fit(x, y).predict_proba(x), model.predict_proba(x))

    def test_threads_may_ask_one_model_at_once(self, binary_data: Data) -> None:
        x = np.tile(binary_data[0], (120, 1))  # enough rows for the backend to use threads of its own
        model = classifier(n_jobs=2).fit(*binary_data)
        expected = model.predict_proba(x)
        with ThreadPoolExecutor(4) as pool:
            for answer in pool.map(lambda _: model.predict_proba(x), range(8)):
                np.testing.assert_array_equal(answer, expected)

    def test_a_refitted_model_predicts_anew(self, binary_data: Data) -> None:
        x, y = binary_data
        model = classifier().fit(x, y)
        model.predict(x)
        model.set_params(n_jobs=1).fit(x, 1 - y)
        np.testing.assert_array_equal(model.predict_proba(x), classifier().fit(x, 1 - y).predict_proba(x))

    def test_policies_are_nested_parameters(self, regression_data: Data) -> None:
        model = regressor(sampling=gb.UniformSampling(0.5), learners=gb.RandomGroups(2))
        assert model.get_params()["sampling__rate"] == 0.5
        search = GridSearchCV(model, {"sampling__rate": [0.25, 0.75], "learners__t": [1, 5]}, cv=2)
        search.fit(*regression_data)
        assert search.best_params_["learners__t"] == 5
        assert model.sampling == gb.UniformSampling(0.5)
        with pytest.raises(ValueError, match=r"sampling__share: UniformSampling\(.*\) has no such parameter; it has"):
            model.set_params(sampling__share=0.1)
        with pytest.raises(ValueError, match=r"^langevin__shrinkage: langevin is None, which has no parameters of its"):
            model.set_params(langevin__shrinkage=0.1)
        with pytest.raises(ValueError, match=r"^sample__rate: there is no parameter 'sample'"):
            model.set_params(sample__rate=0.1)

    @pytest.mark.parametrize(
        "params",
        [
            {"sampling": gb.MVS(0.3)},
            {"sampling": gb.smart_second_order(np.float32(0.5), paper=True)},
            {"sampling": gb.ImportanceSampling(rho=2.0, score=0.7, floor=0.1, variance_control="none", lag=2, eta=1)},
            {"sampling": gb.GOSS(0.3, 0.2, "none")},
            {"sampling": gb.WeightTrimming(0.8, "gradient")},
            {"sampling": gb.UniformSampling(0.5)},
            {"learners": gb.RandomGroups(np.int64(1), ("a", "b", "a"))},
            {"learners": gb.RandomGroup("root"), "step": gb.LineSearchStep("leaf")},
            {"learners": gb.WeightedGroups(1, [1.0, 2.0, np.float64(3.0)])},
            {"learners": gb.RandomLearners(4), "max_depth": 1},
            {"learners": gb.CyclicGroups(), "max_depth": 1},
            {"learners": gb.RandomByNode(2)},
            {"langevin": gb.Langevin(shrinkage=np.float32(0.1)), "step": gb.GradientStep()},
            {"base_learner": [gb.learners.TensorSpline(pairs=((0, 1),)), gb.learners.Linear(columns=(2,))]},
            {"base_learner": gb.learners.LinearTree(2)},
        ],
        ids=str,
    )
    @pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
    def test_a_loaded_model_knows_its_policies(
        self, params: dict[str, Any], regression_data: Data, tmp_path: Path
    ) -> None:
        x, y = regression_data
        model = regressor(n_estimators=3, random_state=1, **params).fit(x[:, :3], y)
        model.save_model(tmp_path / "a.json")
        loaded = gb.load_model(tmp_path / "a.json")
        for name, value in params.items():
            assert loaded.get_params()[name] == value
        loaded.save_model(tmp_path / "b.json")
        assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
        assert loaded.guarantee_.kind == model.guarantee_.kind
        again = clone(loaded).fit(x[:, :3], y)
        assert again.predict(x[:, :3]).tobytes() == model.predict(x[:, :3]).tobytes()

    def test_numbers_of_numpy_are_numbers(self, regression_data: Data, tmp_path: Path) -> None:
        """A grid of np.arange or np.linspace hands them over."""
        x, y = regression_data
        one, two, half = np.int64(1), np.int32(2), np.float32(0.5)
        for params in (
            {"learners": gb.RandomGroups(two), "sampling": gb.UniformSampling(half)},
            {"learners": gb.RandomByNode(half), "max_bins": np.uint8(200), "random_state": one},
            {"learners": gb.RandomLearners(two), "max_depth": one, "n_jobs": one, "verbose": np.int64(0)},
            {"base_learner": gb.learners.TensorSpline(pairs=((np.int64(0), one),)), "max_depth": 6},
            {"validation_fraction": half, "early_stopping_rounds": two, "learning_rate": half},
            {"langevin": gb.Langevin(inverse_temperature=np.float32(100.0), random_from=one)},
        ):
            model = regressor(**{"n_estimators": two, **params}).fit(x, y)
            model.save_model(tmp_path / "m.json")
            np.testing.assert_array_equal(gb.load_model(tmp_path / "m.json").predict(x), model.predict(x))
        assert gb.RandomGroups(one) == gb.RandomGroups(1)

    def test_a_loaded_model_has_no_log(self, regression_data: Data, tmp_path: Path) -> None:
        model = regressor(n_estimators=1).fit(*regression_data)
        assert len(model.log_.applied) == 1
        model.save_model(tmp_path / "m.json")
        assert gb.load_model(tmp_path / "m.json").log_ is None

    def test_so_are_base_learners(self, regression_data: Data) -> None:
        tree = DecisionTreeRegressor(max_depth=5, random_state=0)
        model = regressor(base_learner=tree, max_depth=6)
        assert model.get_params()["base_learner__max_depth"] == 5
        search = GridSearchCV(model, {"base_learner__max_depth": [1, 3]}, cv=2).fit(*regression_data)
        assert search.best_params_ == {"base_learner__max_depth": 3}
        assert search.best_estimator_.base_learner.max_depth == 3
        inside = regressor(base_learner=make_pipeline(StandardScaler(), tree))
        inside.set_params(base_learner__decisiontreeregressor__max_depth=2, n_estimators=2)
        assert (inside.base_learner[-1].max_depth, tree.max_depth) == (2, 5)  # the one given is left as it was
        assert regressor(base_learner=gb.learners.Spline()).set_params(base_learner__df=3.0).base_learner.df == 3.0

    def test_in_a_pipeline(self, binary_data: Data) -> None:
        x, y = binary_data
        assert make_pipeline(StandardScaler(), classifier()).fit(x, y).score(x, y) > 0.8

    @pytest.mark.parametrize("params", [{"sampling": 0.5}, {"learners": 2}, {"learners": 0.4}], ids=str)
    def test_random_state_decides_what_is_random(self, regression_data: Data, params: dict[str, Any]) -> None:
        x, y = regression_data

        def answer(seed: Any) -> np.ndarray:
            return regressor(random_state=seed, **params).fit(x, y).predict(x)

        np.testing.assert_array_equal(answer(1), answer(1))
        np.testing.assert_array_equal(answer(np.random.RandomState(7)), answer(np.random.RandomState(7)))
        assert (answer(1) != answer(2)).any()
        assert (answer(None) != answer(None)).any()

    def test_the_report_says_what_was_run(self, regression_data: Data) -> None:
        x, y = regression_data
        report = regressor(n_jobs=2, random_state=9).fit(x, y, sample_weight=np.arange(300) % 2).fit_report_
        assert (report.device, report.threads, report.seed) == ("cpu", 2, 9)
        assert "device='auto' took the CPU" in report.device_reason
        assert (report.rows, report.features, report.rounds, report.rounds_kept) == (150, 5, 20, 20)
        assert set(report.seconds) == {"prepare", "train"}
        assert report.verdict.kind == "sound"

    @pytest.mark.parametrize(
        ("make", "params", "kind", "words"),
        [
            (regressor, {}, "sound", "never rises"),
            (regressor, {"learning_rate": 2.5}, "heuristic", "above 2"),
            (regressor, {"loss": "absolute_error"}, "sound", "exact minimisers"),
            (regressor, {"loss": "absolute_error", "step": "gradient"}, "heuristic", "smoothness"),
            (classifier, {}, "heuristic", "Newton"),
            (classifier, {"step": "constant", "sampling": 0.3, "learners": 2}, "sound", "0.25-smooth"),
            (classifier, {"step": "gradient"}, "sound", "0.25-smooth"),
            (classifier, {"loss": "huber"}, "refused", "GradientBoostingRegressor"),
            (classifier, {"loss": "exponential", "step": "constant"}, "refused", "smoothness"),
            (classifier, {"max_depth": 0}, "refused", "max_depth"),
        ],
    )
    def test_the_verdict(
        self, binary_data: Data, make: Callable[..., Any], params: dict[str, Any], kind: str, words: str
    ) -> None:
        model = make(**params)
        verdict = model.check(*binary_data)
        assert verdict.kind == kind
        assert words in str(verdict)
        assert not hasattr(model, "n_features_in_")

    @pytest.mark.parametrize("step", ["constant", "gradient"])
    def test_a_sound_loss_never_rises(self, binary_data: Data, step: str) -> None:
        losses: list[float] = []
        model = classifier(
            step=step,
            sampling=0.3,
            learners=gb.RandomGroups(1),
            random_state=2,
            callbacks=[lambda r: losses.append(r.training_loss())],
        )
        assert model.check(*binary_data).kind == "sound"
        model.fit(*binary_data)
        assert all(after <= before for before, after in pairwise(losses))

    def test_leaves_that_cannot_be_reached_are_a_warning(self, regression_data: Data) -> None:
        with pytest.warns(UserWarning, match="max_leaves: 255 leaves cannot be reached"):
            regressor(growth="leafwise", max_leaves=255).fit(*regression_data)
        model = regressor(growth="leafwise", max_leaves=9, max_depth=None, n_estimators=3).fit(*regression_data)
        assert all(tree.nodes.is_leaf.sum() == 9 for tree in model.ensemble_.trees)

    @pytest.mark.parametrize(
        ("limits", "depth", "leaves"),
        [
            ({"max_depth": 4}, 4, 16),
            ({"max_depth": None, "max_leaves": 9}, None, 9),
            ({"max_depth": 3, "max_leaves": 7}, 3, 7),
            ({"max_depth": 10**9, "n_estimators": 1}, None, 300 * 300),
        ],
    )
    def test_oblivious_trees_keep_their_limits(
        self, limits: dict[str, Any], depth: int | None, leaves: int, regression_data: Data
    ) -> None:
        model = regressor(**{"growth": "oblivious", "n_estimators": 5, **limits}).fit(*regression_data)
        for tree in model.ensemble_.trees:
            questions = {(int(f), int(b)) for f, b in zip(tree.nodes.feature, tree.nodes.bin, strict=True) if f >= 0}
            assert depth is None or 1 <= len(questions) <= depth
            assert 2 <= tree.nodes.is_leaf.sum() <= leaves

    def test_jupyter_shows_what_came_out(self, binary_data: Data) -> None:
        model = classifier(n_estimators=3)
        assert "learned from" not in model._repr_html_()
        model.fit(*binary_data, eval_set={"<held>": binary_data})
        for text in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
            assert "300 rows, 5 features" in text
            assert "&lt;held&gt;" in text


class TestInspection:
    def test_contributions_sum_to_the_score(self, multiclass_data: Data, regression_data: Data) -> None:
        x, y = multiclass_data
        model = classifier().fit(x, y)
        values = model.predict_contributions(x)
        assert values.shape == (300, 3, 5)
        np.testing.assert_allclose(values.sum(axis=2), model.decision_function(x), atol=1e-9)
        numbers = regressor().fit(*regression_data)
        values = numbers.predict_contributions(regression_data[0])
        assert values.shape == (300, 6)
        np.testing.assert_allclose(values.sum(axis=1), numbers.predict(regression_data[0]), atol=1e-9)

    def test_interactions_sum_to_the_contributions(self, multiclass_data: Data, regression_data: Data) -> None:
        x, y = multiclass_data
        model = classifier().fit(x, y)
        values = model.predict_interactions(x, n_rounds=3)
        assert values.shape == (300, 3, 5, 5)
        np.testing.assert_allclose(values.sum(axis=3), model.predict_contributions(x, n_rounds=3), atol=1e-12)
        numbers = regressor().fit(*regression_data)
        values = numbers.predict_interactions(regression_data[0])
        assert values.shape == (300, 6, 6)
        assert np.array_equal(values, values.swapaxes(1, 2))
        np.testing.assert_allclose(values.sum(axis=(1, 2)), numbers.predict(regression_data[0]), atol=1e-9)

    def test_importances_find_the_noise(self, regression_data: Data) -> None:
        model = regressor().fit(*regression_data)
        np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)
        assert model.feature_importances_.argmin() == 4
        splits = sum(int((~tree.nodes.is_leaf).sum()) for tree in model.ensemble_.trees)
        assert model.feature_importance("split", normalise=False).sum() == splits
        with pytest.raises(gb.InputError, match="kind"):
            model.feature_importance("weight")


ESTIMATORS = (gb.GradientBoostingRegressor, gb.GradientBoostingClassifier, gb.GradientBoostingRanker)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_and_attribute_is_documented_once_in_order(estimator: type[Any]) -> None:
    parameters, _, attributes = (
        inspect.getdoc(estimator).split("Parameters\n----------\n")[1].partition("\n\nAttributes\n----------\n")
    )
    documented = [line.split(" : ")[0] for line in parameters.splitlines() if not line.startswith(" ")]
    assert documented == list(inspect.signature(estimator).parameters)
    of_fit = [line.split(" : ")[0] for line in attributes.splitlines() if not line.startswith(" ")]
    assert len(set(of_fit)) == len(of_fit) >= 9
    assert ("classes_" in of_fit) == (estimator is gb.GradientBoostingClassifier)
    assert all(f"\n |  {name}" in pydoc.plain(pydoc.render_doc(estimator)) for name in documented)


def test_what_is_said_of_one_estimator_replaces_what_is_said_of_all() -> None:
    assert "Number of boosting rounds, at most; 0 gives the best constant." in inspect.getdoc(
        gb.GradientBoostingRegressor
    )
    assert "at most; 0 gives the best constant." not in inspect.getdoc(gb.GradientBoostingRanker)


def test_a_parameter_without_a_description_is_refused() -> None:
    class Estimator:
        """One.

        Parameters
        ----------
        loss : str
            Its own.
        """

        def __init__(self, loss: str, n_estimators: int, unknown: int) -> None:
            """Nothing is kept."""

    with pytest.raises(TypeError, match="Estimator: the docstring lacks the parameter 'unknown'"):
        completed(Estimator)
