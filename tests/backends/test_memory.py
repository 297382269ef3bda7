"""What a training takes on a GPU, told before: the very bytes that the emulated one is asked for."""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulator import emulated_gpu
from support.examples import daily

import gpuboost as gb
from gpuboost._imports.collection import no_collection
from gpuboost.api.memory import SM_COUNT
from gpuboost.backends.cuda.inputs.target_groups import CudaGroups


def taken(model, x, y, **given):
    """Bytes of the emulated device that are in use between two rounds of a fit; the most of all rounds.

    After the fit none may be, without a collection of cycles.
    """
    most = 0
    with emulated_gpu() as gpu, no_collection():

        def look(record):
            nonlocal most
            most = max(most, gpu.used())

        model.set_params(device="cuda", callbacks=[look]).fit(x, y, **given)
        assert gpu.used() == 0
    return most


CASES = {
    "plain": ({}, 900, 5, None),
    "wide and deep": ({"max_depth": 8}, 700, 70, None),
    "drawn rows": ({"sampling": 0.3}, 3_000, 9, None),
    "rows drawn by importance": ({"sampling": gb.MVS(0.3)}, 3_000, 9, None),
    "any number of rows": ({"sampling": gb.ImportanceSampling(rho=0.5)}, 3_000, 9, None),
    "rows drawn by rank": ({"sampling": gb.GOSS(0.2, 0.1)}, 3_000, 9, 3),
    "rows drawn by losses": ({"sampling": gb.ImportanceSampling(0.3, score="loss")}, 3_000, 9, None),
    "controlled by node": ({"sampling": gb.ImportanceSampling(0.3, variance_control="node", lag=2)}, 3_000, 9, None),
    "controlled by leaf": ({"sampling": gb.smart_second_order(0.3, variance_control="previous_leaf")}, 3_000, 9, 3),
    "drawn features": ({"learners": 4}, 700, 40, None),
    "leaf-wise": ({"growth": "leafwise", "max_leaves": 20, "max_depth": None}, 700, 5, None),
    "oblivious": ({"growth": "oblivious", "max_depth": 4}, 700, 5, None),
    "counted leaves": ({"min_samples_leaf": 5, "max_bins": 40}, 700, 5, None),
    "quantiles": ({"loss": "quantile"}, 700, 5, None),
    "features drawn by node": ({"learners": gb.RandomByNode(4)}, 700, 40, None),
    "stumps of one value": ({"growth": "sign_stump"}, 700, 5, None),
    "lengths of trees": ({"step": "line_search", "loss": "huber"}, 700, 5, None),
    "lengths of leaves": ({"step": gb.LineSearchStep("leaf")}, 700, 5, 3),
    "lengths for quantiles": ({"step": "line_search", "loss": "quantile"}, 700, 5, None),
    "splines and lines": ({"base_learner": [gb.learners.Spline(), gb.learners.Linear()]}, 700, 5, None),
    "drawn splines of drawn rows": (
        {"base_learner": gb.learners.Spline(), "sampling": 0.3, "learners": 2},
        3_000,
        9,
        3,
    ),
    "surfaces": ({"base_learner": gb.learners.TensorSpline(((0, 1),), cells=12)}, 2_000, 5, None),
    "trees among lines": ({"base_learner": [gb.learners.Linear(), gb.learners.Tree(5)]}, 2_000, 5, None),
    "trees by themselves": ({"base_learner": gb.learners.Tree(3), "sampling": 0.5}, 2_000, 5, 3),
    "three classes": ({}, 700, 5, 3),
    "a ranking": ({"loss": "lambdamart"}, 700, 5, None),
    "a ranking by all pairs": ({"loss": "pairwise_logistic", "sampling": 0.5}, 700, 5, None),
}


SIMULATED = gb.SimulatedWorkers(3, build_time=1.0, server_time=0.0)
IN_TURN = {"staleness": "block", "max_staleness": 1}  # each of two workers builds
CASES |= {
    "two workers": ({"execution": gb.Asynchronous(2, **IN_TURN)}, 900, 40, None),
    "two workers, drawn rows": ({"execution": gb.Asynchronous(2, **IN_TURN), "sampling": gb.MVS(0.3)}, 3_000, 9, 3),
    "two workers, deep": ({"execution": gb.Asynchronous(2, **IN_TURN), "max_depth": 8}, 700, 70, None),
    "simulated workers": ({"execution": SIMULATED, "sampling": 0.3}, 3_000, 9, None),
}


OTHERS = (
    "counted leaves",
    "two workers",
    "three classes",
    "surfaces",
    "trees among lines",
    "drawn features",
    "rows drawn by importance",
    "wide and deep",
    "rows drawn by rank",
    "lengths of leaves",
    "features drawn by node",
    "controlled by leaf",
    "two workers, deep",
    "two workers, drawn rows",
    "any number of rows",
    "rows drawn by losses",
    "lengths for quantiles",
    "drawn splines of drawn rows",
    "trees by themselves",
    "a ranking by all pairs",
    "lengths of trees",
    "stumps of one value",
    "splines and lines",
    "oblivious",
)  # whose arrays, each by itself, other cases ask for too; the last four have kernels of their own to compile


@pytest.mark.filterwarnings("ignore:variance_control")
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in OTHERS else case for case in CASES]
)
def test_it_is_what_the_device_is_asked_for(rng, case):
    params, n, d, n_classes = CASES[case]
    x = np.stack([rng.permutation(n) for _ in range(d)], axis=1) / n  # every feature has as many bins as there may be
    y = x[:, 0] + x[:, 1] ** 2
    kind = gb.GradientBoostingRegressor
    if n_classes is not None:
        y, kind = np.digitize(y, [0.5, 1.0]), gb.GradientBoostingClassifier
    given = {}
    if "ranking" in case:
        y, kind, given = np.digitize(y, [0.5, 1.0]), gb.GradientBoostingRanker, {"group": np.repeat(np.arange(7), 100)}
    model = kind(n_estimators=4, random_state=0, **params)
    with emulated_gpu():
        told = gb.estimate_memory(n, d, model, n_classes=n_classes)
    found = taken(model, x, y, **given)
    assert found <= told.total
    assert found >= 0.999 * told.total - 4_096  # what is needed for moments only is not seen between rounds


def test_a_dataset_keeps_its_bins_on_the_device_once(rng):
    """And fits of it nothing else."""
    data = gb.Dataset(np.stack([rng.permutation(700) / 700 for _ in range(5)], axis=1), np.arange(700.0))
    used = []
    with emulated_gpu() as gpu, no_collection():
        for _ in range(2):
            gb.GradientBoostingRegressor(n_estimators=4, device="cuda").fit(data)
            used.append(gpu.used())
    assert used == 2 * [700 * (8 + 5)]  # by row, in tiles of eight features, and by column


def test_the_memory_of_an_interrupted_fit_can_be_had_again(rng):
    """Its frames and its error refer to each other: a fit without room looks for such cycles before it is refused."""
    x, y = rng.permutation(3_500).reshape(700, 5) / 3_500, np.arange(700.0)

    def interrupt(record):
        if record.round == 2:
            raise KeyboardInterrupt

    model = gb.GradientBoostingRegressor(n_estimators=4, device="cuda")
    with emulated_gpu():
        told = gb.estimate_memory(700, 5, model).total
    with emulated_gpu(capacity=told * 5 // 4) as gpu, no_collection():
        with pytest.raises(KeyboardInterrupt):
            gb.GradientBoostingRegressor(n_estimators=4, device="cuda", callbacks=[interrupt]).fit(x, y)
        assert gpu.used() > told // 2
        assert model.fit(x, y).fit_report_.device == "cuda:0"


JUDGED = {
    "means": (gb.GradientBoostingRegressor, {"eval_metric": ["rmse", "r2"]}, None),
    "two classes": (gb.GradientBoostingClassifier, {"eval_metric": ["auc", "average_precision", "error", "f1"]}, 2),
    "three classes": (gb.GradientBoostingClassifier, {"eval_metric": ["auc_ovr", "mcc", "top_k_accuracy@2"]}, 3),
    "two labels": (gb.GradientBoostingClassifier, {"eval_metric": ["logloss", "auc"]}, None),
    "two queries": (gb.GradientBoostingRanker, {"eval_metric": ["ndcg", "map"], "eval_at": [5, 10]}, None),
}


@pytest.mark.parametrize("case", daily(sorted(JUDGED, key=lambda case: case in ("three classes", "two labels")), 3))
def test_weights_eval_sets_and_their_metrics_count(rng, case):
    kind, params, classes = JUDGED[case]
    n = 700
    x, weight = rng.permuted(np.tile(np.arange(n * 1.0), (4, 1)), axis=1).T, rng.random(n)
    y = x[:, 0] if classes is None else np.digitize(x[:, 0], n * np.arange(1, classes) / classes)
    lists, known = (), {} if classes is None else {"n_classes": classes}
    if case == "two labels":
        y, known = (x[:, :2] > n / 2) * 1, {"n_outputs": 2, "loss": "logistic"}
    if case == "two queries":
        y, lists, known, weight = np.arange(n) % 2, (np.arange(n) // 350,), {"n_queries": 2}, np.repeat([0.5, 1.5], 350)
    model = kind(n_estimators=3, **params)
    with emulated_gpu():
        told = gb.estimate_memory(n, 4, model, weighted=True, eval_rows=n, eval_weighted=True, **known)
        plain = gb.estimate_memory(n, 4, model, **known)
    assert told.breakdown["eval sets"] >= n * (4 + 4 + 8)
    assert told.breakdown["metrics"] >= n * (8 + (8 if case != "two queries" else 0))
    assert told.breakdown["labels"] == plain.breakdown["labels"] + 8 * n
    held_out = (x, y, *lists, weight)
    group = {"group": lists[0]} if lists else {}
    found = taken(model, x, y, sample_weight=weight, eval_set=held_out, **group)
    assert 0.99 * told.total - 8_192 <= found <= told.total


OF_CATEGORIES = {
    "statistics": ({"categorical_encoding": gb.OrderedTargetStatistics(2, counts=False)}, [300, 40]),
    "sets": ({}, [200, 40]),
    "a feature each": ({"categorical_encoding": "one_hot"}, [20]),
}


@pytest.mark.parametrize("case", OF_CATEGORIES)
def test_categories_count(rng, case):
    params, sizes = OF_CATEGORIES[case]
    n = 3_000
    x = np.column_stack([*(rng.permutation(n) % size for size in sizes), rng.permutation(n) / n])
    model = gb.GradientBoostingRegressor(
        n_estimators=4, max_depth=3, random_state=0, categorical_features=[*range(len(sizes))], **params
    )
    with emulated_gpu():
        told = gb.estimate_memory(n, len(sizes) + 1, model, categories=sizes)
    assert not told.breakdown["categories"]
    assert 0.99 * told.total - 4_096 <= taken(model, x, x[:, -1] + 0.1 * rng.normal(size=n)) <= told.total


def test_statistics_may_need_more_than_the_training(rng, monkeypatch):
    n, used = 6_000, []
    model = gb.GradientBoostingRegressor(
        n_estimators=2, max_depth=1, max_bins=8, random_state=0, categorical_features=[0],
        categorical_encoding=gb.OrderedTargetStatistics(1),
    )  # fmt: skip
    with emulated_gpu() as gpu:
        told = gb.estimate_memory(n, 2, model, categories=[n])
        answer = CudaGroups._answer
        monkeypatch.setattr(CudaGroups, "_answer", lambda *given: (used.append(gpu.used()), answer(*given))[1])
        model.set_params(device="cuda").fit(np.column_stack([np.arange(n), rng.normal(size=n)]), rng.normal(size=n))
    assert told.breakdown["categories"] == told.total > n * (48 + 4 + 16 + 8 + 8)
    assert len(used) == 2  # means, and numbers of rows
    assert 0.99 * told.total <= max(used) <= told.total


def test_it_grows_with_the_rows_as_it_says():
    small, large = (gb.estimate_memory(n, 28, max_depth=8) for n in (1_000_000, 11_000_000))
    assert large.total - small.total == pytest.approx(10_000_000 * large.bytes_per_row, rel=0.01)
    assert large.breakdown["rows"] == 32 * 11_000_000
    assert large.breakdown["columns"] == 28 * 11_000_000
    assert 100 <= large.bytes_per_row <= 120
    shown = str(large)
    assert shown.startswith("11,000,000 rows x 28 features: 1.1 GiB on the device\n")
    assert "335.7 MiB  bins, by row" in shown
    assert shown.endswith(f"{large.bytes_per_row:.1f} bytes a row")


def test_parameters_take_precedence_over_the_estimators():
    model = gb.GradientBoostingClassifier(max_depth=3)
    assert gb.estimate_memory(10_000, 9, model, max_depth=8).total > gb.estimate_memory(10_000, 9, model).total
    assert gb.estimate_memory(10_000, 9, n_classes=2).total == gb.estimate_memory(10_000, 9).total
    with pytest.raises(ValueError, match="n_outputs: must be an integer from 2 to 65535; got 2147483648"):
        gb.estimate_memory(10_000, 9, n_outputs=2**31)
    several = gb.estimate_memory(10_000, 9, n_outputs=3)
    assert several.breakdown["labels"] == 3 * gb.estimate_memory(10_000, 9).breakdown["labels"]
    shared = gb.estimate_memory(10_000, 9, n_outputs=3, multi_output="one_tree")
    assert shared.breakdown["lists"] == 10_000 * (4 * 8 + 2 * 4)  # pairs of four outputs, and two lists of rows
    assert shared.breakdown["histograms"] == 64 * 9 * 256 * (3 * 2 * 8 + 4)
    assert gb.estimate_memory(10_000, 9, max_bins=15).total < gb.estimate_memory(10_000, 9).total
    assert SM_COUNT == 132


@pytest.mark.parametrize(
    ("arguments", "params", "error", "words"),
    [
        ((0, 3), {}, gb.RecipeError, "n_rows"),
        ((10, 2.5), {}, gb.RecipeError, "n_features"),
        ((10, 3), {"n_classes": 1}, gb.RecipeError, "n_classes"),
        ((10, 3), {"eval_rows": -1}, gb.RecipeError, "eval_rows"),
        ((10, 3), {"categories": [0]}, gb.RecipeError, "categories"),
        ((10, 3), {"categories": [9] * 4}, gb.RecipeError, "categories: must be a list of at most 3 whole numbers"),
        ((10, 3), {"depth": 3}, gb.RecipeError, "depth: GradientBoostingRegressor has no such parameter"),
        ((10, 3), {"max_bins": 65_536}, gb.InputError, "max_bins"),
        ((10, 3), {"max_depth": -1}, gb.RecipeError, "max_depth"),
        ((10, 3, gb.GradientBoostingRanker()), {"n_queries": 0}, gb.RecipeError, "n_queries"),
    ],
)
def test_what_is_refused(arguments, params, error, words):
    with pytest.raises(error, match=words):
        gb.estimate_memory(*arguments, **params)


@pytest.mark.parametrize(
    "params",
    [
        {"feature_costs": gb.FeatureCosts(1.0)},
        {"forced_splits": {"feature": 0, "threshold": 0.0}},
        {"learners": gb.SemiGreedyGroups(), "max_depth": 1},
    ],
    ids=lambda params: next(iter(params)),
)
def test_what_a_gpu_has_no_kernels_for_is_refused_with_the_reason_of_a_fit(params):
    assert_refused_as_by_a_fit(params)


@pytest.mark.slow
def test_so_are_workers_of_ray():
    pytest.importorskip("ray")
    assert_refused_as_by_a_fit({"execution": gb.Asynchronous(2, engine="ray")})


def assert_refused_as_by_a_fit(params):
    with pytest.raises(gb.DeviceError) as of_a_fit:
        gb.GradientBoostingRegressor(device="cuda", **params).fit([[0.0], [1.0]], [0.0, 1.0])
    reason = str(of_a_fit.value).partition(" on the CPU;")[0]
    assert reason.startswith("device: ")
    with pytest.raises(gb.DeviceError, match=f"^{re.escape(reason)} on the CPU, and no memory of a GPU is taken"):
        gb.estimate_memory(10, 3, **params)


def test_costs_are_not_of_sharded_gpus_either():
    with pytest.raises(gb.DeviceError, match=r"^device: trees with feature costs are grown on the CPU"):
        gb.estimate_memory(10, 3, feature_costs=gb.FeatureCosts(1.0), execution=gb.DataParallel(2))


def test_a_search_along_a_spline_has_rows_of_its_own(rng):
    """The direction, 8 bytes a row, and the row that each of its numbers is of; between rounds they are gone."""
    given = {"loss": "huber", "base_learner": gb.learners.Spline()}
    with emulated_gpu():
        plain = gb.estimate_memory(2_000, 3, **given, step="constant")
        told = gb.estimate_memory(2_000, 3, **given, step="line_search")
    assert told.breakdown["lists"] - plain.breakdown["lists"] >= 12 * 2_000
    x = rng.normal(size=(2_000, 3))
    model = gb.GradientBoostingRegressor(n_estimators=3, step="line_search", **given)
    assert taken(model, x, x[:, 0]) <= told.total
