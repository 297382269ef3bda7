"""``base_learner=``: scikit-learn estimators and the built-in families, through the estimators."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from emulator import emulated_gpu
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from support.examples import daily

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.learners import CategoricalRidge, Linear, LinearTree, Spline, TensorSpline, Tree
from gpuboost.training.parameters.base_learners import not_on_gpus

FAMILIES = [
    Linear(),
    [Spline(knots=8), CategoricalRidge(columns=(3,))],
    LinearTree(max_depth=2),
    Spline(knots=8),
    [Linear(), TensorSpline(pairs=((0, 1),), cells=8)],
    [Tree(), Spline(knots=8)],
]
EVERY = [DecisionTreeRegressor(max_depth=2), *FAMILIES]


def rows(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 5, n)])
    y = x[:, 0] + np.sin(2.0 * x[:, 1]) + np.array([0.0, 1.0, -1.0, 2.0, 0.5])[x[:, 3].astype(int)]
    return x, y + 0.1 * rng.normal(size=n)


ON_CPUS = [one for one in EVERY if not_on_gpus(one) is not None]


class Mean(RegressorMixin, BaseEstimator):
    """Takes no weights; remembers what it was given."""

    seen: ClassVar[list[tuple[Any, ...]]] = []

    def fit(self, X: Any, y: Any) -> Mean:
        Mean.seen.append((X, y))
        self.slope_ = float(X[:, 0] @ y) / float(X[:, 0] @ X[:, 0])
        return self

    def predict(self, X: Any) -> Any:
        return self.slope_ * X[:, 0]


def name_of(value: Any) -> str:
    return "+".join(type(one).__name__ for one in value) if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize("learner", ON_CPUS, ids=name_of)
def test_what_is_no_function_of_bins_is_fitted_on_the_cpu(learner: Any) -> None:
    x, y = rows()
    with emulated_gpu():
        with pytest.raises(
            gb.DeviceError, match=r"^device: base_learner=.* is fitted on the CPU; got device='cuda'\. Use"
        ):
            gb.GradientBoostingRegressor(base_learner=learner, device="cuda").fit(x, y)
        model = gb.GradientBoostingRegressor(n_estimators=1, base_learner=learner).fit(x, y)
    assert model.fit_report_.device == "cpu"
    assert model.fit_report_.device_reason.startswith("device='auto' took the CPU, where base_learner=")
    with pytest.raises(gb.DeviceError, match=r"^device: base_learner=.* is fitted on the CPU, and no memory"):
        gb.estimate_memory(1_000, 4, base_learner=learner)


@pytest.mark.slow
@pytest.mark.parametrize("learner", [one for one in EVERY if not_on_gpus(one) is None], ids=name_of)
def test_functions_of_bins_are_fitted_on_a_gpu_too(
    learner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an eval set and early stopping, and wherever X lives: the bytes of the CPU."""
    x, y = rows()
    x[::7, 0] = np.nan
    given = {
        "n_estimators": 30, "learning_rate": 0.7, "early_stopping_rounds": 3, "base_learner": learner,
        "categorical_features": [3], "sampling": gb.MVS(0.6), "random_state": 2,
    }  # fmt: skip
    weight = np.random.default_rng(1).integers(1, 4, len(y))

    def saved(model: Any, table: Any) -> bytes:
        model.fit(table, y, sample_weight=weight, eval_set=(x[::3], y[::3])).save_model(tmp_path / "model.json")
        return (tmp_path / "model.json").read_bytes()

    monkeypatch.setenv("GPUBOOST_AUTO_CELLS", "1")
    host = gb.GradientBoostingRegressor(device="cpu", **given)
    expected = saved(host, x)
    with emulated_gpu():
        there = open_gpu("cuda:0").upload(x)
        for device, table in (("cuda", x), ("auto", x), ("cuda", there), ("auto", there)):
            model = gb.GradientBoostingRegressor(device=device, **given)
            assert saved(model, table) == expected
            assert model.fit_report_.device == "cuda:0"
            assert model.fit_report_.edges is None
            assert model.evals_result_ == host.evals_result_
            assert model.predict(x).tobytes() == host.predict(x).tobytes()
            assert model.predict(there).get().tobytes() == host.predict(x).tobytes()
        again = gb.load_model(tmp_path / "model.json").set_params(device="cuda")
        assert again.predict(x).tobytes() == host.predict(x).tobytes()
        longer = [
            gb.GradientBoostingRegressor(device=device, **given).fit(x, y, eval_set=(x, y), init_model=host)
            for device in ("cpu", "cuda")
        ]
        assert longer[0].predict(x).tobytes() == longer[1].predict(x).tobytes()
    np.testing.assert_array_equal(gb.export.to_table(model)["effect"], gb.export.to_table(host)["effect"])


@pytest.mark.slow
@pytest.mark.parametrize("learner", [LinearTree(max_depth=1), DecisionTreeRegressor(max_depth=1)], ids=name_of)
def test_what_a_gpu_cannot_add_up_predicts_on_the_cpu(learner: Any) -> None:
    x, y = rows()
    model = gb.GradientBoostingRegressor(n_estimators=2, base_learner=learner).fit(x, y)
    expected = model.predict(x)
    with emulated_gpu():
        assert model.set_params(device="cuda").predict(x).tobytes() == expected.tobytes()
        assert np.asarray(model.predict(open_gpu("cuda:0").upload(x))).tobytes() == expected.tobytes()


@pytest.mark.parametrize("learner", daily(EVERY, 4), ids=name_of)
class TestEveryLearner:
    def test_learns_and_watches_what_it_predicts(self, learner: Any) -> None:
        x, y = rows()
        model = gb.GradientBoostingRegressor(n_estimators=60, base_learner=learner, random_state=0)
        model.fit(x[:300], y[:300], eval_set=(x[300:], y[300:]))
        rmse = model.evals_result_["validation_0"]["rmse"]
        assert rmse[-1] < 0.8 * np.std(y)
        staged = [float(np.sqrt(np.mean((p - y[300:]) ** 2))) for p in model.staged_predict(x[300:])]
        np.testing.assert_allclose(staged, rmse, rtol=1e-12)
        np.testing.assert_allclose(model.predict(x[300:]), list(model.staged_predict(x[300:]))[-1], rtol=1e-9)

    def test_stops_early_at_its_best_round(self, learner: Any) -> None:
        x, y = rows()
        model = gb.GradientBoostingRegressor(
            n_estimators=400, learning_rate=0.9, base_learner=learner, early_stopping_rounds=3, validation_fraction=0.3,
            random_state=1,
        ).fit(x, y + 2.0 * np.random.default_rng(3).normal(size=len(y)))  # fmt: skip
        assert model.n_iter_ == model.best_iteration_ + 1 < 400
        assert len(model.ensemble_.components) == model.n_iter_

    @pytest.mark.parametrize("classes", [2, 3])
    def test_knows_classes(self, learner: Any, classes: int) -> None:
        x, y = rows()
        labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))]
        model = gb.GradientBoostingClassifier(n_estimators=40, base_learner=learner, random_state=0).fit(x, labels)
        assert model.score(x, labels) > (0.7 if classes == 2 else 0.5)
        p = model.predict_proba(x)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert len(model.ensemble_.components) == 40 * (1 if classes == 2 else 3)

    def test_is_pickled_cloned_and_continued(self, learner: Any) -> None:
        x, y = rows()
        model = gb.GradientBoostingRegressor(n_estimators=10, base_learner=learner, random_state=0).fit(x, y)
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(again.predict(x), model.predict(x))
        assert clone(model).fit(x, y).predict(x).tobytes() == model.predict(x).tobytes()
        longer = clone(model).fit(x, y, init_model=model)
        assert longer.n_iter_ == 20
        assert np.mean((longer.predict(x) - y) ** 2) < np.mean((model.predict(x) - y) ** 2)

    def test_does_not_depend_on_the_number_of_threads(self, learner: Any) -> None:
        x, y = rows(20_000)
        given = {"n_estimators": 4, "base_learner": learner, "random_state": 0}
        one, three = (gb.GradientBoostingRegressor(n_jobs=n, **given).fit(x, y) for n in (1, 3))
        assert one.predict(x).tobytes() == three.predict(x).tobytes()

    def test_samples_of_rows_and_groups_are_drawn_from_the_seed(self, learner: Any) -> None:
        x, y = rows()
        given = {"n_estimators": 30, "base_learner": learner, "sampling": gb.MVS(0.5)}
        given |= (
            {"learners": gb.RandomGroups(1)} if type(learner).__name__ not in ("Tree", "LinearTree") else {}
        )  # of one group
        one, same, other = (gb.GradientBoostingRegressor(random_state=s, **given).fit(x, y) for s in (1, 1, 2))
        assert one.predict(x).tobytes() == same.predict(x).tobytes()
        assert one.predict(x).tobytes() != other.predict(x).tobytes()
        assert np.mean((one.predict(x) - y) ** 2) < np.var(y)

    @pytest.mark.parametrize("loss", ["absolute_error", "huber"])
    def test_runs_with_losses_of_their_own_steps(self, learner: Any, loss: str) -> None:
        x, y = rows()
        model = gb.GradientBoostingRegressor(loss, n_estimators=60, base_learner=learner, random_state=0).fit(x, y)
        assert np.abs(model.predict(x) - y).mean() < np.abs(np.median(y) - y).mean()

    def test_what_is_for_trees_is_refused(self, learner: Any) -> None:
        x, y = rows()
        model = gb.GradientBoostingRegressor(n_estimators=2, base_learner=learner).fit(x, y)
        assert not hasattr(model, "feature_importances_")
        for call in (model.apply, model.predict_contributions):
            with pytest.raises(gb.InputError, match="models of trees"):
                call(x)
        with pytest.raises(gb.InputError, match="other libraries read trees"):
            gb.export.to_shap_dict(model)
        trees = gb.GradientBoostingRegressor(n_estimators=2).fit(x, y)
        with pytest.raises(gb.RecipeError, match="holds trees"):
            clone(model).fit(x, y, init_model=trees)


@pytest.mark.parametrize("learner", FAMILIES, ids=name_of)
@pytest.mark.parametrize("classes", daily([0, 3], 1))
def test_a_model_file_brings_back_every_bit(learner: Any, classes: int, tmp_path: Path) -> None:
    x, y = rows()
    x[::9, 0] = np.nan
    given = {"n_estimators": 12, "base_learner": learner, "categorical_features": [3] if classes else None}
    if classes:
        model: Any = gb.GradientBoostingClassifier(**given).fit(x, np.digitize(y, [-0.5, 0.8]))
    else:
        model = gb.GradientBoostingRegressor(**given).fit(x, y)
    model.save_model(tmp_path / "m.json")
    loaded = gb.load_model(tmp_path / "m.json")
    loaded.save_model(tmp_path / "again.json")
    assert (tmp_path / "m.json").read_bytes() == (tmp_path / "again.json").read_bytes()
    assert loaded.predict(x).tobytes() == model.predict(x).tobytes()
    assert loaded.get_params(deep=False)["base_learner"] == learner
    assert '"version": 2' in (tmp_path / "m.json").read_text()


def test_an_estimator_of_another_library_is_not_written_as_json(tmp_path: Path) -> None:
    x, y = rows()
    model = gb.GradientBoostingRegressor(n_estimators=2, base_learner=Ridge()).set_params(loss="huber").fit(x, y)
    with pytest.raises(gb.InputError, match="pickle"):
        model.save_model(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


class TestEstimators:
    def test_gets_the_rows_as_they_are_and_the_negative_gradient(self) -> None:
        x, y = rows()
        Mean.seen.clear()
        gb.GradientBoostingRegressor(n_estimators=3, base_learner=Mean(), learning_rate=1.0).fit(x, y)
        assert len(Mean.seen) == 3
        assert all(given is Mean.seen[0][0] for given, _ in Mean.seen)
        np.testing.assert_allclose(Mean.seen[0][1], y - np.float32(y.mean()), atol=1e-5)

    def test_random_states_come_from_the_seed_round_by_round(self) -> None:
        x, y = rows()
        learner = make_pipeline(StandardScaler(), ExtraTreeRegressor(max_depth=2))
        model = gb.GradientBoostingRegressor(n_estimators=5, base_learner=learner, random_state=3).fit(x, y)
        states = [one.estimator[-1].random_state for one in model.ensemble_.components]
        assert len(set(states)) == 5
        again = clone(model).fit(x, y)
        assert [one.estimator[-1].random_state for one in again.ensemble_.components] == states

    def test_weights_are_three_equal_rows(self) -> None:
        x, y = rows()
        times = np.random.default_rng(2).integers(1, 4, len(y))
        given = {"n_estimators": 8, "base_learner": DecisionTreeRegressor(max_depth=3), "random_state": 0}
        weighted = gb.GradientBoostingRegressor(**given).fit(x, y, sample_weight=times)
        repeated = gb.GradientBoostingRegressor(**given).fit(np.repeat(x, times, axis=0), np.repeat(y, times))
        np.testing.assert_allclose(weighted.predict(x), repeated.predict(x), atol=1e-4)

    def test_one_that_takes_no_weights_is_refused_where_they_are_needed(self) -> None:
        x, y = rows()
        text = "learner 'KNeighborsRegressor' does not accept sample weights"
        learner = KNeighborsRegressor(3)
        with pytest.raises(gb.RecipeError, match=f"{text}, which importance sampling needs"):
            gb.GradientBoostingRegressor(base_learner=learner, sampling=gb.MVS(0.5)).fit(x, y)
        with pytest.raises(gb.RecipeError, match=text):
            gb.GradientBoostingRegressor(base_learner=learner, sampling=gb.GOSS()).fit(x, y)
        with pytest.raises(gb.InputError, match=text):
            gb.GradientBoostingRegressor(base_learner=learner).fit(x, y, sample_weight=np.arange(1.0, 401.0))
        gb.GradientBoostingRegressor(n_estimators=2, base_learner=learner, sampling=0.5).fit(x, y)

    def test_weights_cancel_where_rows_are_drawn_by_curvature(self) -> None:
        x, y = rows()
        sampling = gb.ImportanceSampling(rho=0.5, score="hessian")
        given = {"n_estimators": 20, "base_learner": KNeighborsRegressor(5), "sampling": sampling, "random_state": 0}
        model = gb.GradientBoostingClassifier(step="newton", **given).fit(x, y > 0.0)
        assert model.score(x, y > 0.0) > 0.75
        with pytest.raises(gb.RecipeError, match="weights cancel"):
            gb.GradientBoostingClassifier(step="gradient", **given).fit(x, y > 0.0)

    def test_a_linear_model_of_all_features_is_warned_about(self) -> None:
        x, y = rows()
        with pytest.warns(gb.OutsideTheoryWarning, match="least-squares fit at once"):
            gb.GradientBoostingRegressor(n_estimators=1, base_learner=LinearRegression()).fit(x, y)

    @pytest.mark.parametrize("answer", [np.zeros(3), np.full(400, np.nan), np.zeros((400, 2))])
    def test_predictions_must_be_numbers(self, answer: np.ndarray) -> None:
        class Odd(Mean):
            def predict(self, X: Any) -> Any:
                return answer

        x, y = rows()
        with pytest.raises(gb.InputError, match=r"base_learner: predictions must be one finite number a row; Odd gave"):
            gb.GradientBoostingRegressor(base_learner=Odd()).fit(x, y)

    def test_its_own_errors_come_through_and_leave_the_model_as_it_was(self) -> None:
        x, y = rows()
        model = gb.GradientBoostingRegressor(n_estimators=2, base_learner=Ridge(), loss="huber").fit(x, y)
        before = model.predict(x)
        holes = x.copy()
        holes[0, 0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            model.fit(holes, y)
        assert np.array_equal(model.predict(x), before)

    def test_where_there_is_no_edge_nothing_is_added(self) -> None:
        class Flat(Mean):
            def predict(self, X: Any) -> Any:
                return np.zeros(len(X))

        x, y = rows()
        model = gb.GradientBoostingRegressor(n_estimators=4, base_learner=Flat()).fit(x, y)
        assert np.array_equal(model.predict(x), np.full(len(y), model.ensemble_.bias[0]))
        assert model.n_iter_ == 4


@pytest.mark.parametrize("learner", [[Linear(), Spline(knots=8)], DecisionTreeRegressor(max_depth=2)], ids=name_of)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_report_has_the_edge_of_every_round(learner: Any, weighted: bool) -> None:
    x, y = rows()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    model = gb.GradientBoostingClassifier(
        n_estimators=15, learning_rate=0.5, step="constant", base_learner=learner, random_state=0
    ).fit(x, y > 0.0, sample_weight=weight)
    report = model.fit_report_.edges
    w = np.ones(len(y)) if weight is None else weight

    def mean_loss(scores: np.ndarray) -> float:
        return float(np.average(np.logaddexp(0.0, scores) - (y > 0.0) * scores, weights=w))

    start = np.full(len(y), model.ensemble_.bias[0])
    losses = [mean_loss(scores) for scores in (start, *model.staged_decision_function(x))]
    assert len(report.edges) == 15
    assert all(0.0 < edge <= 1.0 for edge in report.edges)
    fell = -np.diff(losses)
    assert (fell >= np.array(report.promised) - 1e-9).all()
    assert (np.array(report.promised) > 0.0).all()
    assert model.guarantee_.kind == "monotone descent"


class TestRefusals:
    @pytest.mark.parametrize("learner", ["linear", DecisionTreeRegressor, Spline, [], [Spline(), Ridge()], 3])
    def test_what_is_no_learner(self, learner: Any) -> None:
        with pytest.raises(gb.RecipeError, match="base_learner: must be None"):
            gb.GradientBoostingRegressor(base_learner=learner).fit(*rows())

    def test_a_classifier(self) -> None:
        with pytest.raises(gb.RecipeError, match="regressor fits them"):
            gb.GradientBoostingRegressor(base_learner=LogisticRegression()).fit(*rows())

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"langevin": gb.Langevin()}, "langevin: its noise"),
            ({"sampling": gb.ImportanceSampling(0.5, variance_control="node")}, "variance_control: 'node'"),
        ],
    )
    def test_pieces_that_are_about_trees(self, given: dict[str, Any], words: str) -> None:
        model = gb.GradientBoostingRegressor(base_learner=Spline(), **given)
        with pytest.raises(gb.RecipeError, match=words):
            model.fit(*rows())
        assert model.check(*rows()).kind == "refused"

    def test_lines_in_leaves_need_a_ridge_on_weighted_samples(self) -> None:
        x, y = rows()
        free = LinearTree(ridge=0.0)
        gb.GradientBoostingRegressor(n_estimators=1, base_learner=free).fit(x, y)
        with pytest.raises(gb.RecipeError, match="they need a ridge"):
            gb.GradientBoostingRegressor(base_learner=free, sampling=gb.MVS(0.5)).fit(x, y)
        assert gb.GradientBoostingRegressor(base_learner=LinearTree(), sampling=gb.MVS(0.5)).check(x, y).kind == (
            "heuristic"
        )

    @pytest.mark.parametrize(
        ("learner", "words"),
        [
            (CategoricalRidge(), "categorical features; X has none"),
            (Spline(columns=(9,)), "names column 9; X has 4 columns"),
            (Spline(columns=("age",)), "names column 'age'; X has no names"),
            (TensorSpline(pairs=((0, 7),)), "names column 7"),
        ],
    )
    def test_columns_that_are_not_there(self, learner: Any, words: str) -> None:
        with pytest.raises(ValueError, match=words):
            gb.GradientBoostingRegressor(base_learner=learner).fit(*rows())

    def test_a_spline_of_categories(self) -> None:
        with pytest.raises(gb.InputError, match="column 3 is categorical"):
            gb.GradientBoostingRegressor(base_learner=Spline(columns=(3,)), categorical_features=[3]).fit(*rows())

    @pytest.mark.parametrize(
        ("family", "given"),
        [
            (Spline, {"df": 1.0}),
            (Spline, {"df": np.nan}),
            (Spline, {"knots": 0}),
            (Spline, {"degree": 9}),
            (Spline, {"difference": 0}),
            (Spline, {"scale": "log"}),
            (Spline, {"columns": ()}),
            (Linear, {"columns": (True,)}),
            (Linear, {"columns": 3}),
            (CategoricalRidge, {"df": 0.0}),
            (TensorSpline, {"pairs": ()}),
            (TensorSpline, {"pairs": ((1, 1),)}),
            (Tree, {"max_depth": 0}),
            (LinearTree, {"ridge": -1.0}),
        ],
    )
    def test_numbers_out_of_range(self, family: Any, given: dict[str, Any]) -> None:
        (name,) = given
        with pytest.raises(gb.RecipeError, match=f"^{name}: "):
            family(**given)


class TestTheAdditiveForm:
    def model(self, **given: Any) -> tuple[Any, Any]:
        pd = pytest.importorskip("pandas")
        x, y = rows()
        frame = pd.DataFrame(x, columns=["a", "b", "c", "kind"])
        frame["kind"] = pd.Categorical(np.array(list("pqrst"))[x[:, 3].astype(int)])
        frame.loc[::7, "a"] = np.nan
        learners = [Linear(), Spline(columns=("a", "b")), CategoricalRidge(), TensorSpline(pairs=(("b", "c"),)), Tree()]
        return gb.GradientBoostingRegressor(n_estimators=60, base_learner=learners, **given).fit(frame, y), frame

    def test_its_table_adds_up_to_the_predictions(self) -> None:
        model, frame = self.model()
        table = gb.export.to_table(model)
        assert set(table) == {
            "output", "feature", "above", "up_to", "category", "feature_2", "above_2", "up_to_2", "effect",
        }  # fmt: skip
        lines = [dict(zip(table, line, strict=True)) for line in zip(*table.values(), strict=True)]

        def applies(line: dict[str, Any], row: Any, tail: str) -> bool:
            name = line["feature" + tail]
            if name is None:
                return True
            value, low, high = row[name], line["above" + tail], line["up_to" + tail]
            if not tail and line["category"] is not None:
                return value == line["category"]
            if low is None and high is None:
                return isinstance(value, float) and bool(np.isnan(value))
            return (low is None or value > low) and (high is None or value <= high)

        for i in (0, 1, 7, 11):
            row = frame.iloc[i]
            total = sum(one["effect"] for one in lines if applies(one, row, "") and applies(one, row, "_2"))
            assert total == pytest.approx(model.predict(frame.iloc[[i]])[0], abs=1e-9)

    def test_stumps_have_one_too(self) -> None:
        x, y = rows()
        model = gb.GradientBoostingRegressor(n_estimators=30, max_depth=1).fit(x, y)
        assert len(gb.export.to_table(model)["effect"]) > 10
        with pytest.raises(gb.InputError, match="no additive form"):
            gb.export.to_table(gb.GradientBoostingRegressor(n_estimators=3, max_depth=3).fit(x, y))
        with pytest.raises(gb.InputError, match="it holds EstimatorComponent"):
            gb.export.to_table(
                gb.GradientBoostingRegressor(n_estimators=3, base_learner=DecisionTreeRegressor()).fit(x, y)
            )

    def test_partial_effects_are_drawn(self) -> None:
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        model, _ = self.model()
        for feature in ("a", 1, "kind"):
            axes = gb.plot.partial_effect(model, feature)
            assert axes.has_data()
            matplotlib.pyplot.close(axes.figure)
        for wrong in ("d", 4, 1.0, None):
            with pytest.raises(gb.InputError, match="feature: must be one of a, b, c, kind"):
                gb.plot.partial_effect(model, wrong)
        with pytest.raises(gb.InputError, match="output: must be from 0 to 0; got 1"):
            gb.plot.partial_effect(model, "a", output=1)

    def test_what_two_features_add_together_is_a_map(self) -> None:
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        rng = np.random.default_rng(0)
        x = rng.normal(size=(500, 3))
        pairs = gb.learners.TensorSpline(pairs=((0, 2),))
        model = gb.GradientBoostingRegressor(n_estimators=60, base_learner=pairs).fit(x, x[:, 0] * x[:, 2])
        maps = {}
        for pair in ((0, 2), (2, 0), ("x0", -1)):
            ax = gb.plot.partial_effect(model, pair)
            maps[pair] = np.asarray(ax.collections[0].get_array()).reshape(
                ax.collections[0].get_coordinates().shape[0] - 1, -1
            )
            matplotlib.pyplot.close(ax.figure)
        np.testing.assert_array_equal(maps[0, 2], maps[2, 0].T)
        np.testing.assert_array_equal(maps[0, 2], maps["x0", -1])
        up, right = maps[0, 2].shape
        corners = maps[0, 2][[[0, 0], [up - 1, up - 1]], [[0, right - 1], [0, right - 1]]]
        assert (np.sign(corners) == [[1, -1], [-1, 1]]).all()  # of the product
        for wrong, words in (((0, 0), "pair of two different"), ((0, 1, 2), "pair of two"), ((0, 1), "add nothing")):
            with pytest.raises(gb.InputError, match=f"^feature: .*{words}"):
                gb.plot.partial_effect(model, wrong)
