"""The query of each row as a column of X."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
GRADES = np.digitize(X[:, 0] + 0.5 * rng.normal(size=120), [-0.5, 0.5])
QUERIES = np.repeat(np.arange(12), 10)
NAMES = ["a", "b", "c"]
PLAIN = pd.DataFrame(X, columns=NAMES)
FRAME = PLAIN.assign(qid=QUERIES)[["a", "qid", "b", "c"]]


def ranker(**params):
    return gb.GradientBoostingRanker(n_estimators=4, max_depth=2, n_jobs=1, random_state=0, **params)


def without_query(model):
    """The content of the model file without the name of the column."""
    content = gb.to_dict(model)
    assert content["columns"].pop("query") == "qid"
    return content


@pytest.fixture(scope="module")
def expected():
    return ranker().fit(PLAIN, GRADES, group=QUERIES, eval_set=(PLAIN, GRADES, QUERIES))


@pytest.mark.parametrize("ids", [QUERIES, QUERIES.astype(str), QUERIES / 2.0, pd.Categorical(QUERIES.astype(str))])
def test_the_column_is_the_query_and_no_feature(ids, expected):
    model = ranker().fit(FRAME.assign(qid=ids), GRADES, group="qid", eval_set=(FRAME.assign(qid=ids), GRADES, "qid"))
    assert without_query(model) == gb.to_dict(expected)
    assert model.evals_result_ == expected.evals_result_
    assert list(model.feature_names_in_) == NAMES


def test_other_frames(expected):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for frame in (polars.from_pandas(FRAME), polars.from_pandas(FRAME).lazy(), pyarrow.Table.from_pandas(FRAME)):
        model = ranker().fit(frame, GRADES, group="qid", eval_set=(PLAIN, GRADES, QUERIES))
        assert without_query(model) == gb.to_dict(expected)


def test_everything_that_takes_queries_takes_the_column(expected):
    model = expected
    assert model.score(FRAME, GRADES, group="qid") == model.score(PLAIN, GRADES, group=QUERIES)
    assert ranker().check(FRAME, GRADES, group="qid") == ranker().check(PLAIN, GRADES, group=QUERIES)
    by_name = model.refit(FRAME, GRADES, group="qid", decay=0.5)
    assert (
        by_name.predict(PLAIN).tobytes()
        == model.refit(PLAIN, GRADES, group=QUERIES, decay=0.5).predict(PLAIN).tobytes()
    )
    data = gb.Dataset(FRAME, GRADES, group="qid")
    assert without_query(ranker().fit(data, eval_set=(PLAIN, GRADES, QUERIES))) == gb.to_dict(expected)
    folds = [gb.cv(ranker(), x, GRADES, group=group, folds=3) for x, group in ((FRAME, "qid"), (PLAIN, QUERIES))]
    assert str(folds[0]) == str(folds[1])
    assert model.predict(FRAME[model.feature_names_in_]).tobytes() == model.predict(PLAIN).tobytes()


def test_wrong_columns_are_refused(expected):
    for x, group, why in (
        (FRAME, "quid", "group: X has no column 'quid'; close to it: 'qid'"),
        (X, "qid", "group: X has no column names to find 'qid' in"),
        (FRAME[["qid"]], "qid", "group: X has no column but 'qid'"),
        (FRAME.iloc[np.r_[0:5, 20:120, 5:20]], "qid", "group: the rows of a query must stand together"),
        (FRAME.assign(qid=[None, *QUERIES[1:]]), "qid", "group: every row belongs to a query"),
        (FRAME.assign(qid=pd.Categorical([None, *QUERIES[1:]])), "qid", "group: every row belongs to a query"),
        (gb.Dataset(PLAIN, GRADES), "qid", "group: a Dataset has its columns decided"),
    ):
        with pytest.raises(gb.InputError, match=why):
            ranker().fit(x, GRADES[: len(x)], group=group)
    with pytest.raises(gb.InputError, match="group: X has no column 'x'"):
        ranker().fit(PLAIN, GRADES, group=QUERIES, eval_set=(FRAME, GRADES, "x"))
    with pytest.raises(ValueError, match="qid"):
        expected.predict(FRAME)  # a model of queries in an array knows no such column


def test_rows_to_predict_may_have_the_column(expected):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    model = ranker().fit(FRAME, GRADES, group="qid", eval_set=(FRAME, GRADES, QUERIES))
    assert model.evals_result_ == expected.evals_result_
    frames = FRAME, PLAIN.assign(qid=QUERIES), PLAIN, polars.from_pandas(FRAME), pyarrow.Table.from_pandas(FRAME)
    for known in (model, gb.loads(gb.dumps(model)), ranker().fit(FRAME, GRADES, group="qid", init_model=expected)):
        scores = known.predict(PLAIN).tobytes()
        for frame in (*frames, frames[3].lazy()):
            assert known.predict(frame).tobytes() == scores
    assert model.predict_contributions(FRAME).tobytes() == model.predict_contributions(PLAIN).tobytes()
    assert model.score(FRAME, GRADES, group=QUERIES) == model.score(FRAME, GRADES, group="qid")
    with pytest.raises(gb.InputError, match="not in training: 'z'"):
        model.predict(FRAME.assign(z=0.0))


def test_every_dataset_keeps_the_name_of_the_column(expected, tmp_path):
    pytest.importorskip("pyarrow")
    data = gb.Dataset(FRAME, GRADES, group="qid")
    data.save(tmp_path / "rows.gbd")
    FRAME.assign(grade=GRADES).to_parquet(tmp_path / "rows.parquet")
    pieces = [{"X": FRAME[rows], "y": GRADES[rows], "group": "qid"} for rows in (slice(60), slice(60, None))]
    for made in (
        gb.Dataset.load(tmp_path / "rows.gbd"),
        gb.Dataset.from_parquet(tmp_path / "rows.parquet", "grade", group="qid"),
        gb.Dataset.from_batches(pieces),
        gb.Dataset.from_batches([data.take(np.arange(60)), data.take(np.arange(60, 120))]),
    ):
        assert ranker().fit(made).predict(FRAME).tobytes() == expected.predict(PLAIN).tobytes()
    folds = gb.cv(ranker(), FRAME, GRADES, group="qid", folds=3, refit=True)
    assert folds.model.predict(FRAME).tobytes() == folds.model.predict(PLAIN).tobytes()


def test_permutation_importance_takes_the_column(expected):
    by_name = gb.permutation_importance(expected, FRAME, GRADES, group="qid", n_repeats=1)
    assert str(by_name) == str(gb.permutation_importance(expected, PLAIN, GRADES, group=QUERIES, n_repeats=1))


def test_a_damaged_name_is_refused(expected):
    for name in ("a", 3):
        content = gb.to_dict(expected)
        content["columns"]["query"] = name
        with pytest.raises(gb.InputError, match="columns: query must be the name of a column beside"):
            gb.loads(json.dumps(content))


def test_models_are_summed_whether_the_queries_had_a_name_or_not(expected):
    model = ranker().fit(FRAME, GRADES, group="qid")
    total = gb.sum_models([model, expected], weights=[0.5, 0.5])
    np.testing.assert_allclose(total.predict(FRAME), expected.predict(PLAIN), rtol=1e-12)
