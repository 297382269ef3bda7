"""The ranker from end to end."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpuboost as gb

Array = np.ndarray
Lists = tuple[Array, Array, Array]


def make_lists(queries: int, seed: int) -> Lists:
    """5 features of documents and 1 of the query, labels 0 to 4, lists of 1 to 25 documents."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 26, queries)
    group = np.repeat(np.arange(queries) * 7 % 1000, sizes)
    x = rng.normal(size=(len(group), 6))
    x[:, 5] = np.repeat(rng.normal(size=queries), sizes)
    worth = x[:, 0] + x[:, 1] * (x[:, 5] > 0) + 0.5 * rng.normal(size=len(x))
    return x, np.digitize(worth, [0.0, 0.7, 1.4, 2.2]).astype(np.float64), group


@pytest.fixture(scope="module")
def train() -> Lists:
    return make_lists(60, 1)


@pytest.fixture(scope="module")
def test() -> Lists:
    return make_lists(30, 2)


def ranker(**params: Any) -> gb.GradientBoostingRanker:
    return gb.GradientBoostingRanker(**{"n_estimators": 15, "max_depth": 3, "random_state": 0, **params})


def ids_to_sizes(group: Array) -> Array:
    return np.diff(np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1], [True]])))


def test_pairs_weighed_by_map(train: Lists, test: Lists, tmp_path: Path) -> None:
    """Better by the metric that it is judged by, which is MAP; a saved model is the same."""
    x, y, group = train
    loss = gb.losses.LambdaMART(metric="map")
    model, constant = (ranker(loss=loss, n_estimators=rounds).fit(x, y > 2, group=group) for rounds in (30, 0))
    xt, yt, gt = test
    assert model.score(xt, yt > 2, group=gt) > 0.1 + constant.score(xt, yt > 2, group=gt)
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert loaded.loss_ == loss
    assert loaded.predict(xt).tobytes() == model.predict(xt).tobytes()


@pytest.mark.parametrize("loss", ["lambdamart", "pairwise_logistic", gb.losses.LambdaMART(truncation=5, sigma=2.0)])
@pytest.mark.parametrize("growth", ["depthwise", "leafwise"])
def test_it_learns_to_rank(loss: Any, growth: str, train: Lists, test: Lists) -> None:
    x, y, group = train
    model = ranker(loss=loss, growth=growth, n_estimators=40).fit(x, y, group=group)
    assert model.score(test[0], test[1], group=test[2]) > 0.85
    assert ranker(n_estimators=0).fit(x, y, group=group).score(test[0], test[1], group=test[2]) < 0.75
    assert model.feature_importances_[:2].sum() > 0.5
    assert model.n_features_in_ == 6
    assert model.fit_report_.rows == len(y)


def test_ids_and_sizes_say_the_same(train: Lists) -> None:
    x, y, group = train
    by_ids, sizes = ranker().fit(x, y, group=group).predict(x), ids_to_sizes(group)
    for other in (sizes, sizes.tolist(), group.astype(str), gb.Dataset(x, y, group=group)):
        found = ranker().fit(other) if isinstance(other, gb.Dataset) else ranker().fit(x, y, group=other)
        assert found.predict(x).tobytes() == by_ids.tobytes()
    assert ranker().fit(gb.Dataset(x, y), group=group).predict(x).tobytes() == by_ids.tobytes()


def test_the_number_of_threads_does_not_matter(train: Lists) -> None:
    x, y, group = train
    models = [ranker(n_jobs=threads).fit(x, y, group=group).predict(x).tobytes() for threads in (1, 2, 4)]
    assert len(set(models)) == 1


def test_staged_predictions_leaves_and_contributions(train: Lists, test: Lists) -> None:
    model = ranker().fit(train[0], train[1], group=train[2])
    scores = model.predict(test[0])
    assert [*model.staged_predict(test[0])][-1].tobytes() == scores.tobytes()
    assert model.apply(test[0]).shape == (len(scores), 15)
    np.testing.assert_allclose(model.predict_contributions(test[0]).sum(axis=1), scores)


def test_eval_sets_places_and_early_stopping(train: Lists, test: Lists) -> None:
    x, y, group = train
    (xt, yt, gt), held_out = test, gb.Dataset(test[0], test[1], group=test[2])
    model = ranker(n_estimators=300, early_stopping_rounds=5, eval_metric=["ndcg", "map@3:skip", "mrr"], eval_at=[3, 7])
    model.fit(x, y, group=group, eval_set=(xt, yt, gt))
    curves = model.evals_result_["validation_0"]
    assert list(curves) == ["ndcg@3", "ndcg@7", "map@3:skip", "mrr@3", "mrr@7"]
    assert model.n_iter_ == model.best_iteration_ + 1 < 300
    assert model.best_score_ == max(curves["ndcg@3"]) == model.score(xt, yt, group=gt)
    assert model.score(held_out) == model.best_score_
    again = ranker(n_estimators=20, eval_at=None).fit(
        x, y, group=group, eval_set={"sizes": (xt, yt, ids_to_sizes(gt)), "held out": held_out}
    )
    assert again.evals_result_["sizes"] == again.evals_result_["held out"]
    assert list(again.evals_result_["sizes"]) == ["ndcg"]
    weight = np.random.default_rng(0).exponential(size=len(ids_to_sizes(gt)))
    weighted = ranker().fit(x, y, group=group, eval_set=(xt, yt, gt, weight))
    last = weighted.evals_result_["validation_0"]["ndcg@10"][-1]
    assert last == weighted.score(xt, yt, weight, gt)
    assert last != weighted.score(xt, yt, group=gt)


def test_whole_queries_are_set_aside(train: Lists) -> None:
    x, y, group = train
    model = ranker(n_estimators=50, validation_fraction=0.25, early_stopping_rounds=3).fit(x, y, group=group)
    assert model.best_iteration_ is not None
    sizes = ids_to_sizes(group)
    assert model.fit_report_.rows in {len(y) - total for total in _sums_of_parts(sizes.tolist(), 15)}


def _sums_of_parts(sizes: list[int], count: int) -> set[int]:
    """The sums of any ``count`` of the sizes."""
    reached: list[set[int]] = [{0}] + [set() for _ in range(count)]
    for size in sizes:
        for taken in range(count, 0, -1):
            reached[taken] |= {total + size for total in reached[taken - 1]}
    return reached[count]


def test_a_query_of_weight_three_is_three_equal_queries_and_one_of_weight_zero_is_not_there(train: Lists) -> None:
    x, y, group = train
    sizes = ids_to_sizes(group)
    weight = np.random.default_rng(1).integers(0, 4, len(sizes))
    rows, start = [], np.concatenate([[0], np.cumsum(sizes)])
    for query, times in enumerate(weight):
        rows += list(range(start[query], start[query + 1])) * times
    repeated = np.repeat(sizes, weight)
    expected = ranker().fit(x[rows], y[rows], group=repeated).predict(x)
    by_query = ranker().fit(x, y, weight, group=group).predict(x)
    by_row = ranker().fit(x, y, np.repeat(weight, sizes), group=group).predict(x)
    assert by_query.tobytes() == by_row.tobytes() == expected.tobytes()


def test_saved_loaded_and_continued(train: Lists, tmp_path: Path) -> None:
    x, y, group = train
    loss = gb.losses.LambdaMART(truncation=8, gain=(0.0, 1.0, 3.0, 6.0, 10.0))
    model = ranker(loss=loss, eval_at=[5], n_estimators=10).fit(x, y, group=group)
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert isinstance(loaded, gb.GradientBoostingRanker)
    assert loaded.predict(x).tobytes() == model.predict(x).tobytes()
    assert loaded.get_params()["loss"] == loss
    assert loaded.loss_ == loss
    assert loaded.eval_at == [5]
    loaded.save_model(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    more = ranker(loss=loss, n_estimators=5).fit(x, y, group=group, init_model=tmp_path / "model.json")
    at_once = ranker(loss=loss, n_estimators=15).fit(x, y, group=group)
    assert more.n_iter_ == 15
    assert more.predict(x).tobytes() == at_once.predict(x).tobytes()
    for text, words in (('"truncation":8', "truncation"), ('"GradientBoostingRanker"', "estimator: ")):
        damaged = (tmp_path / "model.json").read_text().replace(text, text.replace("8", "-8").replace("Ranker", "Rank"))
        (tmp_path / "damaged.json").write_text(damaged)
        with pytest.raises(gb.InputError, match=f"^model file .*damaged.json': .*{words}"):
            gb.load_model(tmp_path / "damaged.json")


def test_it_is_an_estimator_of_scikit_learn(train: Lists) -> None:
    x, y, group = train
    model = ranker(loss=gb.losses.LambdaMART(truncation=7))
    copied = clone(model).set_params(loss__truncation=9)
    assert model.get_params()["loss__truncation"] == 7
    assert copied.loss.truncation == 9
    fitted = model.fit(x, y, group=group)
    assert pickle.loads(pickle.dumps(fitted)).predict(x).tobytes() == fitted.predict(x).tobytes()
    assert "rounds" in fitted._repr_mimebundle_()["text/html"]
    search = GridSearchCV(
        ranker(n_estimators=5),
        {"loss": ["lambdamart", "pairwise_logistic"], "max_depth": [1, 3]},
        cv=GroupKFold(3),
        scoring=lambda one, xs, ys: np.corrcoef(one.predict(xs), ys)[0, 1],
    )
    search.fit(x, y, groups=group, group=group)
    assert search.best_params_["max_depth"] == 3


def test_what_theory_says(train: Lists) -> None:
    x, y, group = train
    verdict = ranker().check(x, y, group=group)
    assert verdict.kind == "heuristic"
    assert "no fixed objective" in str(verdict)
    assert str(ranker().fit(x, y, group=group).fit_report_.verdict) == str(verdict)
    refused = ranker(step="constant").check(x, y, group=group)
    assert (refused.kind, "finite smoothness" in str(refused)) == ("refused", True)


def test_the_training_loss_is_what_ndcg_lacks(train: Lists) -> None:
    x, y, group = train
    seen: list[float] = []
    model = ranker(callbacks=[lambda record: seen.append(record.training_loss())], eval_at=None)
    model.fit(x, y, group=group)
    assert seen[-1] == pytest.approx(1.0 - model.score(x, y, group=group), abs=1e-12)
    assert seen[-1] < seen[0]


def test_cross_validation_keeps_queries_together(train: Lists) -> None:
    x, y, group = train
    model = ranker(n_estimators=8, eval_at=[3, 10])
    result = gb.cv(model, x, y, group=group, folds=3, refit=True)
    assert all(len(set(result.fold[group == one])) == 1 for one in np.unique(group))
    assert set(result.mean) == {"ndcg@3", "ndcg@10"}
    assert result.best_iteration_ == int(np.argmax(result.mean["ndcg@3"]))
    assert not np.isnan(result.predictions).any()
    assert isinstance(result.model, gb.GradientBoostingRanker)
    assert gb.cv(model, gb.Dataset(x, y, group=group), folds=3).mean == result.mean


def test_frames_and_sparse_matrices(train: Lists) -> None:
    import pandas as pd
    from scipy.sparse import csr_matrix

    x, y, group = train
    frame = pd.DataFrame(np.round(x, 1), columns=list("abcdef"))
    frame["kind"] = pd.Categorical((list("xyz") * len(x))[: len(x)])
    model = ranker().fit(frame, pd.Series(y), group=pd.Series(group))
    assert model.feature_names_in_.tolist() == [*"abcdef", "kind"]
    kept = np.where(np.abs(x) > 1.0, x, 0.0)
    sparse = ranker().fit(csr_matrix(kept), y, group=group)
    assert sparse.predict(kept).tobytes() == ranker().fit(kept, y, group=group).predict(kept).tobytes()


class OneQuery(gb.GradientBoostingRanker):
    """Ranks all rows as one list of few grades, so that scikit-learn's checks, which know no queries, can fit it."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **more: Any) -> OneQuery:
        return super().fit(X, _few_grades(y), sample_weight, group=_one_query(X), **more)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        return super().score(X, _few_grades(y), sample_weight, _one_query(X))


def _few_grades(y: Any) -> Any:
    """0 to 4 where y could be a target at all; anything else as it is, for the estimator to refuse."""
    given = np.asarray(y)
    usable = y is not None and given.ndim == 1 and given.dtype.kind in "iuf" and np.isfinite(given).all()
    return np.searchsorted(np.unique(given), given) % 5 if usable else y


def _one_query(X: Any) -> Any:
    rows = X.shape[0] if hasattr(X, "shape") and len(X.shape) else len(X) if hasattr(X, "__len__") else None
    return None if rows is None else np.zeros(rows)


ONE_WEIGHT = "the documents of a query have one weight, and the check's rows differ"
NOT_FOR_RANKERS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
    ),
    ONE_WEIGHT,
)


@parametrize_with_checks([OneQuery(n_estimators=5, max_depth=3)], expected_failed_checks=lambda _: NOT_FOR_RANKERS)
def test_checks_of_scikit_learn(estimator: BaseEstimator, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)
