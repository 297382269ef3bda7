"""Parameters that cannot do what they say: they are refused, changed, or named in a warning."""

from __future__ import annotations

import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

import gpuboost as gb
from gpuboost.composition.inert import DEFAULTS, UNREAD

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=300)
LABELS = (rng.random(300) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)
COUNTS = rng.poisson(100 * np.exp(0.3 * X[:, 0]))


def regressor(rounds: int = 8, **params):
    return gb.GradientBoostingRegressor(n_estimators=rounds, n_jobs=1, random_state=0, **params)


def classifier(rounds: int = 8, **params):
    return gb.GradientBoostingClassifier(n_estimators=rounds, n_jobs=1, random_state=0, **params)


# importance sampling with learners that ignore weights


@pytest.mark.parametrize("sampling", [{"rho": 20.0}, {"rate": 0.9, "floor": 0.0}, {"rate": 1.0, "floor": 0.0}])
def test_no_row_has_probability_1_if_the_learner_ignores_weights(sampling):
    rule = gb.ImportanceSampling(score="hessian", variance_control="leaf_refit", **sampling)
    model = classifier(10, learning_rate=0.5, base_learner=KNeighborsRegressor(15), step="newton", sampling=rule)
    report = model.fit(X, LABELS).fit_report_.sampling
    if sampling.get("rate") == 1.0:
        assert report is None  # every row, and then no weights are needed
        return
    before = classifier(9, learning_rate=0.5, base_learner=KNeighborsRegressor(15), step="newton", sampling=rule)
    p = before.fit(X, LABELS).predict_proba(X)[:, 1]
    h = p * (1 - p)
    assert report.rates[-1] < 0.7  # 0.9 and more with the clipped rule
    assert report.rates[-1] == pytest.approx(h.mean() / h.max(), abs=0.12)  # p = h / max h


def test_a_learner_with_weights_keeps_the_rate_it_was_given():
    rule = gb.ImportanceSampling(0.9, score="hessian", floor=0.0)
    model = classifier(6, learning_rate=0.5, base_learner=LinearRegression(), step="newton", sampling=rule)
    assert np.mean(model.fit(X, LABELS).fit_report_.sampling.rates) == pytest.approx(0.9, abs=0.03)


def test_weights_of_several_scores_do_not_cancel():
    three = rng.integers(0, 3, 300)
    model = classifier(base_learner=KNeighborsRegressor(5), sampling=gb.ImportanceSampling(rho=1.0, score="hessian"))
    with pytest.raises(ValueError, match="does not accept sample weights"):
        model.fit(X, three)


# steps that are too long


def test_a_gradient_step_on_large_counts_is_said_before_and_after():
    model = regressor(100, loss="poisson", step="gradient", reg_lambda=0.0, max_depth=1)
    with pytest.warns(gb.OutsideTheoryWarning) as caught:
        model.fit(X, COUNTS)
    before, after = (str(warning.message) for warning in caught)
    mean = re.search(r"mean second derivative is ([\d.]+)", before)
    assert mean is not None
    assert float(mean[1]) == pytest.approx(COUNTS.mean(), rel=0.01)  # h = e^F at the best constant
    assert "step='newton'" in before
    assert "the training loss rose" in after


def test_long_steps_of_langevin_are_said():
    with pytest.warns(gb.OutsideTheoryWarning, match="too long for loss 'poisson'"):
        regressor(4, loss="poisson", langevin=gb.Langevin(), max_depth=1).fit(X, COUNTS)


def test_a_diverging_fit_of_a_smooth_loss_is_said():
    with pytest.warns(gb.OutsideTheoryWarning, match="the training loss rose from"):
        regressor(20, step="gradient", learning_rate=2.5, reg_lambda=0.0).fit(X, Y)


def test_small_counts_and_short_steps_are_fine():
    few = rng.poisson(2.0, 300)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        regressor(loss="poisson", step="gradient").fit(X, few)
        regressor(loss="poisson", step="gradient", learning_rate=0.005).fit(X, COUNTS)
        regressor(loss="poisson").fit(X, COUNTS)
    assert not said


# additive models that go on

ADDITIVE = [gb.learners.Spline(), gb.learners.Linear(), [gb.learners.Spline(), gb.learners.Tree()]]


@pytest.mark.parametrize("learner", ADDITIVE, ids=["spline", "line", "spline or tree"])
def test_an_additive_model_resumes_to_the_last_bit(learner, tmp_path):
    params = {"base_learner": learner, "learning_rate": 0.2}
    whole = regressor(**params).fit(X, Y)
    path = tmp_path / "run.json"
    regressor(4, callbacks=[gb.callbacks.Checkpoint(path, every=2)], **params).fit(X, Y)
    resumed = regressor(**params).fit(X, Y, resume_from=str(path))
    assert whole.predict(X).tobytes() == resumed.predict(X).tobytes()
    assert list(resumed.staged_predict(X))[-1].tobytes() == resumed.predict(X).tobytes()
    again = regressor(4, **params).fit(X, Y, init_model=regressor(4, **params).fit(X, Y))
    assert again.predict(X).tobytes() == whole.predict(X).tobytes()


def test_a_continued_additive_model_has_one_function_a_feature(tmp_path):
    spline = {"base_learner": gb.learners.Spline()}
    path = tmp_path / "model.json"
    regressor(4, **spline).fit(X, Y).save_model(path)
    model = regressor(4, **spline).fit(X, Y, init_model=path)
    model = regressor(4, **spline).fit(X, Y, init_model=model)
    spaces = {part.space for part in model.ensemble_.components}
    assert len(spaces) == len({space.grid.features for space in spaces})


# parameters without an effect

OTHERS = {
    "growth": "oblivious",
    "max_depth": 1,
    "max_leaves": 3,
    "min_samples_leaf": 50,
    "min_child_weight": 50.0,
    "reg_alpha": 2.0,
    "max_delta_step": 0.1,
    "path_smooth": 5.0,
    "min_split_gain": 5.0,
    "reg_lambda": 50.0,
    "random_strength": 5.0,
    "extra_trees": True,
    "learners": gb.RandomGroups(1),
    "max_bins": 20,
    "binning": "greedy_log_sum",
    "sampling": 0.5,
}


def warned(**params) -> tuple[np.ndarray, set[str]]:
    """Predictions, and the parameters of which a warning said that they have no effect."""
    with pytest.warns(gb.OutsideTheoryWarning) as caught:
        model = regressor(4, **params).fit(X, Y)
    names = [str(warning.message).split(":")[0] for warning in caught if "has no effect" in str(warning.message)]
    assert len(names) == len(set(names))
    assert all(any(name in reason for reason in model.fit_report_.verdict.reasons) for name in names)
    return model.predict(X), set(names)


@pytest.mark.parametrize(
    ("learner", "unread"),
    [
        (gb.learners.Spline(), set(UNREAD["base_learner"])),
        (gb.learners.Tree(), {*UNREAD["base_learner"], "learners"}),
        (gb.learners.LinearTree(), {*UNREAD["base_learner"], "learners"}),
        (KNeighborsRegressor(5), {*UNREAD["base_learner"], "max_bins", "binning"}),
    ],
    ids=["spline", "tree", "linear tree", "k-NN"],
)
def test_each_inert_parameter_gives_one_warning(learner, unread):
    params = {name: OTHERS[name] for name in unread}
    predictions, names = warned(base_learner=learner, **params)
    assert names == unread
    assert np.array_equal(predictions, regressor(4, base_learner=learner).fit(X, Y).predict(X))


def test_random_shapes_draw_no_rows_and_say_what_is_inert():
    random = {"langevin": gb.Langevin(random_from=0)}
    params = {"sampling": gb.UniformSampling(0.3), "random_strength": 5.0, "extra_trees": True}
    params |= {"min_child_weight": 100.0}
    predictions, names = warned(**params, **random)
    assert names == set(params)
    plain = regressor(4, **random).fit(X, Y)
    assert np.array_equal(predictions, plain.predict(X))
    with pytest.warns(gb.OutsideTheoryWarning, match="sampling: "):
        assert regressor(4, sampling=0.3, **random).fit(X, Y).fit_report_.sampling is None


def test_rows_are_drawn_until_shapes_are_random():
    later = regressor(6, sampling=0.3, langevin=gb.Langevin(random_from=4)).fit(X, Y)
    assert len(later.fit_report_.sampling.rates) == 4


def test_the_table_of_unread_parameters_has_the_defaults_of_the_estimators():
    defaults = inspect.signature(gb.GradientBoostingRegressor).parameters
    assert {name: defaults[name].default for name in DEFAULTS} == DEFAULTS
    assert {name for names in UNREAD.values() for name in names} <= set(DEFAULTS)


# reasons


def test_the_reason_for_rankings_is_that_there_is_no_objective():
    group = np.repeat(np.arange(30), 10)
    ranker = gb.GradientBoostingRanker(n_estimators=2, langevin=gb.Langevin(), n_jobs=1)
    reasons = " ".join(ranker.check(X, np.abs(LABELS), group=group).reasons)
    assert "no fixed objective" in reasons
    assert "bounded" not in reasons


def test_a_custom_loss_is_not_known_to_be_bounded():
    def value(y, f):
        return (f - y) ** 2 / (1.0 + abs(f - y))

    def derivative(y, f):
        d = f - y
        return d * (2.0 + abs(d)) / (1.0 + abs(d)) ** 2

    loss = gb.losses.custom(value, derivative, lambda y, f: 2.0 / (1.0 + abs(f - y)) ** 3)
    verdict = gb.GradientBoostingRegressor(loss=loss, langevin=gb.Langevin()).check(X, Y)
    assert "is not known to be bounded" in " ".join(verdict.reasons)
    plain = gb.GradientBoostingRegressor(langevin=gb.Langevin()).check(X, Y)
    assert "is not bounded" in " ".join(plain.reasons)


STUMPS = {"step": "constant", "learning_rate": 1.0, "max_depth": 1, "growth": "sign_stump", "reg_lambda": 0.0}
ONE = [gb.Asynchronous(1), gb.SimulatedWorkers(1, build_time=1.0, server_time=0.1)]


@pytest.mark.parametrize("execution", ONE, ids=["threads", "simulated"])
def test_one_worker_is_serial(execution):
    serial = regressor(4, langevin=gb.Langevin(shrinkage=0.01)).fit(X, Y)
    model = regressor(4, langevin=gb.Langevin(shrinkage=0.01), execution=execution).fit(X, Y)
    assert model.predict(X).tobytes() == serial.predict(X).tobytes()
    assert model.fit_report_.verdict == serial.fit_report_.verdict
    rated = {**STUMPS, "min_child_weight": 0.0}
    assert regressor(4, execution=execution, **rated).fit(X, Y).guarantee_.kind == "linear rate"
    controlled = {"sampling": gb.ImportanceSampling(0.5, variance_control="node")}
    one = regressor(4, execution=execution, **controlled).fit(X, Y)
    assert one.predict(X).tobytes() == regressor(4, **controlled).fit(X, Y).predict(X).tobytes()


@pytest.mark.parametrize("sampling", [1.0, gb.UniformSampling(1.0), gb.MVS(1.0), gb.WeightTrimming(1.0)], ids=str)
def test_a_rate_of_1_is_no_sampling(sampling):
    rated = {**STUMPS, "min_child_weight": 0.0}
    model = regressor(4, sampling=sampling, **rated).fit(X, Y)
    assert model.guarantee_.kind == "linear rate"
    assert model.fit_report_.sampling is None
    assert model.predict(X).tobytes() == regressor(4, **rated).fit(X, Y).predict(X).tobytes()


def test_leaves_of_the_sample_are_not_those_of_all_rows_even_at_rate_1():
    sampled = gb.ImportanceSampling(1.0, variance_control="none")
    assert "variance_control" in " ".join(regressor(sampling=sampled).check(X, Y).reasons)


@pytest.mark.parametrize(("loss", "unit"), [("squared_error", 1e-200), ("gaussian_nll", 1e-8)])
def test_targets_that_vary_by_too_little_are_said(loss: str, unit: float) -> None:
    with pytest.warns(UserWarning, match=f"y: it varies by .*, and loss '{loss}' learns little of less than 1e-"):
        regressor(loss=loss).fit(X, unit * Y)
    regressor(loss=loss).fit(X, 1e-4 * Y)
    regressor(loss=loss, min_child_weight=0.0).fit(X, np.ones(300))
