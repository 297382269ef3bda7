"""The answer to a parameter name of XGBoost, LightGBM or CatBoost: the name of the same thing here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, TypeVar

PEER_NAMES = {
    "alpha": "reg_alpha",
    "bagging_by_query": "sampling=gb.QuerySampling(0.5)",
    "bagging_fraction": "sampling=0.5",
    "bagging_freq": "sampling=0.5, which draws rows for every tree",
    "boosting_type": "sampling=gb.GOSS(0.2, 0.1) for 'goss', learning_rate=gb.Averaging() for 'rf'",
    "border_count": "max_bins",
    "booster": "base_learner",
    "bootstrap": "sampling=gb.UniformSampling(0.632, variance_control='none'), without replacement",
    "cat_features": "categorical_features",
    "categorical_feature": "categorical_features",
    "colsample_bylevel": "learners=gb.RandomByLevel(0.8)",
    "colsample_bynode": "learners=gb.RandomByNode(0.8)",
    "colsample_bytree": "learners=0.8",
    "depth": "max_depth",
    "diffusion_temperature": "langevin=gb.Langevin(inverse_temperature=...)",
    "early_stopping_round": "early_stopping_rounds",
    "enable_categorical": "categorical_features; columns of dtype category are recognised",
    "eta": "learning_rate",
    "feature_border_type": "binning",
    "feature_fraction": "learners=0.8",
    "feature_fraction_bynode": "learners=gb.RandomByNode(0.8)",
    "gamma": "min_split_gain",
    "gpu_id": "device='cuda:0'",
    "grow_policy": "growth",
    "interaction_constraints": "interaction_cst",
    "is_unbalance": "class_weight='balanced'",
    "iterations": "n_estimators",
    "l2_leaf_reg": "reg_lambda",
    "l2_regularization": "reg_lambda",
    "lambda": "reg_lambda",
    "lambda_l1": "reg_alpha",
    "lambda_l2": "reg_lambda",
    "loss_function": "loss",
    "max_bin": "max_bins",
    "max_features": "learners=0.8",
    "max_iter": "n_estimators",
    "max_leaf_nodes": "max_leaves",
    "metric": "eval_metric",
    "min_child_samples": "min_samples_leaf",
    "min_data_in_leaf": "min_samples_leaf",
    "min_gain_to_split": "min_split_gain",
    "min_split_loss": "min_split_gain",
    "min_sum_hessian_in_leaf": "min_child_weight",
    "model_shrink_rate": "langevin=gb.Langevin(shrinkage=...)",
    "monotone_constraints": "monotonic_cst",
    "max_cat_to_onehot": "categorical_encoding=gb.OrderedTargetStatistics(one_hot_max_size=...)",
    "max_ctr_complexity": "categorical_encoding=gb.OrderedTargetStatistics(combinations=...)",
    "n_iter_no_change": "early_stopping_rounds",
    "nthread": "n_jobs",
    "num_boost_round": "n_estimators",
    "num_iterations": "n_estimators",
    "num_leaves": "max_leaves",
    "num_parallel_tree": "learning_rate=gb.Averaging(), a forest of n_estimators trees",
    "num_threads": "n_jobs",
    "objective": "loss",
    "one_hot_max_size": "categorical_encoding=gb.OrderedTargetStatistics(one_hot_max_size=...)",
    "random_seed": "random_state",
    "rsm": "learners=0.8",
    "sampling_method": "sampling=gb.MVS(0.5) for 'gradient_based'",
    "scale_pos_weight": "class_weight={positive_class: weight}",
    "seed": "random_state",
    "subsample": "sampling=0.5",
    "task_type": "device='cuda'",
    "thread_count": "n_jobs",
    "tree_method": "device='cuda' for a GPU; trees are always grown on histograms",
    "verbosity": "verbose",
    "zero_as_missing": "missing=0.0",
}
"""Parameters of XGBoost, LightGBM, CatBoost and scikit-learn that are called otherwise here."""

C = TypeVar("C", bound=type)


def explaining_unknown_parameters(estimator: C) -> C:
    """The class with a constructor whose TypeError for an unknown parameter names the one that is meant."""
    construct = estimator.__init__  # type: ignore[misc]  # of the class itself: a subclass has its own
    known = [name for name in inspect.signature(construct).parameters if name != "self"]

    @functools.wraps(construct)
    def checked(self: Any, *args: Any, **params: Any) -> None:
        if unknown := [name for name in params if name not in known]:
            raise TypeError(f"{estimator.__name__}: {unknown_parameter(unknown[0], known)}")
        construct(self, *args, **params)

    estimator.__init__ = checked  # type: ignore[misc]
    return estimator


def unknown_parameter(name: str, known: Iterable[str]) -> str:
    """The sentences that say that there is no such parameter, and which one may be meant."""
    if name in PEER_NAMES:
        return f"unknown parameter {name!r}; here it is {PEER_NAMES[name]}."
    close = get_close_matches(name, list(known), 1)
    return f"unknown parameter {name!r}" + (f"; close to it: {close[0]!r}." if close else ".")
