"""Guarantees, edges and draws say what was run: one test for each claim that once did not hold."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost import theory
from gpuboost.errors import InputError, OutsideTheoryWarning, RecipeError, UnprovenError
from gpuboost.langevin import ChainOrigin
from gpuboost.reports.step_sizes import longest_safe_step

Array = np.ndarray

pytestmark = pytest.mark.filterwarnings(
    "ignore:learning_rate. the steps are too long:gpuboost.errors.OutsideTheoryWarning"
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * RNG.normal(size=300)
LABEL = (X[:, 0] > 0.0).astype(int)

STUMPS: dict[str, Any] = {
    "step": "constant", "learning_rate": 1.0, "max_depth": 1, "growth": "sign_stump", "reg_lambda": 0.0,
}  # fmt: skip
SHORT = pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"random_state": 0, "n_jobs": 1, **params})


def classifier(**params: Any) -> gb.GradientBoostingClassifier:
    return gb.GradientBoostingClassifier(**{"random_state": 0, "n_jobs": 1, **params})


def half_square(y: Array, predictions: Any, weight: Any = 1.0) -> float:
    return float(0.5 * (weight * (y - predictions) ** 2).sum())


def again(model: Any, folder: Path) -> Any:
    model.save_model(folder / "model.json")
    return gb.load_model(folder / "model.json")


class TestRates:
    """Theorem 4.1 is claimed only where the search is the argmax over the drawn stumps."""

    def test_min_child_weight_excludes_learners(self) -> None:
        x = np.zeros((40, 2))
        x[:3, 0] = x[:20, 1] = 1.0
        y = np.where(x[:, 0] == 1.0, 10.0, 0.0)
        model = regressor(n_estimators=300, min_child_weight=10.0, **STUMPS).fit(x, y)
        assert half_square(y, model.predict(x)) > 100.0
        assert model.guarantee_.kind == "monotone descent"
        assert "min_child_weight=10 is above the curvature of a row" in model.guarantee_.missing[0]
        model = regressor(n_estimators=300, min_child_weight=1.0, **STUMPS).fit(x, y)
        assert model.guarantee_.kind == "linear rate"
        xi = theory.smallest_expected_edge(theory.sign_stumps(x)[0]).lower
        assert half_square(y, model.predict(x)) <= model.guarantee_.bound(300, half_square(y, y.mean()), xi=xi) + 1e-9

    def test_the_default_of_min_child_weight_does_too(self) -> None:
        x, y = np.zeros((400, 1)), np.zeros(400, int)
        x[:2] = 1.0
        y[:4] = 1
        loss = gb.losses.Logistic(ridge=0.1)
        model = classifier(loss=loss, n_estimators=20, **STUMPS).fit(x, y)
        assert np.ptp(model.decision_function(x)) == 0.0
        assert model.guarantee_.kind == "monotone descent"
        assert "Use min_child_weight=0" in model.guarantee_.missing[0]
        model = classifier(loss=loss, n_estimators=20, min_child_weight=0.0, **STUMPS).fit(x, y)
        assert np.ptp(model.decision_function(x)) > 0.0
        assert model.guarantee_.kind == "linear rate"

    def test_weights_below_one_count_as_curvature(self) -> None:
        weight = np.where(np.arange(300) == 7, 0.25, 1.5)
        fit = {"n_estimators": 2, **STUMPS}
        assert regressor(min_child_weight=0.3, **fit).fit(X, Y, weight).guarantee_.kind == "monotone descent"
        assert regressor(min_child_weight=0.2, **fit).fit(X, Y, weight).guarantee_.kind == "linear rate"
        weight[7] = 1e-6
        wide = regressor(min_child_weight=0.0, **fit).fit(X, Y, weight).guarantee_
        assert "are rounded in the search" in wide.missing[0]

    def test_random_strength_is_no_argmax(self) -> None:
        b = np.repeat([0, 1], 32)
        a = b.copy()
        a[:8], a[32:40] = 1, 0
        x, y = np.column_stack([a] * 30 + [b]).astype(float), 3.0 * b
        model = regressor(n_estimators=200, random_strength=100.0, **{**STUMPS, "learning_rate": 0.1}).fit(x, y)
        assert model.guarantee_.kind == "monotone descent"
        assert "random_strength puts noise on the gains" in model.guarantee_.missing[0]

    def test_categories_are_held_back(self) -> None:
        c = np.repeat(np.arange(5), 24)
        y = np.array([3.0, -1.0, 2.0, -3.0, 0.0])[c]
        model = regressor(n_estimators=50, categorical_features=[0], **STUMPS).fit(c[:, None], y)
        assert model.guarantee_.kind == "monotone descent"
        assert "categorical splits are held back" in model.guarantee_.missing[0]

    def test_xi_is_that_of_the_weighted_rows(self) -> None:
        x = np.column_stack([np.repeat([0.0, 1.0], 32), np.tile([0.0, 1.0], 32)])
        y = 10.0 * (x.sum(axis=1) == 2.0)
        weight = np.where(x[:, 0] == x[:, 1], 1.0, 0.004)
        model = regressor(n_estimators=60, min_child_weight=0.0, **STUMPS).fit(x, y, sample_weight=weight)
        assert any("Xi that of the weighted rows" in used for used in model.guarantee_.assumptions)
        learners, _ = theory.sign_stumps(x, sample_weight=weight)
        np.testing.assert_allclose((learners**2).sum(axis=0), 1.0)
        root = np.sqrt(weight)
        least = half_square(root * y, learners @ np.linalg.lstsq(learners, root * y, rcond=None)[0])
        first = half_square(y, model.ensemble_.bias[0], weight) - least
        last = half_square(y, model.predict(x), weight) - least
        xi = theory.smallest_expected_edge(learners).lower
        assert xi == pytest.approx(0.0027, abs=2e-4)
        unweighted = theory.smallest_expected_edge(theory.sign_stumps(x)[0]).lower
        with pytest.warns(OutsideTheoryWarning, match="xi of the weighted rows only"):
            right = model.guarantee_.bound(60, first, xi=xi)
        with pytest.warns(OutsideTheoryWarning, match="xi of the weighted rows only"):
            wrong = model.guarantee_.bound(60, first, xi=unweighted)
        assert wrong < last <= right + 1e-9, "the first is what the page once multiplied"

    def test_stumps_refuse_missing_values(self) -> None:
        with pytest.raises(InputError, match="numbers without NaN"):
            theory.sign_stumps(np.array([[0.0], [np.nan]]))
        with pytest.raises(InputError, match="sample_weight"):
            theory.sign_stumps(X, sample_weight=np.ones(3))

    def test_twice_the_best_step_has_no_rate(self) -> None:
        found = regressor(n_estimators=2, **{**STUMPS, "learning_rate": 2.0}).fit(X, Y).guarantee_
        assert found.kind == "monotone descent"
        assert "twice the best one" in found.missing[0]


def constants(model: Any) -> dict[str, theory.TheoremConstant]:
    found = model.guarantee_.constants
    assert {one.status for one in found} <= {"computed", "bounded", "unknown"}
    assert all((one.value is None) == (one.status == "unknown") for one in found)
    return {one.name: one for one in found}


class TestConstants:
    """Numbers of the theorems that a guarantee rests on, and which of them nobody knows."""

    def test_a_rate_has_what_theorem_4_1_asks_for(self, tmp_path: Path) -> None:
        loss = gb.losses.Logistic(ridge=0.1)
        model = classifier(loss=loss, n_estimators=2, min_child_weight=0.0, **STUMPS).fit(X, LABEL)
        found = constants(model)
        assert [found[name].value for name in ("sigma", "mu", "nu", "Xi")] == [0.35, 0.1, 1.0, None]
        assert again(model, tmp_path).guarantee_ == model.guarantee_
        huber = constants(regressor(loss="huber", n_estimators=2, min_child_weight=0.0, **STUMPS).fit(X, Y))
        assert (huber["Dist"].status, huber["sigma"].value) == ("unknown", 1.0)
        assert regressor(n_estimators=2).fit(X, Y).guarantee_.constants == ()

    @pytest.mark.parametrize("depth", [1, 3])
    @SHORT
    def test_a_law_has_those_of_the_diffusion(self, depth: int, tmp_path: Path) -> None:
        loss, weight = gb.losses.Huber(2.0), np.where(np.arange(300) % 2, 1.5, 0.5)
        policy = gb.Langevin(inverse_temperature=50.0, shrinkage=0.02)
        model = regressor(loss=loss, n_estimators=5, max_depth=depth, langevin=policy).fit(X, Y, sample_weight=weight)
        assert model.guarantee_.kind == "stationary law"
        found = constants(model)
        exact = {"epsilon": 0.1, "beta": 50.0, "gamma": 0.02, "sigma": 1.0, "Lipschitz": 2.0, "C1": 0.0}
        for name, value in exact.items():
            assert found[name].status == "computed"
            assert found[name].value == pytest.approx(value)
        slopes = [2.0 * np.array([1.0, -1.0])[np.arange(300) % 2] * weight / weight.sum()]
        assert np.linalg.norm(slopes) == pytest.approx(found["C2"].value)
        cuts = sum(len(each) for each in model.ensemble_.cuts.thresholds)
        assert found["d"].value == min(300, cuts + 1 if depth == 1 else 300)
        assert found["lambda*"].value == pytest.approx(50.0 * 0.02)
        assert again(model, tmp_path).guarantee_ == model.guarantee_
        assert "lambda*: bounded 1, at least" in str(found["lambda*"])

    @SHORT
    def test_a_loss_that_is_bounded_has_a_gap_and_one_that_is_neither_has_none(self) -> None:
        policy = gb.Langevin(inverse_temperature=3.0, shrinkage=0.5)
        kw = {"langevin": policy, "n_estimators": 2}
        smooth = constants(classifier(loss=gb.losses.SmoothedZeroOne(1.0), **kw).fit(X, LABEL))
        assert smooth["lambda*"].value == pytest.approx(1.5 * np.exp(-3.0))
        group = np.repeat(np.arange(10), 30)
        ranker = gb.GradientBoostingRanker("stochastic_rank", random_state=0, n_jobs=1, **kw)
        found = constants(ranker.fit(X, LABEL, group=group))
        assert found["C1"].value == pytest.approx(2.0 * ranker.loss_.lipschitz)
        assert found["C1"].status == found["lambda*"].status == "bounded"

    def test_the_gap_is_that_of_a_gaussian(self) -> None:
        """Of U = y^2 / 2 (l'' + gamma) the generator's gap is beta (l'' + gamma), at least beta gamma; and a chain of
        one leaf forgets at the rate eps (l'' + gamma) a round, at least eps gamma."""
        loss, gamma, eps = gb.losses.Huber(30.0), 0.3, 0.2
        policy = gb.Langevin(inverse_temperature=1e12, shrinkage=gamma)
        kw: dict[str, Any] = {"loss": loss, "learning_rate": eps, "max_depth": 1, "start": 0.0, "langevin": policy}
        scores = [
            model[0]
            for model in regressor(n_estimators=30, **kw).fit(X[:, :1] * 0.0, Y * 0.0 + 5.0).staged_predict(X[:1, :1])
        ]
        distance = np.abs(np.array(scores) - 5.0 / (1.0 + gamma))
        measured = -np.diff(np.log(distance[:8])).mean()
        assert measured >= eps * gamma
        assert measured == pytest.approx(-np.log(1.0 - eps * (1.0 + gamma)), rel=0.05)

    def test_a_file_with_a_constant_that_is_none_is_refused(self, tmp_path: Path) -> None:
        model = regressor(n_estimators=2, min_child_weight=0.0, **STUMPS).fit(X, Y)
        model.save_model(tmp_path / "model.json")
        held = json.loads((tmp_path / "model.json").read_text())
        for entry, wrong in (("status", "guessed"), ("value", None), ("value", "1"), ("name", 3), ("note", None)):
            changed = json.loads(json.dumps(held))
            changed["extra"]["guarantee"]["constants"][0][entry] = wrong
            (tmp_path / "changed.json").write_text(json.dumps(changed))
            with pytest.raises(InputError, match=r"extra\.guarantee\.constants\[0\]"):
                gb.load_model(tmp_path / "changed.json")


WORKERS = {"build_time": 1.0, "server_time": 0.1}


class TestEdges:
    """No promised fall is larger than the one that came."""

    @pytest.mark.parametrize(
        "params",
        [
            {"step": "line_search", "learning_rate": 1.0},
            {"step": "line_search", "learning_rate": 1.0, "reg_lambda": 100.0},
            {"step": "line_search", "learning_rate": 1.9, "reg_lambda": 0.0},
            {"step": gb.LineSearchStep("leaf"), "learning_rate": 0.7},
            {"step": "gradient", "execution": gb.SimulatedWorkers(4, staleness="damp", **WORKERS)},
            {"step": "gradient", "execution": gb.SimulatedWorkers(4, **WORKERS)},
            {"step": "gradient", "learning_rate": 2.5, "reg_lambda": 0.0},
        ],
        ids=str,
    )
    def test_promises_are_kept(self, params: dict[str, Any]) -> None:
        model = regressor(n_estimators=20, **params).fit(X, Y)
        losses = [np.mean(0.5 * (Y - p) ** 2) for p in (model.ensemble_.bias[0], *model.staged_predict(X))]
        report = model.fit_report_.edges
        assert report is not None
        fell = -np.diff(losses)
        assert (fell >= np.array(report.promised) - 1e-7 * np.maximum(losses[:-1], losses[1:])).all()
        if params.get("learning_rate") != 2.5:
            assert sum(report.promised) > 0.9 * fell.sum(), "and for the squared error nearly all of it is promised"
        before, after = np.array(losses)[:-1], np.array(losses)[1:]
        assert (after <= before * np.array(report.factors) * (1.0 + 1e-6)).all(), "L* is 0: no two rows are equal"

    @pytest.mark.parametrize(
        "params",
        [
            {"execution": gb.SimulatedWorkers(4, leaf_values="worker", **WORKERS)},
            {"langevin": gb.Langevin(shrinkage=0.0)},
            {"sampling": gb.ImportanceSampling(1.0, variance_control="none")},
        ],
        ids=str,
    )
    def test_steps_of_other_gradients_have_no_report(self, params: dict[str, Any]) -> None:
        assert regressor(n_estimators=8, step="gradient", **params).fit(X, Y).fit_report_.edges is None


class TestOneGuaranteeOfTheRun:
    def test_a_loaded_model_says_what_the_fit_said(self, tmp_path: Path) -> None:
        workers = gb.SimulatedWorkers(8, leaf_values="worker", allow_unproven=True, **WORKERS)
        with pytest.warns(OutsideTheoryWarning, match="stability limit"):
            model = regressor(
                step="gradient", learning_rate=1.0, n_estimators=30, max_depth=3, reg_lambda=0.0, execution=workers
            ).fit(X, Y)
        losses = [np.mean((Y - p) ** 2) for p in model.staged_predict(X)]
        assert losses[-1] > losses[0]
        assert model.guarantee_.kind == "none"
        loaded = again(model, tmp_path)
        assert loaded.guarantee_ == model.guarantee_ == model.fit_report_.guarantee
        assert loaded.guarantee_.rounds == (1, 30)
        assert "Rounds 1 to 30." in str(loaded.guarantee_)
        first = (tmp_path / "model.json").read_bytes()
        loaded.save_model(tmp_path / "model.json")
        assert (tmp_path / "model.json").read_bytes() == first

    def test_parameters_set_later_change_nothing(self) -> None:
        model = regressor(step="gradient", learning_rate=2.5, reg_lambda=0.0, n_estimators=10).fit(X, Y)
        assert model.guarantee_.kind == "none"
        assert model.set_params(learning_rate=0.1).guarantee_.kind == "none"

    def test_a_continued_model_names_the_rounds_of_each_fit(self, tmp_path: Path) -> None:
        rough = regressor(step="gradient", learning_rate=2.5, reg_lambda=0.0, n_estimators=30).fit(X, Y)
        model = regressor(step="gradient", n_estimators=1).fit(X, Y, init_model=rough)
        found = model.guarantee_
        assert (found.kind, found.rounds) == ("none", (1, 31))
        assert [(part.kind, part.rounds) for part in found.parts] == [("none", (1, 30)), ("monotone descent", (31, 31))]
        assert "Rounds 31 to 31: the training loss never rises." in str(found)
        assert again(model, tmp_path).guarantee_ == found
        third = regressor(step="gradient", n_estimators=2).fit(X, Y, init_model=tmp_path / "model.json")
        assert [part.rounds for part in third.guarantee_.parts] == [(1, 30), (31, 31), (32, 33)]
        assert third.guarantee_.kind == "none"

    def test_two_sound_fits_join(self) -> None:
        first = regressor(n_estimators=4, **STUMPS).fit(X, Y)
        model = regressor(n_estimators=4, **STUMPS).fit(X, Y, init_model=first)
        assert first.guarantee_.kind == "linear rate"
        assert (model.guarantee_.kind, model.guarantee_.rounds) == ("monotone descent", (1, 8))
        assert "Rounds 1 to 8 (2 fits)" in model.guarantee_.statement
        assert "a rate counts from the first round of its own fit" in model.guarantee_.missing[0]
        assert [part.kind for part in model.guarantee_.parts] == ["linear rate"] * 2
        nothing = regressor(n_estimators=0, **STUMPS).fit(X, Y)
        assert regressor(n_estimators=3, **STUMPS).fit(X, Y, init_model=nothing).guarantee_.kind == "linear rate"
        same = regressor(n_estimators=0, **STUMPS).fit(X, Y, init_model=first)
        assert same.guarantee_ == first.guarantee_

    @pytest.mark.parametrize("continued", [False, True])
    def test_a_checkpoint_joins_its_fit(self, continued: bool, tmp_path: Path) -> None:
        before = regressor(n_estimators=3, step="gradient", learning_rate=2.5).fit(X, Y) if continued else None
        kept = gb.callbacks.Checkpoint(tmp_path / "run.json", every=4)

        def stop(record: Any) -> bool:
            return bool(record.round == 5)

        whole = classifier(n_estimators=10).fit(X, LABEL)
        classifier(n_estimators=10, callbacks=[kept, stop]).fit(X, LABEL)
        resumed = classifier(n_estimators=10).fit(X, LABEL, resume_from=tmp_path / "run.json")
        assert resumed.guarantee_ == whole.guarantee_
        if before is not None:
            whole_run = regressor(n_estimators=10).fit(X, Y, init_model=before)
            regressor(n_estimators=10, callbacks=[kept, stop]).fit(X, Y, init_model=before)
            on = regressor(n_estimators=10).fit(X, Y, resume_from=tmp_path / "run.json")
            assert on.guarantee_ == whole_run.guarantee_
            assert [part.rounds for part in on.guarantee_.parts] == [(1, 3), (4, 13)]

    def test_a_fit_resumed_with_other_workers_keeps_the_weaker_guarantee(self, tmp_path: Path) -> None:
        old = gb.SimulatedWorkers(3, leaf_values="worker", **WORKERS)
        kept = gb.callbacks.Checkpoint(tmp_path / "run.json", every=4)
        params: dict[str, Any] = {"n_estimators": 8, "step": "gradient"}
        regressor(execution=old, callbacks=[kept, lambda record: record.round == 5], **params).fit(X, Y)
        model = regressor(**params).fit(X, Y, resume_from=tmp_path / "run.json")
        assert (model.guarantee_.kind, model.guarantee_.rounds) == ("none", (1, 8))
        assert regressor(**params).fit(X, Y).guarantee_.kind == "monotone descent"

    def test_the_kept_rounds_are_named(self) -> None:
        model = regressor(n_estimators=60, learning_rate=0.9, validation_fraction=0.3, early_stopping_rounds=3)
        model.fit(X, Y)
        assert model.guarantee_.rounds == (1, model.n_iter_)
        assert model.fit_report_.rounds > model.n_iter_

    @pytest.mark.parametrize("by", ["parameter", "callback"])
    def test_a_chain_that_stops_early_has_no_law(self, by: str) -> None:
        how: dict[str, Any] = {"callbacks": [gb.callbacks.EarlyStopping(5)]}
        how = {"early_stopping_rounds": 5} if by == "parameter" else how
        chain = regressor(loss=H, n_estimators=10, langevin=gb.Langevin(), validation_fraction=0.3, **how)
        assert chain.check(X, Y).kind == "heuristic"
        model = chain.fit(X, Y)
        assert model.fit_report_.verdict.kind == "heuristic"
        assert model.guarantee_.kind == "none"
        with pytest.raises(RecipeError, match="posterior_samples: early stopping picks the best iterate"):
            chain.set_params(posterior_samples=2).fit(X, Y)
        for several in (gb.chains, gb.fit_posterior):
            with pytest.raises(RecipeError, match="early_stopping_rounds: "):
                several(regressor(langevin=gb.Langevin(), **how), X, Y)

    def test_an_older_file_says_that_it_does_not_know(self, tmp_path: Path) -> None:
        path = tmp_path / "model.json"
        regressor(n_estimators=3).fit(X, Y).save_model(path)
        text = path.read_text()
        path.write_text(without(text, "guarantee"))
        model = gb.load_model(path)
        assert model.guarantee_ == theory.Guarantee("not known", "not known: the model file holds no guarantee.")
        assert str(model.guarantee_)
        model.save_model(path)
        assert "guarantee" not in extra_of(path.read_text())
        on = regressor(n_estimators=2).fit(X, Y, init_model=path)
        assert on.guarantee_.kind == "not known"
        assert [part.rounds for part in on.guarantee_.parts] == [(1, 3), (4, 5)]
        assert again(on, tmp_path).guarantee_ == on.guarantee_

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"kind": "certain"}, "extra.guarantee.kind: one of linear rate"),
            ({"statement": 3}, "extra.guarantee.statement: text was expected"),
            ({"missing": "no"}, "extra.guarantee.missing"),
            ({"missing": [1]}, r"extra.guarantee.missing\[0\]: text"),
            ({"mu": None}, "extra.guarantee.mu"),
            ({"rounds": [1, 99]}, "extra.guarantee.rounds"),
            ({"rounds": [1]}, "extra.guarantee.rounds"),
            ({"parts": [1]}, r"extra.guarantee.parts\[0\]"),
            ({"more": 1}, "extra.guarantee"),
        ],
        ids=str,
    )
    def test_a_damaged_guarantee_is_refused(self, change: dict[str, Any], words: str, tmp_path: Path) -> None:
        path = tmp_path / "model.json"
        regressor(n_estimators=3).fit(X, Y).save_model(path)
        text = path.read_text()
        extra = extra_of(text)
        path.write_text(with_extra(text, extra | {"guarantee": extra["guarantee"] | change}))
        with pytest.raises(InputError, match=words):
            gb.load_model(path)
        path.write_text(with_extra(text, extra | {"warranty": 1}))
        with pytest.raises(InputError, match="extra: must hold what an estimator writes there"):
            gb.load_model(path)


def extra_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)["extra"]
    return found


def with_extra(text: str, extra: dict[str, Any]) -> str:
    line = f'"extra": {json.dumps(extra, sort_keys=True)},'
    return re.sub(r'^"extra": .*$', lambda _: line, text, flags=re.MULTILINE)


def without(text: str, name: str) -> str:
    extra = extra_of(text)
    return with_extra(text, {key: value for key, value in extra.items() if key != name})


class TestStepSizes:
    """A certificate after the fit: every round fell, by the size of its steps."""

    def test_a_default_classifier_has_one(self) -> None:
        model = classifier(n_estimators=40).fit(X, LABEL)
        assert model.fit_report_.verdict.kind == "heuristic"
        assert model.guarantee_.kind == "monotone descent"
        steps = model.fit_report_.steps
        assert steps is not None
        assert steps.safe == pytest.approx(5.858, abs=1e-3)
        assert 0.1 < steps.largest < 0.5
        assert "every round fell, by the size of its steps" in str(model.fit_report_)
        scores = model.decision_function(X)
        assert np.abs(scores - model.ensemble_.bias[0]).max() <= 40 * steps.largest

    @pytest.mark.parametrize("rate", [0.05, 0.3, 1.0, 1.7])
    def test_the_longest_safe_step_is_a_root(self, rate: float) -> None:
        u = longest_safe_step(rate)
        assert (math.exp(u) - 1.0 - u) / u**2 == pytest.approx(1.0 / rate, rel=1e-6)
        assert longest_safe_step(2.0) == 0.0

    def test_long_steps_have_none(self) -> None:
        """Poisson scores that start far below their leaves take steps that overshoot."""
        y = np.where(X[:, 0] > 1.5, 1000.0, 0.01)
        model = regressor(loss="poisson", n_estimators=3, learning_rate=1.0, reg_lambda=0.0, min_child_weight=0.0)
        model.fit(X, y)
        assert model.fit_report_.steps is None
        assert model.guarantee_.kind == "none"
        steps = classifier(n_estimators=3, sampling=gb.ImportanceSampling(0.5, floor=0.5, variance_control="none"))
        assert steps.fit(X, LABEL).fit_report_.steps is None


H = gb.losses.Huber(1.0)


class TestChains:
    @SHORT
    def test_draws_are_iterates_of_this_chain(self, tmp_path: Path) -> None:
        base = regressor(loss=H, n_estimators=50).fit(X, Y)
        chain: dict[str, Any] = {"loss": H, "n_estimators": 20, "langevin": gb.Langevin(), "posterior_samples": 5}
        model = regressor(**chain).fit(X, Y, init_model=base)
        assert model.fit_report_.verdict.kind == "heuristic"
        assert "its 50 rounds are no chain of this recipe" in str(model.fit_report_.verdict)
        assert model.guarantee_.kind == "none"
        members, trace = model.posterior_members(X), model.trace(X)
        np.testing.assert_array_equal(members, trace[[61, 63, 65, 67, 69]])
        loaded = again(model, tmp_path)
        assert loaded.posterior_members(X).tobytes() == members.tobytes()
        everything = model.posterior_members(X, samples=20, burn_in=0.0)
        np.testing.assert_array_equal(everything, trace[50:])
        with pytest.raises(InputError, match="of 20 rounds"):
            model.posterior_members(X, samples=21, burn_in=0.0)

    @SHORT
    def test_a_chain_of_the_same_recipe_goes_on(self) -> None:
        chain: dict[str, Any] = {"loss": H, "langevin": gb.Langevin()}
        whole = regressor(n_estimators=20, **chain).fit(X, Y)
        half = regressor(n_estimators=10, **chain).fit(X, Y)
        model = regressor(n_estimators=10, **chain).fit(X, Y, init_model=half)
        assert (model.guarantee_.kind, model.guarantee_.rounds) == ("stationary law", (1, 20))
        assert model.fit_report_.verdict.kind == "sound"
        assert model.posterior_members(X).tobytes() == whole.posterior_members(X).tobytes()
        for other in (
            regressor(n_estimators=10, loss=H, langevin=gb.Langevin(temperature=2.0)).fit(X, Y, init_model=half),
            regressor(n_estimators=10, learning_rate=0.2, **chain).fit(X, Y, init_model=half),
            regressor(n_estimators=10, **chain).fit(X[:200], Y[:200], init_model=half),
        ):
            assert other.guarantee_.kind == "none"
            assert other._chain_start() == 10

    @SHORT
    def test_the_noise_is_that_of_this_fit(self, tmp_path: Path) -> None:
        """T = beta / N, with the N of the rows that the chain was run on."""
        big = regressor(n_estimators=10, langevin=gb.Langevin(inverse_temperature=1200.0)).fit(X, Y)
        model = regressor(n_estimators=20, langevin=gb.Langevin(inverse_temperature=240.0))
        model.fit(X[:60], Y[:60], init_model=big)
        assert model.predict_uncertainty(X[:1]).data[0] == pytest.approx(0.25)
        model.set_params(langevin=None)
        assert model.predict_uncertainty(X[:1]).data[0] == pytest.approx(0.25), "parameters do not change a model"
        assert again(model, tmp_path)._fit_record().chain == model._fit_record().chain
        assert isinstance(model._fit_record().chain, ChainOrigin)
        plain = regressor(n_estimators=4).fit(X, Y).set_params(langevin=gb.Langevin())
        with pytest.raises(RecipeError, match="trained without noise"):
            plain.predict_uncertainty(X)

    @SHORT
    def test_an_older_chain_draws_as_it_did(self, tmp_path: Path) -> None:
        model = regressor(n_estimators=20, langevin=gb.Langevin(inverse_temperature=600.0)).fit(X, Y)
        path = tmp_path / "model.json"
        model.save_model(path)
        path.write_text(without(without(path.read_text(), "guarantee"), "chain"))
        old = gb.load_model(path)
        assert old.predict_uncertainty(X).data.tobytes() == model.predict_uncertainty(X).data.tobytes()
        assert old.posterior_members(X).tobytes() == model.posterior_members(X).tobytes()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"start": 21}, "extra.chain.start"),
            ({"total_weight": 0.0}, "extra.chain.total_weight: a number above 0"),
            ({"temperature": -1.0}, "extra.chain.temperature: a number above 0"),
            ({"data": [1, 2]}, "extra.chain.data"),
            ({"end": 1}, "extra.chain"),
        ],
        ids=str,
    )
    def test_a_damaged_origin_is_refused(self, change: dict[str, Any], words: str, tmp_path: Path) -> None:
        path = tmp_path / "model.json"
        regressor(n_estimators=20, langevin=gb.Langevin()).fit(X, Y).save_model(path)
        extra = extra_of(path.read_text())
        path.write_text(with_extra(path.read_text(), extra | {"chain": extra["chain"] | change}))
        with pytest.raises(InputError, match=words):
            gb.load_model(path)

    @pytest.mark.parametrize(
        ("loss", "rate", "kind"),
        [
            (gb.losses.SmoothedZeroOne(0.01), 0.1, "unproven"),
            (gb.losses.SmoothedZeroOne(0.1), 0.1, "sound"),
            (gb.losses.SmoothedZeroOne(0.1), 0.5, "unproven"),
            ("logistic", 10.0, "unproven"),
            ("logistic", 4.0, "heuristic"),
            ("logistic", 3.9, "sound"),
        ],
        ids=str,
    )
    def test_unstable_steps_are_unproven(self, loss: Any, rate: float, kind: str) -> None:
        policy = gb.Langevin(shrinkage=0.01, allow_unproven=True)
        model = classifier(loss=loss, learning_rate=rate, n_estimators=3, langevin=policy)
        assert model.check(X, LABEL).kind == kind
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model.fit(X, LABEL)
        assert [str(w.message).startswith("learning_rate: at") for w in seen] == [True] * (kind == "unproven")
        assert model.guarantee_.kind == ("stationary law" if kind == "sound" else "none")
        refused = classifier(loss=loss, learning_rate=rate, langevin=gb.Langevin(shrinkage=0.01))
        if kind == "unproven":
            with pytest.raises(UnprovenError, match="from 2 on steps are not stable"):
                refused.fit(X, LABEL)

    def test_a_file_of_a_chain_that_was_not_asked_for_loads(self, tmp_path: Path) -> None:
        """As earlier versions wrote them."""
        path, policy = tmp_path / "model.json", gb.Langevin(shrinkage=0.01, allow_unproven=True)
        with pytest.warns(OutsideTheoryWarning, match="not stable"):
            model = classifier(learning_rate=10.0, n_estimators=3, langevin=policy).fit(X, LABEL)
        model.save_model(path)
        path.write_text(path.read_text().replace('"allow_unproven":true', '"allow_unproven":false'))
        loaded = gb.load_model(path)
        assert loaded.langevin == gb.Langevin(shrinkage=0.01)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))

    def test_the_limit_is_that_of_the_step(self) -> None:
        """A constant step divides by the curvature's bound, so its limit is a learning rate of 2."""
        for step, rate, kind in (
            ("constant", 1.9, "heuristic"),
            ("constant", 2.0, "unproven"),
            ("newton", 2.5, "unproven"),
        ):
            loss = "squared_error" if step == "newton" else H
            model = regressor(loss=loss, step=step, learning_rate=rate, langevin=gb.Langevin(shrinkage=0.01))
            assert model.check(X, Y).kind == kind

    def test_a_chain_that_is_too_short_says_how_long_it_must_be(self) -> None:
        policy = gb.Langevin(shrinkage=0.2)  # forgets in 50 rounds
        model = regressor(loss=H, n_estimators=100, langevin=policy, posterior_samples=10)
        with pytest.warns(OutsideTheoryWarning, match="about 49.5 rounds.* 297 rounds with burn_in=0.5 would do"):
            model.fit(X, Y)
        with pytest.warns(OutsideTheoryWarning, match="297 rounds with burn_in=0.5 would do"):
            model.predict_uncertainty(X)
        with pytest.warns(OutsideTheoryWarning, match="186 rounds with burn_in=0.8 would do"):
            model.predict_interval(X, burn_in=0.8)
        with pytest.warns(OutsideTheoryWarning, match="297 rounds with burn_in=0.5 would do"):
            model.posterior_members(X, burn_in=0.0)
        long = regressor(loss=H, n_estimators=300, langevin=policy, posterior_samples=10).fit(X, Y)
        long.predict_uncertainty(X)
        regressor(loss=H, n_estimators=10, langevin=policy).fit(X, Y)  # no draws are asked for

    def test_fit_posterior_warns_once_of_the_chosen_policy(self) -> None:
        model = regressor(n_estimators=30, learning_rate=0.5, max_depth=1)
        with pytest.warns(OutsideTheoryWarning, match="rounds with burn_in=0.5 would do") as seen:
            gb.fit_posterior(model, X, Y, temperatures=[1.0], prior_variances=[1.0])
        assert len(seen) == 1
