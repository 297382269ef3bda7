"""The first rounds of a model, the model as text and dictionary, and its trees as a frame."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import gpuboost as gb


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": pd.Categorical(rng.choice(list("xyz"), 200))})
    X.loc[::7, "a"] = np.nan
    return X, X["a"].fillna(0.5) + (X["b"] == "x") + 0.1 * rng.normal(size=200)


@pytest.fixture(scope="module")
def model(rows):
    X, y = rows
    return gb.GradientBoostingRegressor(n_estimators=8, max_depth=3, eval_metric="mae").fit(X, y, eval_set=[(X, y)])


@pytest.fixture(scope="module")
def classifier():
    return gb.GradientBoostingClassifier(n_estimators=4, max_depth=2).fit(*load_iris(return_X_y=True))


def test_the_first_rounds_are_a_model_of_their_own(model, rows, tmp_path):
    X, _ = rows
    staged = list(model.staged_predict(X))
    for k in (1, 5, 8):
        part = model[:k]
        assert part.predict(X).tobytes() == staged[k - 1].tobytes()
        assert part.n_iter_ == part.ensemble_.n_rounds == k
        assert len(part.evals_result_["validation_0"]["mae"]) == k
        assert part.guarantee_.kind == "not known"
        assert pickle.loads(pickle.dumps(part)).predict(X).tobytes() == staged[k - 1].tobytes()
        part.save_model(tmp_path / "part.json")
        assert gb.load_model(tmp_path / "part.json").predict(X).tobytes() == staged[k - 1].tobytes()
    assert np.unique(model[:0].predict(X)).tolist() == [model.ensemble_.bias[0]]
    assert model[:-2].n_iter_ == 6
    assert model[:].predict(X).tobytes() == staged[-1].tobytes()
    assert model.n_iter_ == 8
    assert len(model.evals_result_["validation_0"]["mae"]) == 8


def test_the_first_rounds_of_classes_and_of_a_shrunken_chain(classifier, rows):
    X, _ = load_iris(return_X_y=True)
    assert classifier[:2].predict_proba(X).tobytes() == list(classifier.staged_predict_proba(X))[1].tobytes()
    chain = gb.GradientBoostingRegressor(n_estimators=6, langevin=gb.Langevin(), random_state=0).fit(*rows)
    assert chain[:3].predict(rows[0]).tobytes() == list(chain.staged_predict(rows[0]))[2].tobytes()


@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
def test_rounds_before_a_chain_are_saved_without_it(rows, tmp_path):
    X, y = rows
    plain = gb.GradientBoostingRegressor(n_estimators=4).fit(X, y)
    model = gb.GradientBoostingRegressor(n_estimators=3, langevin=gb.Langevin(), random_state=0)
    model.fit(X, y, init_model=plain)
    for k in (2, 4, 6):
        model[:k].save_model(tmp_path / "part.json")
        again = gb.load_model(tmp_path / "part.json")
        assert again.predict(X).tobytes() == model[:k].predict(X).tobytes()


def test_the_best_round_is_kept_where_it_is_among_the_first(rows):
    X, y = rows
    model = gb.GradientBoostingRegressor(n_estimators=8, early_stopping_rounds=8).fit(X, y, eval_set=[(X, y)])
    best = model.best_iteration_
    assert model[: best + 1].best_iteration_ == best
    assert model[:best].best_iteration_ is model[:best].best_score_ is None


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (3, "a slice such as"),
        (slice(1, 3), "a slice such as"),
        (slice(None, None, 2), "a slice such as"),
        (slice(9), "has 8 rounds"),
        (slice(-9), "has 8 rounds"),
        (slice(2.0), "has 8 rounds"),
    ],
)
def test_other_slices_are_refused(model, key, words):
    with pytest.raises(gb.InputError, match=words):
        model[key]


def test_a_model_is_no_sequence(model):
    with pytest.raises(TypeError, match="not iterable"):
        iter(model)


def test_text_and_dictionary(model, classifier, rows, tmp_path):
    model.save_model(tmp_path / "model.json")
    text = gb.dumps(model)
    assert text == (tmp_path / "model.json").read_text()
    assert gb.loads(text).predict(rows[0]).tobytes() == model.predict(rows[0]).tobytes()
    assert gb.loads(text.encode()).predict(rows[0]).tobytes() == model.predict(rows[0]).tobytes()
    content = json.loads(gb.dumps(classifier))
    assert content["format"] == "gpuboost"
    assert len(content["trees"]) == 12
    again = gb.loads(json.dumps(content))
    X, _ = load_iris(return_X_y=True)
    assert again.predict_proba(X).tobytes() == classifier.predict_proba(X).tobytes()
    with pytest.raises(gb.InputError, match="model file"):
        gb.loads("{}")
    with pytest.raises(TypeError, match="str or bytes, is needed; got dict"):
        gb.loads(content)


def test_logarithms_of_probabilities(classifier):
    X, _ = load_iris(return_X_y=True)
    assert np.allclose(np.exp(classifier.predict_log_proba(X)), classifier.predict_proba(X), rtol=1e-15)


def predicted_from(frame, row):
    """Sum of the leaves that a row reaches, by the frame alone."""
    total = 0.0
    for _, tree in frame.groupby("tree_index"):
        nodes = tree.set_index("node_index")
        node = nodes.index[0]
        while isinstance(nodes.loc[node, "left_child"], str):
            line = nodes.loc[node]
            value = row[line["split_feature"]]
            if pd.isna(value):
                left = line["missing_left"]
            elif isinstance(line["categories"], list):
                left = value in line["categories"]
            else:
                left = value <= line["threshold"]
            node = line["left_child" if left else "right_child"]
        total += nodes.loc[node, "value"]
    return total


def test_the_frame_of_trees_predicts(model, rows):
    X, _ = rows
    frame = pd.DataFrame(gb.export.trees_to_table(model))
    assert set(frame["split_feature"].dropna()) == {"a", "b"}
    bias = model.ensemble_.bias[0]
    for i in range(0, 40, 3):
        assert bias + predicted_from(frame, X.iloc[i]) == pytest.approx(model.predict(X.iloc[[i]])[0], abs=1e-12)
    roots = frame[frame["node_depth"] == 1]
    assert roots["count"].tolist() == [200] * 8
    assert roots["parent_index"].isna().all()
    children = frame[frame["node_depth"] > 1]
    assert (children["parent_index"].str.split("-").str[0].astype(int) == children["tree_index"]).all()


def test_the_frame_names_classes(classifier):
    frame = pd.DataFrame(gb.export.trees_to_table(classifier))
    assert frame.groupby("tree_index")["output"].first().tolist() == [0, 1, 2] * 4


def test_an_additive_model_has_no_trees(rows):
    X, y = rows
    model = gb.GradientBoostingRegressor(n_estimators=2, base_learner=gb.learners.Linear()).fit(X[["a"]], y)
    with pytest.raises(gb.InputError, match="to_table shows additive models"):
        pd.DataFrame(gb.export.trees_to_table(model))
    assert model[:1].n_iter_ == 1
