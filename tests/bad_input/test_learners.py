"""Selection rules, steps and theory that cannot be: each is refused with what to do, before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost import theory
from gpuboost.errors import InputError, RecipeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 5))
Y = X[:, 0] > 0.0


def unsmooth(*, convex: bool, hessian: Any = lambda y, f: 2.0) -> Any:
    return gb.losses.custom(lambda y, f: (y - f) ** 2, lambda y, f: 2.0 * (f - y), hessian, name="own", convex=convex)


@pytest.mark.parametrize("loss", ["absolute_error", "quantile"])
def test_advice_for_a_loss_without_curvature(loss: str) -> None:
    model = gb.GradientBoostingRegressor(loss=loss, step="constant")
    with pytest.raises(RecipeError, match=rf"loss '{loss}' has none\. Use step='line_search'\.$"):
        model.fit(X, X[:, 0])
    assert model.set_params(step="line_search", n_estimators=1).fit(X, X[:, 0]).n_iter_ == 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: gb.RandomLearners(0),
            "learners: t must be a count of at least 1, or a share of the learners in (0, 1]",
        ),
        (lambda: gb.RandomLearners("many"), "learners: t must be a count of at least 1"),
        (lambda: gb.RandomByLevel(0.0), "learners: t must be a count of at least 1, or a share of the features"),
        (lambda: gb.RandomGroups(2.5), "learners: t must be a count of at least 1, or a share of the features"),
        (
            lambda: gb.RandomGroups(2, "leaf"),
            "groups: must be 'feature', 'root', or a label for each column; got 'leaf'",
        ),
        (lambda: gb.RandomGroup([]), "groups: must be 'feature', 'root', or a label for each column; got []"),
        (lambda: gb.RandomGroup([(1, 2), (3, 4)]), "groups: a label is a number or a text, equal ones for one group"),
        (lambda: gb.WeightedGroups(1, [1.0, -2.0]), "weights: WeightedGroups needs finite numbers, not negative"),
        (lambda: gb.WeightedGroups(1, [0.0, 0.0]), "weights: WeightedGroups needs finite numbers, not negative"),
        (lambda: gb.WeightedGroups(1, "abc"), "weights: WeightedGroups needs finite numbers"),
        (lambda: gb.WeightedGroups(1, [1.0], "root"), "groups: WeightedGroups draws features; got 'root'"),
        (lambda: gb.CyclicGroups(1, "root"), "groups: CyclicGroups takes features in turn; got 'root'"),
        (lambda: gb.LineSearchStep("row"), "per: a line search is per 'tree' or per 'leaf'; got 'row'."),
    ],
)
def test_policies(make: Any, text: str) -> None:
    with pytest.raises(RecipeError) as caught:
        make()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (
            {"learners": gb.RandomLearners(9)},
            "learners: RandomLearners needs an enumerable set of weak learners; a depth-6 tree on 5 features x 254 "
            "cuts has about 10^196. Use RandomGroups(t), or stumps: max_depth=1.",
        ),
        (
            {"learners": gb.RandomLearners(9), "growth": "leafwise", "max_leaves": 5, "max_depth": None},
            "a 4-split tree on 5 features x 254 cuts has about 10^12.",
        ),
        ({"learners": gb.RandomLearners(9), "growth": "oblivious", "max_depth": 1}, "treats one node unlike others"),
        ({"learners": gb.RandomByNode(2), "growth": "oblivious"}, "treats one node unlike others"),
        ({"learners": gb.RandomGroups(2, "root"), "growth": "oblivious"}, "treats one node unlike others"),
        ({"learners": gb.CyclicGroups()}, "is for stumps: a tree with several splits of one group at a time"),
        ({"learners": gb.RandomGroups(1, [0, 1])}, "groups: a label for each column is needed; got 2 for 5 columns."),
        ({"step": "constant", "loss": "exponential"}, "has none. Use step='newton' or 'line_search'."),
        ({"step": "constant", "loss": unsmooth(convex=True)}, "has none. Use step='newton' or 'line_search'."),
        ({"step": "constant", "loss": unsmooth(convex=False)}, "has none. Use step='newton'."),
        ({"step": "constant", "loss": unsmooth(convex=False, hessian=None)}, "has none. Use step='gradient'."),
        ({"step": "line_search", "langevin": gb.Langevin()}, "step: Langevin boosting needs leaves whose noise"),
        ({"growth": "sign_stump", "langevin": gb.Langevin()}, "growth: Langevin boosting needs leaves with noise"),
        (
            {"growth": "sign_stump", "langevin": gb.Langevin(random_from=3)},
            "growth: Langevin boosting needs leaves with noise",
        ),
        (
            {"learners": gb.RandomByNode(2), "langevin": gb.Langevin(random_from=3)},
            "random_from: RandomByNode(t=2) draws cuts or features of nodes, and random shapes take any cut of a "
            "tree's features at every node. Leave it out, or use RandomGroups(t).",
        ),
        (
            {"learners": gb.RandomByLevel(2), "langevin": gb.Langevin(random_from=3)},
            "random_from: RandomByLevel(t=2) draws cuts or features of nodes",
        ),
        (
            {"learners": gb.RandomGroups(2, "root"), "langevin": gb.Langevin(random_from=0)},
            "random_from: RandomGroups(t=2, groups='root') draws cuts or features of nodes",
        ),
        (
            {"learners": gb.RandomGroup("root"), "langevin": gb.Langevin(random_from=0)},
            "random_from: RandomGroup(groups='root') draws cuts or features of nodes",
        ),
        (
            {"learners": gb.RandomLearners(3), "max_depth": 1, "langevin": gb.Langevin(random_from=0)},
            "random_from: RandomLearners(t=3) draws cuts or features of nodes",
        ),
        (
            {"base_learner": [gb.learners.Linear()], "langevin": gb.Langevin(random_from=3)},
            "random_from: shapes are those of trees; leave it out, or leave base_learner out.",
        ),
        (
            {"step": "line_search", "loss": gb.losses.SmoothedZeroOne(0.5)},
            "step: a line search looks for the one minimum of a convex loss; loss 'smoothed_zero_one' is not convex.",
        ),
        ({"growth": "sign_stump", "step": gb.LineSearchStep("leaf")}, "growth: 'sign_stump' has one value, and"),
    ],
)
def test_compositions(params: dict[str, Any], text: str) -> None:
    model = gb.GradientBoostingClassifier(n_estimators=2, **params)
    with pytest.raises(RecipeError) as caught:
        model.fit(X, Y)
    assert text in str(caught.value)
    found = model.check(X, Y)
    assert found.kind == "refused"
    assert text in str(found)


@pytest.mark.parametrize("langevin", [gb.Langevin(), gb.Langevin(random_from=0)], ids=repr)
def test_random_shapes_of_drawn_features_are_as_sound_as_others(langevin: gb.Langevin) -> None:
    """Whole features of a tree are drawn there as anywhere, and cuts of nodes only where shapes are searched."""
    settings = {"step": "gradient", "reg_lambda": 0.0, "langevin": langevin}
    for learners in (gb.RandomGroups(2), gb.RandomGroup([0, 0, 1, 1, 1]), gb.RandomGroups(2, "root")):
        refused = langevin.random_from is not None and learners.groups == "root"
        found = gb.GradientBoostingClassifier(learners=learners, **settings).check(X, Y)
        assert (found.kind == "refused") == refused


def test_pairs_of_categories_are_refused() -> None:
    x = np.column_stack([X, RNG.integers(0, 4, 100)])
    model = gb.GradientBoostingClassifier(learners=gb.RandomLearners(5), max_depth=1, categorical_features=[5])
    with pytest.raises(RecipeError, match=r"learners: RandomLearners draws .* column 5 is categorical"):
        model.fit(x, Y)


def test_of_families_groups_are_of_pairs_of_family_and_feature() -> None:
    families = [gb.learners.Linear(), gb.learners.Tree()]  # five lines, and one family of trees
    model = gb.GradientBoostingClassifier(n_estimators=2, base_learner=families, learners=gb.RandomGroups(1, [0, 1]))
    with pytest.raises(
        RecipeError, match=r"groups: a label for each pair of family and feature .* got 2 for 6 pairs\."
    ):
        model.fit(X, Y)
    assert model.set_params(learners__groups=[0, 0, 1, 1, 1, 2]).fit(X, Y).n_iter_ == 2


def test_weights_must_be_as_many_as_groups() -> None:
    model = gb.GradientBoostingClassifier(learners=gb.WeightedGroups(1, [1.0, 2.0]), max_depth=1)
    with pytest.raises(RecipeError, match=r"weights: one for each group is needed; got 2 for 5 groups."):
        model.fit(X, Y)


def test_a_line_search_of_lists_is_refused() -> None:
    with pytest.raises(RecipeError, match="step: a line search needs a fixed objective; loss 'lambdamart'"):
        gb.GradientBoostingRanker(step="line_search").fit(X, Y.astype(int), group=np.repeat(np.arange(10), 10))


def test_many_pairs_come_with_advice() -> None:
    model = gb.GradientBoostingClassifier(learners=gb.RandomLearners(20), max_depth=1, n_estimators=2)
    with pytest.warns(UserWarning, match="20 pairs of 5 features are about all of the features; RandomGroups"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("learners", "params", "kind"),
    [
        (gb.RandomLearners(5), {"max_depth": 1}, "sound"),
        (gb.RandomGroup("feature"), {"max_depth": 1}, "sound"),
        (gb.RandomGroups(2, "root"), {}, "sound"),
        (gb.RandomByNode(2), {"max_depth": 1}, "sound"),
        (gb.RandomByNode(2), {}, "heuristic"),
        (gb.RandomByLevel(2), {"max_depth": 1}, "sound"),
        (gb.RandomByLevel(2), {"growth": "oblivious"}, "heuristic"),
        (gb.CyclicGroups(), {"max_depth": 1}, "heuristic"),
        (gb.WeightedGroups(1, [1, 2, 3, 4, 5]), {}, "heuristic"),
    ],
)
def test_verdicts(learners: Any, params: dict[str, Any], kind: str) -> None:
    for step in ("constant", "line_search"):
        model = gb.GradientBoostingClassifier(learners=learners, step=step, learning_rate=0.5, **params)
        assert model.check(X, Y).kind == kind


@pytest.mark.parametrize(
    ("params", "kind", "missing"),
    [
        ({"loss": gb.losses.Logistic(0.01)}, "linear rate", ""),
        ({}, "monotone descent", "neither strongly convex nor of bounded level sets"),
        ({"loss": gb.losses.Logistic(0.01), "max_depth": 3}, "monotone descent", "grown greedily"),
        ({"loss": gb.losses.Logistic(0.01), "reg_lambda": 1.0}, "monotone descent", "reg_lambda"),
        ({"loss": gb.losses.Logistic(0.01), "sampling": 0.5}, "monotone descent", "sample of rows"),
        ({"loss": gb.losses.Logistic(0.01), "learners": gb.CyclicGroups()}, "monotone descent", "no rate is known"),
        ({"learning_rate": 2.5}, "none", "above 2"),
        ({"step": "newton"}, "none", "Newton steps"),
        ({"loss": "exponential", "step": "line_search"}, "monotone descent", "no finite smoothness"),
        ({"loss": gb.losses.Logistic(0.01), "step": "line_search"}, "linear rate", ""),
        ({"langevin": gb.Langevin(), "step": "gradient"}, "stationary law", ""),
        (
            {"langevin": gb.Langevin(), "early_stopping_rounds": 2, "validation_fraction": 0.2},
            "none",
            "early stopping picks the best iterate",
        ),
    ],
)
def test_guarantees(params: dict[str, Any], kind: str, missing: str) -> None:
    plain = {"max_depth": 1, "step": "constant", "learning_rate": 1.0, "reg_lambda": 0.0, "n_estimators": 3}
    plain |= {"min_child_weight": 0.0}
    found = gb.GradientBoostingClassifier(**{**plain, **params}).fit(X, Y).guarantee_
    assert found.kind == kind
    assert missing in " ".join(found.missing)
    if kind != "linear rate":
        with pytest.raises(InputError, match="guarantee: there is no rate"):
            found.bound(5, 1.0, xi=0.1)
    else:
        with pytest.raises(InputError, match="xi: the bound of a linear rate needs it"):
            found.bound(5, 1.0)
        mu, sigma = 0.01, 0.26
        assert found.bound(5, 2.0, xi=0.1) == pytest.approx(2.0 * (1.0 - mu / sigma * 0.1) ** 5)


def test_a_rate_of_the_huber_loss() -> None:
    model = gb.GradientBoostingRegressor(
        loss=gb.losses.Huber(0.5), max_depth=1, step="constant", learning_rate=1.0, reg_lambda=0.0, n_estimators=3
    )
    found = model.fit(X, X[:, 0]).guarantee_
    assert found.kind == "sublinear rate"
    assert found.bound(10, 3.0, dist=2.0) == pytest.approx(1.0 / (1.0 / 3.0 + 10 / 8.0))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: theory.rank_chances(5, 6), "t: must be from 1 to the number of learners or groups, 5; got 6."),
        (lambda: theory.minimal_cosine_angle(np.zeros((3, 2))), "B: column 0 is 0 everywhere"),
        (lambda: theory.minimal_cosine_angle(np.ones(3)), "B: a matrix of finite numbers, (n, learners), is needed"),
        (lambda: theory.minimal_cosine_angle(np.ones((10_000, 1001))), "B: the minimum is looked for among at most"),
        (
            lambda: theory.SelectionNorm(1, [0, 1])(np.ones(3)),
            "groups: a label for each learner is needed; got 2 for 3",
        ),
        (lambda: theory.linear_factor(1.0, 1.0, 0.1, nu=2.0), "nu: a step goes down for sure only between 0 and 2"),
    ],
)
def test_theory(call: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert text in str(caught.value)
