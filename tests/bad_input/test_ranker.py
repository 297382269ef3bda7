"""What a ranker refuses, and that each message names the argument, what was seen, and what to do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gpuboost as gb

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array([0, 1, 2, 0, 0, 3, 1, 0, 0, 2, 1, 0])
GROUP = np.repeat([5, 2, 9], 4)


def ranker(**params: Any) -> gb.GradientBoostingRanker:
    return gb.GradientBoostingRanker(**{"n_estimators": 2, "max_depth": 2, **params})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"group": None}, "group: a ranker must know which rows belong together; none is given. Pass group="),
        ({"group": [4, 4]}, "sizes of the queries, which sum to 12; got 2 entries with sum 8. Count"),
        ({"group": [6, 0, 6]}, "size 1 is 0. A query has a row or more"),
        ({"group": [6.5, 5.5]}, "got 2 entries of dtype float64. Give one id for each row"),
        ({"group": np.tile([1, 2, 3], 4)}, "query 1, which begins at row 0, comes again at row 3. Sort everything by"),
        ({"group": GROUP[:, None]}, "group: must have one dimension; got shape (12, 1). Use numpy.ravel(group)"),
        ({"y": Y - 1}, "y: LambdaMART needs labels that are whole numbers, 0 or more (0 for what is of no use); row 0"),
        ({"y": Y + 0.5}, "row 0 holds 0.5 (12 such rows). Code the grades as 0, 1, 2"),
        ({"y": Y * 20}, "LambdaMART knows the gain of labels 0 to 31; row 2 holds 40.0"),
        ({"y": Y[:-1]}, "y: needs one value for each row of X; got 11 for 12 rows"),
        ({"y": np.array(list("abcdefghijkl"))}, "y: must hold numbers; could not convert string to float"),
        ({"sample_weight": np.arange(12.0)}, "query 5, row 0 holds 0.0 and row 1 1.0. Give all its rows the same"),
        ({"sample_weight": [1.0, 2.0]}, "sample_weight: needs one weight for each of 12 rows; got shape (2,)"),
        ({"sample_weight": [1.0, -2.0, 1.0]}, "sample_weight: must be finite and not negative"),
        ({"sample_weight": [0.0, 0.0, 0.0]}, "sample_weight: at least one weight must be above zero"),
        (
            {"eval_set": (X, Y)},
            "must be (X, y, group), (X, y, group, weight), (X, y, group, weight, init_score) or a Dataset; got",
        ),
        ({"eval_set": "X"}, "eval_set: must be (X, y, group), a list of such, or a mapping"),
        ({"eval_set": (X, Y, [3, 3])}, "eval_set: validation_0: group: must be one query id for each of 12 rows"),
        ({"eval_set": (X, Y - 1, GROUP)}, "eval_set: validation_0: y: LambdaMART needs labels"),
        ({"eval_set": gb.Dataset(X, Y)}, "eval_set: validation_0: group: a ranker must know which rows belong"),
        ({"eval_set": (X, Y, GROUP, np.arange(12.0))}, "eval_set: validation_0: sample_weight: a query has one weight"),
    ],
)
def test_data(given: dict[str, Any], words: str) -> None:
    model = ranker()
    with pytest.raises(gb.InputError, match=re.escape(words)):
        model.fit(**{"X": X, "y": Y, "group": GROUP, **given})
    assert not hasattr(model, "ensemble_")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"loss": "logistic"}, "loss: 'logistic' is not for rankings; use 'lambdamart' or 'pairwise_logistic'"),
        ({"loss": "lambdarank"}, "Did you mean 'lambdamart'?"),
        ({"loss": gb.losses.LambdaMART}, "loss: a loss object or a name is needed; got the class LambdaMART"),
        ({"step": "constant"}, "step: a constant step needs a finite smoothness constant; loss 'lambdamart' has none"),
        ({"eval_at": 0}, "eval_at: must be an integer of at least 1; got 0"),
        ({"eval_at": [5, 2.5]}, "eval_at: must be an integer of at least 1; got 2.5"),
        ({"eval_at": [5, 5]}, "eval_at: places must differ; got [5, 5]"),
        ({"eval_metric": "logloss"}, "eval_metric: 'logloss' does not fit loss 'lambdamart'"),
        ({"eval_metric": "ndcg@none"}, "eval_metric: 'ndcg@none' must read ndcg, ndcg@10"),
        ({"validation_fraction": 0.1, "n_estimators": 1}, ""),
    ],
)
def test_parameters(params: dict[str, Any], words: str) -> None:
    if not words:  # a tenth of three queries is one
        assert ranker(**params).fit(X, Y, group=GROUP).fit_report_.rows == 8
        return
    with pytest.raises(ValueError, match=re.escape(words)):
        ranker(**params).fit(X, Y, group=GROUP, eval_set=(X, Y, GROUP))


def test_one_query_cannot_be_divided() -> None:
    with pytest.raises(gb.InputError, match="validation_fraction: 1 of 1 queries would be set aside"):
        ranker(validation_fraction=0.5).fit(X, Y, group=[12])


@pytest.mark.parametrize("loss", ["lambdamart", "pairwise_logistic", gb.losses.LambdaMART(truncation=3)])
def test_only_a_ranker_takes_a_loss_of_lists(loss: Any) -> None:
    for kind in (gb.GradientBoostingRegressor, gb.GradientBoostingClassifier):
        with pytest.raises(gb.RecipeError, match=r"loss: '\w+' is for rankings; use GradientBoostingRanker"):
            kind(loss=loss).fit(X, Y)


def test_a_dataset_and_an_argument_must_not_both_say_it() -> None:
    with pytest.raises(gb.InputError, match=r"group: the Dataset holds one already; pass it there or here, not both"):
        ranker().fit(gb.Dataset(X, Y, group=GROUP), group=GROUP)
    with pytest.raises(gb.InputError, match=r"data: a Dataset brings target, weights and queries itself"):
        gb.cv(ranker(), gb.Dataset(X, Y, group=GROUP), group=GROUP)


def test_a_score_needs_queries() -> None:
    model = ranker().fit(X, Y, group=GROUP)
    with pytest.raises(gb.InputError, match="group: a ranker must know"):
        model.score(X, Y)


def test_a_model_of_another_loss_is_not_continued() -> None:
    model = ranker().fit(X, Y, group=GROUP)
    with pytest.raises(gb.InputError, match=r"init_model: was trained for the loss LambdaMART\("):
        ranker(loss="pairwise_logistic").fit(X, Y, group=GROUP, init_model=model)
    with pytest.raises(gb.InputError, match="init_model: was trained for the loss LambdaMART"):
        gb.GradientBoostingRegressor().fit(X, Y, init_model=model)
