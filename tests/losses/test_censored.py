"""Censored times: the loss ``aft``, and the concordance index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats
from support.examples import examples
from threadpoolctl import threadpool_limits

import gpuboost as gb
from gpuboost.cli import main
from gpuboost.elementary import hazard_excess, mills_ratio
from gpuboost.errors import InputError, RecipeError
from gpuboost.losses import AFT, SquaredError
from gpuboost.metrics import get

Array = np.ndarray
NOISE = {"normal": stats.norm, "logistic": stats.logistic, "extreme": stats.gumbel_l}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 4))
SIGNAL = 1.0 + X[:, 0] + 0.5 * X[:, 1]
TIME = np.exp(SIGNAL + 0.5 * RNG.normal(size=900))
END = np.exp(RNG.normal(1.5, 1.0, size=900))
Y = np.where(TIME <= END, TIME, -END)


def regressor(loss: Any = "aft", **settings: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"n_estimators": 30, "max_depth": 3} | settings, loss=loss)


def test_the_tail_of_the_normal_distribution_has_the_stated_errors() -> None:
    x = np.concatenate([np.linspace(0.0, 12.0, 500), 10.0 ** np.linspace(-6.0, 6.0, 100)])
    true = np.sqrt(np.pi / 2.0) * special.erfcx(x / np.sqrt(2.0))
    np.testing.assert_allclose([mills_ratio(v) for v in x.tolist()], true, rtol=1e-14)
    near = x[x < 5.0]
    np.testing.assert_allclose([hazard_excess(v) for v in near.tolist()], 1.0 / true[x < 5.0] - near, rtol=1e-12)
    far = x[x > 1e3]
    np.testing.assert_allclose([hazard_excess(v) for v in far.tolist()], 1.0 / far - 2.0 / far**3, rtol=1e-11)
    assert hazard_excess(10.0) == pytest.approx(hazard_excess(np.nextafter(10.0, 0.0)), rel=4e-13)


@pytest.mark.parametrize("distribution", NOISE)
@given(size=st.floats(0.01, 100.0), f=st.floats(-6.0, 6.0), scale=st.floats(0.3, 3.0), censored=st.booleans())
@settings(max_examples=examples(200))
def test_the_loss_is_the_likelihood(distribution: str, size: float, f: float, scale: float, censored: bool) -> None:
    noise, z = NOISE[distribution], (np.log(size) - f) / scale
    true = -noise.logsf(z) if censored else -noise.logpdf(z) + np.log(scale * size)
    found = AFT(distribution, scale).value(-size if censored else size, f, 1.0 / scale)
    assert found == pytest.approx(true, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("distribution", NOISE)
def test_the_value_is_xgboosts(distribution: str) -> None:
    xgboost = pytest.importorskip("xgboost")
    f = (np.log(np.abs(Y)) + np.random.default_rng(1).uniform(-1.5, 2.5, len(Y))).astype(np.float32)
    rows = xgboost.DMatrix(X, label_lower_bound=np.abs(Y), label_upper_bound=np.where(Y > 0, Y, np.inf))
    rows.set_base_margin(f)
    settings = {"aft_loss_distribution": distribution, "nthread": 1}  # its metric takes 1 for any scale
    with threadpool_limits(1, "openmp"):
        booster = xgboost.train({"objective": "survival:aft", "eta": 0.0, "max_depth": 1} | settings, rows, 1)
        theirs = float(booster.eval(rows).rpartition(":")[2])
    loss = AFT(distribution)
    assert get("loss", loss)(Y, f[None].astype(np.float64), None, loss) == pytest.approx(theirs, rel=2e-5)


@pytest.mark.parametrize("distribution", NOISE)
def test_the_parameters_of_simulated_times_are_found(distribution: str) -> None:
    rng = np.random.default_rng(2)
    time = np.exp(1.3 + 0.5 * NOISE[distribution].rvs(size=4_000, random_state=rng))
    end = rng.exponential(6.0, 4_000)
    y = np.where(time <= end, time, -end)
    loss = AFT(distribution, 0.5)
    assert loss.start(y, np.ones(4_000))[0] == pytest.approx(1.3, abs=0.03)
    assert loss.start(np.abs(y), np.ones(4_000))[0] < 1.2  # of censored times taken for events
    beside = loss.start_beside(y, np.ones(4_000), np.full((1, 4_000), 0.7))[0]
    assert beside == pytest.approx(loss.start(y, np.ones(4_000))[0] - 0.7, abs=1e-6)


def test_censored_times_taken_for_events_make_predictions_too_short() -> None:
    knowing, blind = (regressor(AFT(scale=0.5)).fit(X, y).predict(X) for y in (Y, np.abs(Y)))
    bias = [float(np.mean(np.log(found) - SIGNAL)) for found in (knowing, blind)]
    assert abs(bias[0]) < 0.1
    assert bias[1] < -0.25


@pytest.mark.parametrize("distribution", NOISE)
def test_a_newton_step_of_an_event_does_not_lead_past_its_time(distribution: str) -> None:
    for away in np.linspace(-60.0, 60.0, 241).tolist():
        g, h = AFT(distribution, 0.5).derivatives(2.0, np.log(2.0) + 0.5 * away, 2.0)
        assert abs(away) * (1.0 + 1e-6) >= 2.0 * g / h * np.sign(away) >= 0.0


def test_structured_arrays_are_signed_times() -> None:
    pairs = np.empty(len(Y), [("event", "?"), ("time", "f8")])
    pairs["event"], pairs["time"] = Y > 0, np.abs(Y)
    one, two = (regressor(eval_metric="concordance").fit(X, y, eval_set=[(X, y)]) for y in (Y, pairs))
    assert gb.dumps(one) == gb.dumps(two)
    assert one.score(X, pairs) == one.score(X, Y) == one.evals_result_["validation_0"]["concordance"][-1] > 0.75
    pairs["time"][3] = 0.0
    with pytest.raises(InputError, match=r"y: times must be positive; row 3 holds 0.0 in field 'time'"):
        regressor().fit(X, pairs)
    with pytest.raises(InputError, match="a truth value"):
        regressor().fit(X, pairs.astype([("event", "i4"), ("time", "f8")]))
    with pytest.raises(InputError, match="y: "):
        regressor("squared_error").fit(X, pairs)


def test_a_gpu_makes_the_same_bytes() -> None:
    given: dict[str, Any] = {"n_estimators": 3, "eval_metric": ["loss", "concordance"]}
    one = regressor(device="cpu", **given).fit(X, Y, eval_set=[(X, Y)])
    with emulated_gpu():
        two = regressor(device="cuda", **given).fit(X, Y, eval_set=[(X, Y)])
    one.set_params(device="cuda")
    assert gb.dumps(one) == gb.dumps(two)
    assert one.evals_result_ == two.evals_result_


# concordance


def by_pairs(y: Array, score: Array, weight: Array) -> float:
    """The definition; nan if no rows are comparable."""
    time, event = np.abs(y)[:, None], (y > 0)[:, None]
    comparable = event & ((time < time.T) | ((time == time.T) & ~event.T))
    worth = weight[:, None] * weight * comparable
    right = (score[:, None] < score) + 0.5 * (score[:, None] == score)
    total = float(worth.sum())
    return float((worth * right).sum()) / total if total > 0.0 else np.nan


@given(data=st.data(), n=st.integers(1, 30))
@settings(max_examples=examples(300))
def test_concordance_is_the_share_of_pairs(data: st.DataObject, n: int) -> None:
    y = data.draw(arrays(np.float64, n, elements=st.sampled_from([-3.0, -2.0, -1.0, 1.0, 2.0, 2.5, 3.0])))
    score = data.draw(arrays(np.float64, n, elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0])))
    weight = data.draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 1.0, 2.0, 0.75])))
    for given_weight in (None, weight):
        true = by_pairs(y, score, np.ones(n) if given_weight is None else weight)
        metric = get("concordance", AFT())
        if np.isnan(true):
            with pytest.raises(InputError, match="no two of these rows are comparable"):
                metric(y, score[None], given_weight, AFT())
        else:
            assert metric(y, score[None], given_weight, AFT()) == pytest.approx(true, rel=1e-12)


def test_an_eval_set_without_a_comparable_pair_is_refused_before_the_first_tree() -> None:
    def never(record: gb.callbacks.Round) -> None:
        raise AssertionError("a round was fitted")

    model = regressor(eval_metric="concordance", callbacks=[never])
    last = np.array([-1.0, -2.0, 9.0])
    for y, weight in ((np.array([5.0]), None), (last, None), (np.array([1.0, -2.0]), np.array([1.0, 0.0]))):
        with pytest.raises(InputError, match="eval_set: validation_0: y: concordance needs an event before the time"):
            model.fit(X, Y, eval_set=[(X[: len(y)], y, weight)])
    with pytest.raises(InputError, match="eval_set: validation_0: y: concordance"):
        model.fit(X, np.c_[Y, Y], eval_set=[(X[:2], np.array([[1.0, 1.0], [-2.0, 1.0]]))])


@pytest.mark.filterwarnings("ignore::gpuboost.OutsideTheoryWarning")  # of a chain that is short
def test_intervals_are_not_compared_with_censored_times() -> None:
    langevin = gb.Langevin(shrinkage=0.1, inverse_temperature=100.0)
    model = regressor(n_estimators=10, langevin=langevin, posterior_samples=2, random_state=0).fit(X, Y)
    words = f": intervals are compared with times of events; row {np.argmin(Y > 0)} holds -"
    judges: tuple[Any, ...] = (gb.conformal, gb.posterior.interval_calibration, gb.plot.intervals)
    for judge, name in zip(judges, ("y_cal", "y", "y"), strict=True):
        with pytest.raises(InputError, match=f"^{name}{words}"):
            judge(model, X, Y)
    events = Y > 0
    low, high = gb.conformal(model, X[events], Y[events]).predict_interval(X[events]).T
    assert 0.9 <= np.mean((low <= Y[events]) & (Y[events] <= high)) < 0.92


def test_the_command_line_judges_held_out_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def written(name: str, rows: slice) -> str:
        table = np.column_stack([X[rows, :2], Y[rows]])
        np.savetxt(tmp_path / name, table, delimiter=",", header="a,b,t", comments="", fmt="%.17g")
        return str(tmp_path / name)

    def train(*options: str) -> int:
        return main(["train", many, "--target", "t", "--n-estimators", "3", "--threads", "1", *options])

    many, one = written("many.csv", slice(0, 90)), written("one.csv", slice(0, 1))
    assert train("--loss", "aft", "--eval", many) == 0
    shown = capsys.readouterr().out
    score = regressor(n_estimators=3, max_depth=6).fit(X[:90, :2], Y[:90]).score(X[:90, :2], Y[:90])
    assert f"{score:.5g}" in next(line for line in shown.splitlines() if "concordance" in line)
    assert "RMSE" not in shown
    for loss, there, missing in (("aft", "held-out", "concordance"), ("squared_error", "RMSE", "R2")):
        assert train("--loss", loss, "--eval", one) == 0
        shown = capsys.readouterr().out
        assert there in shown
        assert missing not in shown
    model = str(tmp_path / "model.json")
    for loss, made in (("aft:extreme", AFT("extreme")), ("aft:logistic,0.5", AFT("logistic", 0.5))):
        assert train("--loss", loss, "--model", model) == 0
        assert gb.load_model(model).loss_ == made
    for loss, words in (("aft:0.5", "AFT needs one of 'normal'"), ("aft:normal,1,2", "convert string to float: '1,2'")):
        assert train("--loss", loss) == 2
        assert words in capsys.readouterr().err


def test_errors_name_what_is_accepted() -> None:
    for y, words in (
        (np.where(np.arange(900) == 5, 0.0, Y), "t > 0 of an event, -t of a row that is censored at t; row 5 holds 0"),
        (-np.abs(Y), "all 900 rows are censored"),
        (np.where(np.arange(900) == 5, np.nan, Y), "row 5"),
    ):
        with pytest.raises(InputError, match=words):
            regressor().fit(X, y)
    with pytest.raises(RecipeError, match="distribution: AFT needs one of 'normal', 'logistic', 'extreme'; got 'x'"):
        AFT("x")
    for scale in (0.0, 1e4, float("nan")):
        with pytest.raises(RecipeError, match="scale: AFT needs a"):
            AFT(scale=scale)
    with pytest.raises(InputError, match="Did you mean 'aft'"):
        regressor("survival:aft").fit(X, Y)
    with pytest.raises(InputError, match="signs of censored times; use 'concordance'"):
        get("rmse", AFT())
    with pytest.raises(InputError, match="it judges censored times; use loss 'aft'"):
        get("concordance", SquaredError())
