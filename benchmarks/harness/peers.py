"""One adapter per library: the same data, setting and number of threads, said in each library's own words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from gpuboost.benchmarks.harness.cases import OURS, Setting, Task
from gpuboost.benchmarks.harness.store import Array

SEED = 0


class Peer(Protocol):
    """A library, imported by the constructor. ``bin`` and ``train`` are timed; ``prepare`` is not."""

    version: str
    binning_seconds: float | None  # spent on it in the last ``train``, where a library bins there

    def prepare(self, x: Any) -> Any:
        """The rows in the form that this library takes."""
        ...

    def bin(self, x: Any, y: Array, weight: Array | None, group: Array | None) -> Any: ...

    def train(self, binned: Any) -> Any: ...

    def predict(self, model: Any, x: Any) -> Array:
        """(n,) probabilities, values or scores, (n, classes) for several classes."""
        ...


class Gpuboost:
    """This library. A Dataset chooses the cuts; rows are binned in ``fit``, whose report says how long that took."""

    def __init__(self, task: Task, setting: Setting, threads: int, n_classes: int, **more: Any) -> None:
        import gpuboost

        self.version, self._gb, self._task, self._threads = gpuboost.__version__, gpuboost, task, threads
        self.binning_seconds: float | None = None
        growth: dict[str, Any] = {"max_depth": setting.depth}
        if setting.leaves:
            growth = {"growth": "leafwise", "max_leaves": setting.leaves, "max_depth": None}
        regularisation = {"reg_lambda": 1.0, "min_child_weight": 1.0, "min_samples_leaf": 1} if setting.matched else {}
        loss = {"loss": "poisson"} if task == "poisson" else {}
        kinds = {"regression": "Regressor", "poisson": "Regressor", "ranking": "Ranker"}
        kind = f"GradientBoosting{kinds.get(task, 'Classifier')}"
        self._model = getattr(gpuboost, kind)(
            n_estimators=setting.trees,
            learning_rate=setting.rate,
            n_jobs=threads,
            random_state=SEED,
            **{**growth, **regularisation, **loss, "device": "cpu", **more},
        )

    def prepare(self, x: Any) -> Any:
        return x

    def bin(self, x: Any, y: Array, weight: Array | None, group: Array | None) -> Any:
        return self._gb.Dataset(x, y, weight=weight, group=group, max_bins=255, n_jobs=self._threads)

    def train(self, binned: Any) -> Any:
        model = self._model.fit(binned)
        self.binning_seconds = model.fit_report_.seconds["prepare"]
        return model

    def predict(self, model: Any, x: Any) -> Array:
        if self._task == "binary":
            return model.predict_proba(x)[:, 1]
        return model.predict_proba(x) if self._task == "multiclass" else model.predict(x)


class XGBoost:
    """tree_method=hist. Absent entries of a sparse matrix are missing values to it."""

    binning_seconds = None

    def __init__(self, task: Task, setting: Setting, threads: int, n_classes: int, **more: Any) -> None:
        import xgboost

        self.version, self._xgb, self._rounds, self._threads = xgboost.__version__, xgboost, setting.trees, threads
        objective = {
            "binary": "binary:logistic",
            "multiclass": "multi:softprob",
            "regression": "reg:squarederror",
            "poisson": "count:poisson",
            "ranking": "rank:ndcg",
        }
        self._options: dict[str, Any] = {
            "objective": objective[task],
            "tree_method": "hist",
            "eta": setting.rate,
            "max_depth": setting.depth,
            "nthread": threads,
            "verbosity": 0,
            "seed": SEED,
        }
        if task == "multiclass":
            self._options["num_class"] = n_classes
        if setting.leaves:
            self._options.update(grow_policy="lossguide", max_leaves=setting.leaves, max_depth=0)
        if setting.matched:
            self._options.update({"lambda": 1.0, "min_child_weight": 1.0, "max_bin": 256})
        self._options.update(more)

    def prepare(self, x: Any) -> Any:
        return x

    def bin(self, x: Any, y: Array, weight: Array | None, group: Array | None) -> Any:
        max_bin = self._options.get("max_bin", 256)
        return self._xgb.QuantileDMatrix(
            x, y, weight=weight, qid=group, max_bin=max_bin, nthread=self._threads, enable_categorical=True
        )

    def train(self, binned: Any) -> Any:
        return self._xgb.train(self._options, binned, self._rounds)

    def predict(self, model: Any, x: Any) -> Array:
        if hasattr(x, "columns"):
            return model.predict(self._xgb.DMatrix(x, nthread=self._threads, enable_categorical=True))
        return model.inplace_predict(x)


class LightGBM:
    """Depth 6 is 64 leaves to it."""

    binning_seconds = None

    def __init__(self, task: Task, setting: Setting, threads: int, n_classes: int, **more: Any) -> None:
        import lightgbm

        self.version, self._lgb, self._rounds, self._threads = lightgbm.__version__, lightgbm, setting.trees, threads
        objective = {"regression": "l2", "ranking": "lambdarank"}
        self._options: dict[str, Any] = {
            "objective": objective.get(task, task),
            "num_leaves": setting.leaves or 2**setting.depth,
            "max_depth": -1 if setting.leaves else setting.depth,
            "learning_rate": setting.rate,
            "num_threads": threads,
            "verbosity": -1,
            "seed": SEED,
        }
        if task == "multiclass":
            self._options["num_class"] = n_classes
        if setting.matched:
            self._options.update(lambda_l2=1.0, max_bin=255, min_data_in_leaf=1, min_sum_hessian_in_leaf=1.0)
        else:
            self._options.update(deterministic=True, force_row_wise=True)
        self._options.update(more)

    def prepare(self, x: Any) -> Any:
        return x

    def bin(self, x: Any, y: Array, weight: Array | None, group: Array | None) -> Any:
        sizes = None if group is None else np.diff([*np.unique(group, return_index=True)[1], len(group)])
        made = self._lgb.Dataset(x, y, weight=weight, group=sizes, params=self._options, free_raw_data=False)
        return made.construct()

    def train(self, binned: Any) -> Any:
        return self._lgb.train(self._options, binned, self._rounds)

    def predict(self, model: Any, x: Any) -> Array:
        return model.predict(x, num_threads=self._threads)


class CatBoost:
    """Matched: no bagging, no noise on scores, one Newton step per leaf. Depth-wise trees are oblivious to it."""

    binning_seconds = None

    def __init__(self, task: Task, setting: Setting, threads: int, n_classes: int, **more: Any) -> None:
        import catboost

        self.version, self._cat, self._task, self._threads = catboost.__version__, catboost, task, threads
        objective = {
            "binary": "Logloss",
            "multiclass": "MultiClass",
            "regression": "RMSE",
            "poisson": "Poisson",
            "ranking": "YetiRank",
        }
        self._options: dict[str, Any] = {
            "loss_function": objective[task],
            "iterations": setting.trees,
            "depth": setting.depth,
            "learning_rate": setting.rate,
            "thread_count": threads,
            "random_seed": SEED,
            "allow_writing_files": False,
            "logging_level": "Silent",
            "metric_period": setting.trees,
        }
        if setting.leaves:
            self._options.update(grow_policy="Lossguide", max_leaves=setting.leaves, depth=16)
        self._matched = setting.matched
        if setting.matched:
            self._options.update(
                l2_leaf_reg=1.0,
                bootstrap_type="No",
                random_strength=0,
                boosting_type="Plain",
                leaf_estimation_iterations=1,
            )
        self._options.update(more)

    def prepare(self, x: Any) -> Any:
        if not hasattr(x, "columns"):
            return x
        return x.astype({column: str for column in self._categorical(x)})

    def _categorical(self, x: Any) -> list[str]:
        return [c for c in x.columns if x[c].dtype.name in ("category", "str", "object")]

    def _pool(self, x: Any, y: Array | None = None, weight: Array | None = None, group: Array | None = None) -> Any:
        named = self._categorical(x) if hasattr(x, "columns") else None
        more = {} if group is None else {"group_id": group.astype(np.int64)}
        return self._cat.Pool(x, y, weight=weight, cat_features=named, thread_count=self._threads, **more)

    def bin(self, x: Any, y: Array, weight: Array | None, group: Array | None) -> Any:
        pool = self._pool(x, y, weight, group)
        if self._matched:
            pool.quantize(border_count=254)
        return pool

    def train(self, binned: Any) -> Any:
        return self._cat.CatBoost(self._options).fit(binned)

    def predict(self, model: Any, x: Any) -> Array:
        rows = self._pool(x) if hasattr(x, "columns") else x
        kind = {"binary": "Probability", "multiclass": "Probability", "poisson": "Exponent"}
        p = model.predict(rows, prediction_type=kind.get(self._task, "RawFormulaVal"), thread_count=self._threads)
        return p[:, 1] if self._task == "binary" else p


class ScikitLearn:
    """HistGradientBoosting*. It bins inside fit: that share is taken by a watch on its own methods.

    It takes no sparse matrix, and no column of more than 255 categories: the one is made dense, the other read as
    numbers, the index of the category.
    """

    def __init__(self, task: Task, setting: Setting, threads: int, n_classes: int) -> None:
        import sklearn
        from sklearn import ensemble

        self.version, self._task = sklearn.__version__, task
        self.binning_seconds: float | None = None
        classify = task in ("binary", "multiclass")
        kind = ensemble.HistGradientBoostingClassifier if classify else ensemble.HistGradientBoostingRegressor
        options: dict[str, Any] = {
            "max_iter": setting.trees,
            "learning_rate": setting.rate,
            "early_stopping": False,
            "random_state": SEED,
            "max_depth": None if setting.leaves else setting.depth,
            "max_leaf_nodes": setting.leaves,
            "categorical_features": "from_dtype",
        }
        if task == "poisson":
            options["loss"] = "poisson"
        if setting.matched:
            options.update(l2_regularization=1.0, min_samples_leaf=1)
        self._model = kind(**options)

    def prepare(self, x: Any) -> Any:
        if hasattr(x, "columns"):
            wide = [c for c in x.columns if x[c].dtype == "category" and len(x[c].cat.categories) > 255]
            return x.assign(**{c: x[c].cat.codes for c in wide})
        return x.toarray() if hasattr(x, "toarray") else x

    def bin(self, x: Any, y: Array, weight: Array | None, group: Array | None) -> Any:
        return x, y, weight

    def train(self, binned: Any) -> Any:
        x, y, weight = binned
        with _watched(type(self._model), ("_bin_data", "_preprocess_X")) as spent:
            self._model.fit(x, y, sample_weight=weight)
        self.binning_seconds = sum(spent)
        return self._model

    def predict(self, model: Any, x: Any) -> Array:
        if self._task == "binary":
            return model.predict_proba(x)[:, 1]
        return model.predict_proba(x) if self._task == "multiclass" else model.predict(x)


@contextmanager
def _watched(kind: type, names: tuple[str, ...]) -> Iterator[list[float]]:
    """Seconds of every call of the named methods while open."""
    spent: list[float] = []

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = method(*args, **kwargs)
            spent.append(time.perf_counter() - start)
            return result

        return call

    for name in names:
        setattr(kind, name, timed(getattr(kind, name)))
    try:
        yield spent
    finally:
        for name in names:
            delattr(kind, name)


def _quantised(*args: Any) -> LightGBM:
    return LightGBM(*args, use_quantized_grad=True)


def _encoded(encoding: str) -> Callable[..., Gpuboost]:
    return partial(Gpuboost, categorical_encoding=encoding)


_PEERS: dict[str, tuple[str, Callable[..., Peer]]] = {
    OURS: ("gpuboost", Gpuboost),
    "gpuboost-partition": ("gpuboost", _encoded("partition")),
    "gpuboost-ordered": ("gpuboost", _encoded("ordered")),
    "xgboost": ("xgboost", XGBoost),
    "lightgbm": ("lightgbm", LightGBM),
    "lightgbm-quantised": ("lightgbm", _quantised),
    "catboost": ("catboost", CatBoost),
    "sklearn": ("sklearn", ScikitLearn),
}
"""Name -> the module it needs, and its adapter."""

NAMES = tuple(_PEERS)

_FURTHER = {"py-boost": "py_boost", "ngboost": "ngboost"}
"""The same of libraries without an adapter here, which some experiments run: see ``Experiment.peers``."""


def installed(name: str) -> bool:
    """True if the module of this library is there; it is not imported."""
    module = _FURTHER[name] if name in _FURTHER else _PEERS[name][0]
    return find_spec(module) is not None


def open_peer(name: str, task: Task, setting: Setting, threads: int, y: Array, **more: Any) -> Peer:
    """Import the library and set it up; ``more`` are options in its own words."""
    n_classes = len(np.unique(y)) if task == "multiclass" else 1
    return _PEERS[name][1](task, setting, threads, n_classes, **more)
