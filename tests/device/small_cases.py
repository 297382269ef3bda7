"""Every kernel on little data, for compute-sanitizer to watch: see test_sanitizer.py.

As a program: the parts of the numbers that it is given, or all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu

CASES = (
    {},
    {"sampling": 0.5, "learners": 3},
    {"sampling": gb.MVS(0.4)},
    {"sampling": gb.GOSS(0.2, 0.2)},
    {"sampling": gb.ImportanceSampling(rho=0.7, score="loss"), "loss": "huber"},
    {"sampling": gb.ImportanceSampling(0.4, variance_control="node")},
    {"sampling": gb.ImportanceSampling(0.4, variance_control="previous_leaf")},
    {"growth": "leafwise", "max_leaves": 9},
    {"growth": "oblivious"},
    {"monotonic_cst": {0: 1, 2: -1}},
    {"monotonic_cst": {0: 1, 2: -1}, "growth": "leafwise", "max_leaves": 9, "loss": "absolute_error"},
    {"loss": "absolute_error"},
    {"min_samples_leaf": 5},
    {"learners": gb.RandomByNode(2)},
    {"growth": "sign_stump", "learners": 3},
    {"step": "line_search", "loss": "huber"},
    {"step": gb.LineSearchStep("leaf"), "loss": "huber"},
    {"step": "line_search", "loss": "absolute_error"},
    {"base_learner": [gb.learners.Spline(), gb.learners.TensorSpline(((0, 1),), cells=64)], "sampling": 0.5},
    {"base_learner": [gb.learners.Linear(), gb.learners.Tree(3)], "loss": "absolute_error"},
    {"langevin": gb.Langevin(inverse_temperature=1e3, shrinkage=0.01)},
)


FEATURES = (3, 37)
PARTS = len(FEATURES) * (len(CASES) + 1)


def main(parts: Iterable[int] = range(PARTS)) -> None:
    """The parts of those numbers: of either number of features each of CASES, and what takes another estimator."""
    for part in parts:
        which, case = divmod(part, len(CASES) + 1)
        rng = np.random.default_rng(0)
        x = rng.normal(size=(700, FEATURES[which])).astype(np.float32)
        y = x[:, 0] + x[:, 1] * x[:, 2]
        x[rng.random(x.shape) < 0.05] = np.nan
        if case == len(CASES):
            _other_estimators(x, y)
            continue
        params = CASES[case] if "base_learner" in CASES[case] else {"max_depth": 4, **CASES[case]}
        model = gb.GradientBoostingRegressor(n_estimators=4, device="cuda", random_state=0, **params)
        model.fit(x, y, sample_weight=rng.integers(1, 4, 700), eval_set=(x[:50], y[:50]))
        assert np.isfinite(model.predict(x)).all(), params
        if "base_learner" not in params:
            assert (model.apply(x) >= 0).all(), params


def _other_estimators(x: np.ndarray, y: np.ndarray) -> None:
    weight, there = np.linspace(0.5, 1.5, len(x)), open_gpu("cuda:0").upload(x)
    for labels, judged in (
        (np.digitize(y, [-1, 1]), ["mcc", "auc_ovr", "brier", "error"]),
        ((y > 0) * 1, ["auc", "average_precision", "f1"]),
    ):
        model = gb.GradientBoostingClassifier(n_estimators=4, device="cuda", eval_metric=judged)
        model.fit(x, labels, eval_set=(x, labels, weight))
        for verb in (model.predict_proba, model.predict, model.decision_function):
            verb(there)
    both = np.column_stack([y, -y])
    gb.GradientBoostingRegressor(n_estimators=2, device="cuda").fit(x, both).predict(there)
    of_labels = gb.GradientBoostingClassifier(n_estimators=2, device="cuda").fit(x, (both > 0) * 1)
    of_labels.predict_proba(there), of_labels.predict(there)
    gb.GradientBoostingRegressor(n_estimators=2, device="cuda", eval_metric=["r2", "rmsle"]).fit(
        x, np.abs(y), eval_set=(x, np.abs(y), weight)
    )
    for loss in ("lambdamart", "pairwise_logistic"):
        ranker = gb.GradientBoostingRanker(loss, n_estimators=4, device="cuda")
        ranker.fit(x, np.digitize(y, [-1, 1]), group=[1, 600, 4, 95])
    gpu = open_gpu("cuda:0")
    gpu.use_clusters(True)  # on devices that have them
    for features in (3, 20):
        gb.GradientBoostingRegressor(n_estimators=4, max_depth=4, device="cuda").fit(x[:, :features], y)
    gpu.use_clusters(False)
    for encoding in ("partition", "ordered"):
        model = gb.GradientBoostingRegressor(n_estimators=2, device="cuda", categorical_encoding=encoding)
        model.set_params(categorical_features=[0]).fit(np.abs(np.round(x)), y)


if __name__ == "__main__":
    main([int(part) for part in sys.argv[1:]] or range(PARTS))
