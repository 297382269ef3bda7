"""Rows drawn by whole queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.builders import random_case, weighted
from support.training import MACHINES, assert_parity

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.reference.backend import Reference
from gpuboost.keys import Key
from gpuboost.recipe import Recipe

rng = np.random.default_rng(0)
SIZES = rng.integers(1, 12, 40)
QUERIES = np.repeat(np.arange(40), SIZES)
N = len(QUERIES)
X = rng.normal(size=(N, 3))
GRADES = np.digitize(X[:, 0] + 0.5 * rng.normal(size=N), [-0.5, 0.5])
START = np.concatenate([[0], np.cumsum(SIZES)])


def ranker(**params):
    return gb.GradientBoostingRanker(**{"n_estimators": 4, "max_depth": 2, "n_jobs": 1, "random_state": 0, **params})


def test_a_sample_has_all_rows_of_its_queries_and_about_the_rate_of_them():
    data = replace(random_case(1, N, 2).data, query_start=START, multiplicity=rng.integers(1, 4, N).astype(np.int32))
    machine, counts = Reference(), []
    gradients = machine.gradients(losses.SquaredError(), np.zeros((1, N)), data, None)
    rule = gb.QuerySampling(0.3).prepared(data)
    for round in range(100):
        sample = rule.draw(machine, gradients, Key.root(0) / 5 / round)
        drawn = np.isin(np.arange(N), sample.rows)
        of_queries = np.add.reduceat(drawn.astype(int), START[:-1])
        assert set((of_queries / SIZES).tolist()) <= {0.0, 1.0}
        assert (sample.inverse_probability == 1.0).all()
        counts.append((of_queries > 0).sum())
    assert np.mean(counts) == pytest.approx(0.3 * 40, abs=6 * np.sqrt(0.21 * 40 / 100))
    assert len(set(counts)) > 5


@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_draws_the_same_queries(machine):
    plain = replace(random_case(4, 150, 3, target="binary").data, query_start=np.array([0, 20, 50, 51, 90, 130, 150]))
    for weights, control in (("none", "leaf_refit"), ("whole", "none")):
        data = weighted(plain, weights, np.random.default_rng(2))
        assert_parity(Recipe(losses.LambdaMART(), rounds=4, sampling=gb.QuerySampling(0.5, control)), data, machine)


def test_shards_are_refused_and_workers_draw_them():
    drawn = {"sampling": gb.QuerySampling(0.5)}
    with pytest.raises(gb.RecipeError, match=r"sampling: QuerySampling.* draws among all queries, and shards"):
        ranker(**drawn, execution=gb.DataParallel(2)).fit(X, GRADES, group=SIZES)
    workers = gb.SimulatedWorkers(3, build_time=1.0, server_time=0.2)
    model = ranker(**drawn, execution=workers).fit(X, GRADES, group=SIZES)
    again = ranker(**drawn, execution=gb.Replay(model.log_)).fit(X, GRADES, group=SIZES)
    assert gb.dumps(again) == gb.dumps(model)
    assert gb.dumps(model) != gb.dumps(ranker().fit(X, GRADES, group=SIZES))


def test_a_rate_of_one_is_no_sampling_and_fits_go_on():
    every = ranker().fit(X, GRADES, group=SIZES)
    assert (
        ranker(sampling=gb.QuerySampling(1.0)).fit(X, GRADES, group=SIZES).predict(X).tobytes()
        == every.predict(X).tobytes()
    )
    drawn = {"sampling": gb.QuerySampling(0.5)}
    whole, half = (ranker(n_estimators=n, **drawn).fit(X, GRADES, group=SIZES) for n in (4, 2))
    more = ranker(n_estimators=2, **drawn).fit(X, GRADES, group=SIZES, init_model=half)
    assert more.predict(X).tobytes() == whole.predict(X).tobytes()
    assert gb.loads(gb.dumps(whole)).sampling == gb.QuerySampling(0.5)
    apart = ranker(validation_fraction=0.3, **drawn).fit(X, GRADES, group=SIZES)
    assert apart.n_iter_ == 4


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["xendcg", gb.losses.LambdaMART(metric="map")])
def test_every_loss_of_lists_takes_drawn_queries_and_a_column_of_ids(loss):
    labels, names = np.minimum(GRADES, 1), [f"c{i}" for i in range(X.shape[1])]
    drawn = {"loss": loss, "sampling": gb.QuerySampling(0.5), "min_child_weight": 0.0}
    model = ranker(**drawn).fit(X, labels, group=SIZES)
    frame = pd.DataFrame(X, columns=names).assign(qid=np.repeat(np.arange(len(SIZES)), SIZES))
    by_column = ranker(**drawn).fit(frame, labels, group="qid")
    assert by_column.predict(frame[names]).tobytes() == model.predict(X).tobytes()
    whole = ranker(loss=loss, min_child_weight=0.0).fit(X, labels, group=SIZES)
    assert model.predict(X).tobytes() != whole.predict(X).tobytes()


def test_losses_of_rows_langevin_and_wrong_rates_are_refused():
    for make in (gb.GradientBoostingRegressor, gb.GradientBoostingClassifier):
        with pytest.raises(gb.RecipeError, match=r"sampling: QuerySampling.* draws whole queries, and loss"):
            make(sampling=gb.QuerySampling(0.5)).fit(X, GRADES)
    with pytest.raises(gb.RecipeError, match="sampling: Langevin boosting requires unbiased gradients"):
        ranker(loss="stochastic_rank", langevin=gb.Langevin(), sampling=gb.QuerySampling(0.5)).fit(
            X, GRADES, group=SIZES
        )
    for rate in (0.0, 1.5, -1.0, "half", None, True, np.nan):
        with pytest.raises(gb.RecipeError, match="sampling: the rate must be in"):
            gb.QuerySampling(rate)
    with pytest.raises(gb.RecipeError, match="variance_control must be one of 'leaf_refit', 'none'"):
        gb.QuerySampling(0.5, "horvitz_thompson")
