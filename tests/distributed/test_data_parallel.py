"""``execution=gb.DataParallel(...)`` on estimators, and what is refused."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import gpuboost as gb
from gpuboost.errors import DeviceError, RecipeError
from gpuboost.training.placement.sharding import STRETCH, ends_of

Array = np.ndarray
Data = tuple[Array, Array]


def saved(model: gb.GradientBoostingRegressor, folder: Path) -> bytes:
    model.save_model(folder / "model.json")
    return (folder / "model.json").read_bytes()


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_an_estimator_writes_the_same_file(shards: int, regression_data: Data, tmp_path: Path) -> None:
    x, y = regression_data
    weight = np.random.default_rng(0).integers(0, 4, len(y))  # rows of weight 0 are on no shard
    params = {"n_estimators": 6, "sampling": 0.6, "random_state": 5, "validation_fraction": 0.2}
    watched = {"early_stopping_rounds": 3, "eval_metric": ["rmse", "mae"]}
    one = gb.GradientBoostingRegressor(**params, **watched).fit(x, y, sample_weight=weight)
    execution = gb.DataParallel(shards)
    other = gb.GradientBoostingRegressor(**params, **watched, execution=execution).fit(x, y, sample_weight=weight)
    assert saved(other, tmp_path) == saved(one, tmp_path)
    assert other.evals_result_ == one.evals_result_
    assert other.fit_report_.verdict.kind == one.fit_report_.verdict.kind


def test_classes_datasets_and_sparse_rows(multiclass_data: tuple[Array, Array]) -> None:
    x, y = multiclass_data
    for given in (gb.Dataset(x, y), sparse.csr_array(np.where(np.abs(x) < 1.2, 0.0, x))):
        fitted = []
        for execution in (None, gb.DataParallel(3)):
            model = gb.GradientBoostingClassifier(n_estimators=3, execution=execution)
            fitted.append(model.fit(given) if isinstance(given, gb.Dataset) else model.fit(given, y))
        assert fitted[0].predict_proba(x).tobytes() == fitted[1].predict_proba(x).tobytes()


def test_rankings_are_cut_between_queries() -> None:
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(30), rng.integers(1, 12, 30))
    x, y = rng.normal(size=(len(group), 4)), rng.integers(0, 3, len(group))
    one = gb.GradientBoostingRanker(n_estimators=3).fit(x, y, group=group)
    other = gb.GradientBoostingRanker(n_estimators=3, execution=gb.DataParallel(4)).fit(x, y, group=group)
    assert one.predict(x).tobytes() == other.predict(x).tobytes()


def test_the_training_loss_is_the_same(regression_data: Data) -> None:
    losses: list[list[float]] = []
    for execution in (None, gb.DataParallel(4)):
        seen: list[float] = []
        watch = [lambda record, seen=seen: bool(seen.append(record.training_loss()))]
        gb.GradientBoostingRegressor(n_estimators=4, callbacks=watch, execution=execution).fit(*regression_data)
        losses.append(seen)
    assert losses[0] == losses[1]


def test_no_more_shards_than_rows() -> None:
    x, y = np.arange(3.0)[:, None], np.arange(3.0)
    one = gb.GradientBoostingRegressor(n_estimators=2, min_child_weight=0.0).fit(x, y)
    other = gb.GradientBoostingRegressor(n_estimators=2, min_child_weight=0.0, execution=gb.DataParallel(8)).fit(x, y)
    assert one.predict(x).tobytes() == other.predict(x).tobytes()


def test_its_threads_are_gone_afterwards(regression_data: Data) -> None:
    gb.GradientBoostingRegressor(n_estimators=1, n_jobs=1).fit(*regression_data)
    before = threading.enumerate()  # pools of other tests' machines among them, which live on
    gb.GradientBoostingRegressor(n_estimators=2, n_jobs=1, execution=gb.DataParallel(4)).fit(*regression_data)
    for thread in set(threading.enumerate()) - set(before):
        thread.join(0.5)
    assert threading.active_count() <= len(before)


def test_boundaries_are_whole_stretches_where_rows_are_many() -> None:
    assert ends_of(10, 4) == [2, 5, 7, 10]
    assert ends_of(2, 4) == [1, 2]
    many = ends_of(1_000_003, 4)
    assert many[-1] == 1_000_003
    assert all(end % STRETCH == 0 for end in many[:-1])
    assert ends_of(10, 3, np.array([0, 1, 9, 10])) == [9, 10]


def test_bad_input(regression_data: Data) -> None:
    x, y = regression_data
    for wrong in (0, -1, 2.0, True, "2", None):
        with pytest.raises(RecipeError, match="shards: must be an integer of at least 1"):
            gb.DataParallel(wrong)
    with pytest.raises(RecipeError, match="threads_per_shard"):
        gb.DataParallel(2, threads_per_shard=0)
    with pytest.raises(RecipeError, match=r"engine: must be 'threads', 'ray' or gb.Ray"):
        gb.DataParallel(2, engine="mpi")
    with pytest.raises(RecipeError, match="address: it is for engine='ray'"):
        gb.DataParallel(2, address="10.0.0.1:6379")
    with pytest.raises(DeviceError, match="device: shards of DataParallel take rows from the host"):
        gb.GradientBoostingRegressor(execution=gb.DataParallel(2), device="cuda:3").fit(x, y)
    searched = gb.GradientBoostingRegressor(execution=gb.DataParallel(2), step=gb.LineSearchStep())
    smooth = gb.GradientBoostingRegressor(execution=gb.DataParallel(2), base_learner=gb.learners.Spline())
    for model, words in (
        (searched, "step: a line search"),
        (smooth, "base_learner: shards of DataParallel grow trees"),
    ):
        with pytest.raises(RecipeError, match=words):
            model.fit(x, y)
        assert model.check(x, y).kind == "refused"
