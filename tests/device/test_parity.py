"""The GPU's models are the CPU's, byte for byte: at size, in odd shapes, run after run, on any grid."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb

from .conftest import rows

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("gpu")]


def saved(model: Any, folder: Path, *data: Any, **more: Any) -> bytes:
    model.fit(*data, **more).save_model(folder / "model.json")
    return (folder / "model.json").read_bytes()


def check(folder: Path, make: Any, *data: Any, **more: Any) -> Any:
    """Same file, same predictions. Returns the GPU's model."""
    host, device = make(device="cpu"), make(device="cuda")
    assert saved(device, folder, *data, **more) == saved(host, folder, *data, **more)
    assert device.predict(data[0]).tobytes() == host.predict(data[0]).tobytes()
    return device


AT_SIZE = {
    "regression, depth 6": (gb.GradientBoostingRegressor, {"n_estimators": 20}),
    "two classes, depth 8": (gb.GradientBoostingClassifier, {"n_estimators": 20, "max_depth": 8}),
    "half of the rows": (gb.GradientBoostingRegressor, {"n_estimators": 20, "sampling": 0.5}),
    "a tenth of the rows, a third of the features": (
        gb.GradientBoostingRegressor,
        {"n_estimators": 20, "sampling": 0.1, "learners": 0.33},
    ),
    "rows by importance": (gb.GradientBoostingClassifier, {"n_estimators": 20, "sampling": gb.MVS(0.1)}),
    "rows by importance, rho given": (
        gb.GradientBoostingClassifier,
        {"n_estimators": 10, "sampling": gb.ImportanceSampling(rho=0.5, score="loss", variance_control="none")},
    ),
    "rows by rank": (gb.GradientBoostingRegressor, {"n_estimators": 20, "sampling": gb.GOSS(0.1, 0.1)}),
    "the heaviest rows": (gb.GradientBoostingClassifier, {"n_estimators": 10, "sampling": gb.WeightTrimming(0.8)}),
    "control variates of nodes": (
        gb.GradientBoostingClassifier,
        {"n_estimators": 10, "sampling": gb.smart_second_order(0.1)},
    ),
    "control variates of the last leaves": (
        gb.GradientBoostingClassifier,
        {"n_estimators": 10, "sampling": gb.smart_second_order(0.1, variance_control="previous_leaf")},
    ),
    "leaf-wise": (
        gb.GradientBoostingRegressor,
        {"growth": "leafwise", "max_leaves": 63, "max_depth": None, "n_estimators": 5},
    ),
    "oblivious": (gb.GradientBoostingRegressor, {"growth": "oblivious", "n_estimators": 10}),
    "constraints": (gb.GradientBoostingRegressor, {"monotonic_cst": {0: 1, 1: -1}, "n_estimators": 10}),
    "constraints, leaf-wise": (
        gb.GradientBoostingRegressor,
        {"monotonic_cst": {0: 1}, "growth": "leafwise", "max_leaves": 31, "max_depth": None, "n_estimators": 5},
    ),
    "medians": (gb.GradientBoostingRegressor, {"loss": "absolute_error", "n_estimators": 5}),
    "features drawn for every node": (
        gb.GradientBoostingRegressor,
        {"learners": gb.RandomByNode(5), "n_estimators": 10},
    ),
    "features drawn for every node, leaf-wise": (
        gb.GradientBoostingRegressor,
        {"learners": gb.RandomByNode(5), "growth": "leafwise", "max_leaves": 63, "max_depth": None, "n_estimators": 5},
    ),
    "stumps of one value": (gb.GradientBoostingClassifier, {"growth": "sign_stump", "n_estimators": 20}),
    "as far as pays": (gb.GradientBoostingClassifier, {"step": "line_search", "n_estimators": 5}),
    "as far as pays in each leaf": (
        gb.GradientBoostingClassifier,
        {"step": gb.LineSearchStep("leaf"), "max_depth": 9, "n_estimators": 5},
    ),
    "medians along a tree": (
        gb.GradientBoostingRegressor,
        {"loss": "absolute_error", "step": "line_search", "n_estimators": 5},
    ),
    "leaves of 100 rows": (gb.GradientBoostingRegressor, {"min_samples_leaf": 100, "n_estimators": 10}),
    "splines, lines and a surface": (
        gb.GradientBoostingRegressor,
        {
            "base_learner": [gb.learners.Spline(), gb.learners.Linear(), gb.learners.TensorSpline(((0, 1),))],
            "n_estimators": 20,
        },
    ),
    "trees among splines": (
        gb.GradientBoostingRegressor,
        {"base_learner": [gb.learners.Spline(), gb.learners.Tree(4), gb.learners.Tree(2)], "n_estimators": 20},
    ),
    "splines of a tenth of the rows": (
        gb.GradientBoostingClassifier,
        {"base_learner": gb.learners.Spline(), "sampling": gb.MVS(0.1), "learners": 0.3, "n_estimators": 20},
    ),
    "splines, as far as pays": (
        gb.GradientBoostingRegressor,
        {"base_learner": gb.learners.Spline(), "loss": "absolute_error", "n_estimators": 5},
    ),
    "noise": (
        gb.GradientBoostingRegressor,
        {"langevin": gb.Langevin(inverse_temperature=1e6, shrinkage=0.01), "n_estimators": 10},
    ),
}


@pytest.mark.parametrize("loss", ["lambdamart", "pairwise_logistic"])
def test_rankings(tmp_path: Path, loss: str) -> None:
    """Short queries, queries of one document, and one of ten thousand."""
    x, y = rows(200_000, 20)
    n, rng = len(y), np.random.default_rng(5)
    group = np.sort(np.where(np.arange(n) < min(10_000, n // 3), -1, rng.integers(0, n // 40, n)))
    labels = np.digitize(y, np.quantile(y, [0.5, 0.7, 0.85, 0.95]))
    one = gb.GradientBoostingRanker
    check(tmp_path, lambda **given: one(loss, n_estimators=5, **given), x, labels, group=group)


@pytest.mark.filterwarnings("ignore:variance_control")
@pytest.mark.parametrize("case", AT_SIZE)
def test_a_million_rows(tmp_path: Path, case: str) -> None:
    kind, params = AT_SIZE[case]
    x, y = rows(1_000_000, 28)
    target = y > 0 if kind is gb.GradientBoostingClassifier else y
    check(tmp_path, lambda **given: kind(random_state=3, **params, **given), x, target)


SMALL = {
    "plain": {},
    "half of the rows": {"sampling": 0.5},
    "rows by importance": {"sampling": gb.MVS(0.2)},
    "features drawn for every tree": {"learners": 0.5},
    "features drawn for every node": {"learners": gb.RandomByNode(5)},
    "depth 8, few leaves": {"max_depth": 8, "max_leaves": 20, "max_bins": 63},
}


@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("n", [300, 10_000])
def test_trees_grown_by_clusters(tmp_path: Path, gpu: Any, case: str, n: int) -> None:
    x, y = rows(n, 20, seed=2)
    gpu.use_clusters(True)
    try:
        if not gpu.clusters:
            pytest.skip("this device has no clusters of blocks")
        params = {"n_estimators": 50, "random_state": 3, **SMALL[case]}
        check(tmp_path, lambda **given: gb.GradientBoostingClassifier(**params, **given), x, y > 0)
    finally:
        gpu.use_clusters(False)


def test_three_classes_with_weights_and_an_eval_set(tmp_path: Path) -> None:
    x, y = rows(200_000, 40, seed=1)
    labels, weight = np.digitize(y, [-0.7, 0.7]), np.random.default_rng(2).random(len(y))
    test = x[::7], labels[::7]

    def make(**given: Any) -> Any:
        return gb.GradientBoostingClassifier(n_estimators=15, early_stopping_rounds=5, **given)

    host, device = make(device="cpu"), make(device="cuda")
    more = {"sample_weight": weight, "eval_set": test}
    assert saved(device, tmp_path, x, labels, **more) == saved(host, tmp_path, x, labels, **more)
    assert device.evals_result_ == host.evals_result_
    assert device.predict_proba(x).tobytes() == host.predict_proba(x).tobytes()


def test_predictions_of_rows_on_the_device(gpu: Any) -> None:
    x, y = rows(200_000, 12, seed=6)
    there, amounts = gpu.upload(x), np.exp(np.clip(y, -5.0, 5.0))
    one, several = np.digitize(y, [-0.7, 0.7]), np.column_stack([y > 0.0, y > 1.0]).astype(np.int64)
    of_classes = ("predict", "predict_proba", "decision_function")
    for kind, params, target, verbs in (
        (gb.GradientBoostingClassifier, {}, y > 0.0, of_classes),
        (gb.GradientBoostingClassifier, {"loss": "exponential"}, (y > 0.0) * 2.0, of_classes),
        (gb.GradientBoostingClassifier, {}, one, of_classes),
        (gb.GradientBoostingClassifier, {}, several, of_classes),
        (gb.GradientBoostingRegressor, {"loss": "poisson"}, amounts, ("predict",)),
        (gb.GradientBoostingRegressor, {}, np.column_stack([y, -y]), ("predict",)),
    ):
        model = kind(n_estimators=10, learning_rate=0.5, device="cuda", **params).fit(x, target)
        found = {verb: getattr(model, verb)(there).get() for verb in verbs}
        model.set_params(device="cpu")
        for verb, answer in found.items():
            expected = getattr(model, verb)(x)
            assert (answer.dtype, answer.tobytes()) == (expected.dtype, expected.tobytes()), (params, verb)


SHAPES = [
    (2, 1),
    (3, 33),
    (31, 5),
    (33, 4),
    (255, 17),
    (4_096, 3),
    (4_097, 8),
    (65_535, 9),
    (65_536, 31),
    (65_537, 32),
    (131_071, 33),
    (9_999, 300),
]


@pytest.mark.parametrize("depth", [1, 7])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_odd_shapes(tmp_path: Path, n: int, d: int, depth: int) -> None:
    x, y = rows(n, d, seed=n)
    check(tmp_path, lambda **given: gb.GradientBoostingRegressor(n_estimators=4, max_depth=depth, **given), x, y)


@pytest.mark.filterwarnings("ignore:y. it varies by")  # of the tiny ones
def test_gradients_of_any_size(tmp_path: Path) -> None:
    """Cauchy noise: integers need more than 16 bits. Tiny targets: float32 numbers below the smallest normal one."""
    x, y = rows(100_000, 10)
    wild = y + np.random.default_rng(5).standard_cauchy(len(y)) * 1e4
    for target in (wild, y * 1e-40, np.where(np.arange(len(y)) == 7, 1e25, y)):
        check(tmp_path, lambda **given: gb.GradientBoostingRegressor(n_estimators=5, **given), x, target)


def test_two_runs_and_other_grids(tmp_path: Path, gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(300_000, 28, seed=4)

    def run() -> bytes:
        return saved(
            gb.GradientBoostingRegressor(n_estimators=10, sampling=0.7, random_state=1, device="cuda"), tmp_path, x, y
        )

    first = run()
    assert run() == first
    for multiprocessors in (1, 7, 3 * gpu.sm_count):
        monkeypatch.setattr(gpu, "sm_count", multiprocessors)
        assert run() == first, multiprocessors


def test_categories_and_sparse_rows(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    from scipy import sparse

    x, y = rows(50_000, 6)
    frame = pd.DataFrame(x)
    frame.columns = list("abcdef")
    rng = np.random.default_rng(8)
    frame["town"] = pd.Categorical(rng.integers(0, 12, len(frame)).astype(str))
    frame["street"] = pd.Categorical(rng.integers(0, 900, len(frame)).astype(str))
    check(
        tmp_path,
        lambda **given: gb.GradientBoostingRegressor(n_estimators=8, random_state=0, **given),  # of permutations
        frame,
        y + (frame["town"] == "3"),
    )
    effects = [gb.learners.CategoricalRidge(), gb.learners.Spline()]
    check(
        tmp_path, lambda **given: gb.GradientBoostingRegressor(n_estimators=8, base_learner=effects, **given), frame, y
    )
    thin = sparse.random(20_000 if len(y) > 1_000 else 500, 200, 0.02, format="csr", random_state=1)
    target = np.asarray(thin[:, :20].sum(axis=1)).ravel()
    check(tmp_path, lambda **given: gb.GradientBoostingRegressor(n_estimators=8, **given), thin, target)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_and_interactions(n_classes: int) -> None:
    x, y = rows(20_000, 12)
    x[::7, 3] = np.nan
    x[:, 4] = np.abs(x[:, 4] * 3).astype(int)
    labels = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
    make = gb.GradientBoostingClassifier(n_estimators=10, max_depth=8, categorical_features=[4], random_state=0)
    host = make.fit(x, labels).set_params(device="cpu")
    found = {verb: getattr(host, verb)(x) for verb in ("predict_contributions", "predict_interactions")}
    host.set_params(device="cuda")
    for verb, expected in found.items():
        assert getattr(host, verb)(x).tobytes() == expected.tobytes()


def test_metrics_early_stopping_and_several_rounds_in_a_graph(tmp_path: Path) -> None:
    x, y = rows(400_000, 8)
    weight = np.random.default_rng(1).gamma(1.0, size=len(x))
    split, classes = len(x) * 2 // 3, (y > 0.5).astype(np.int64)
    watched: dict[str, Any] = {
        "n_estimators": 160, "max_depth": 4, "learning_rate": 0.3, "early_stopping_rounds": 10,
        "eval_metric": ["auc", "average_precision", "error", "logloss"],
    }  # fmt: skip

    def fitted(name: str) -> tuple[bytes, Any, int]:
        model = gb.GradientBoostingClassifier(device=name, **watched)
        held_out = [(x[split:], classes[split:], weight[split:]), (x[split:], classes[split:])]
        file = saved(model, tmp_path, x[:split], classes[:split], eval_set=held_out)
        return file, model.evals_result_, model.fit_report_.rounds

    assert fitted("cuda") == fitted("cpu")
    watched |= {"n_estimators": 12, "eval_metric": ["mcc", "auc_ovr", "f1_macro", "brier"]}
    classes = np.digitize(y, [-0.5, 0.5])
    assert fitted("cuda") == fitted("cpu")
    watched["eval_metric"], classes = ["f1", "auc", "logloss"], np.column_stack([y > 0.5, y > 0.0]).astype(np.int64)
    assert fitted("cuda") == fitted("cpu")
    make = partial(gb.GradientBoostingRegressor, n_estimators=200, max_depth=3)  # with graphs of several rounds
    check(tmp_path, make, x[:split], y[:split])


def test_metrics_of_rankings(tmp_path: Path) -> None:
    x, y = rows(200_000, 8, 1)
    labels, lengths = np.clip(np.round(y), 0, 4), [1, 700, *(20 + np.arange(len(x) // 40) % 40)]
    count = int(np.searchsorted(np.cumsum(lengths), len(x), side="right"))
    n, group = int(np.sum(lengths[:count])), np.array(lengths[:count])
    names = ["ndcg@10", "ndcg", "map", "mrr", "precision@5", "recall@5:skip"]

    def history(name: str) -> Any:
        model = gb.GradientBoostingRanker(n_estimators=10, max_depth=4, device=name, eval_metric=names, eval_at=None)
        return model.fit(x[:n], labels[:n], group=group, eval_set=[(x[:n], labels[:n], group)]).evals_result_

    assert history("cuda") == history("cpu")
