"""The tables of names: what ``gpuboost`` exports, and the words that stand for a class in model files and parameters.

To add a class, write its file and add one line here; the lists of public names, the type stubs (written by
``.venv/bin/python tests/support/stubs.py``) and the words of model files follow. This module imports nothing, so that
``import gpuboost`` and ``gpuboost --help`` stay light.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

POLICIES = {
    "Averaging": "gpuboost.learning_rates.averaging",
    "CategoricalSplits": "gpuboost.growth.categorical",
    "ConstantStep": "gpuboost.steps",
    "CosineDecay": "gpuboost.learning_rates.cosine",
    "CyclicGroups": "gpuboost.learners.cyclic",
    "SemiGreedyGroups": "gpuboost.learners.semi_greedy",
    "CyclicalTemperature": "gpuboost.langevin.schedule",
    "ExponentialDecay": "gpuboost.learning_rates.exponential",
    "FeatureCosts": "gpuboost.learners.feature_costs",
    "GOSS": "gpuboost.sampling.goss",
    "GeometricAnnealing": "gpuboost.langevin.schedule",
    "GradientStep": "gpuboost.steps",
    "ImportanceSampling": "gpuboost.sampling.importance",
    "Langevin": "gpuboost.langevin",
    "LineSearchStep": "gpuboost.steps",
    "NewtonStep": "gpuboost.steps",
    "OrderedTargetStatistics": "gpuboost.data.encoding",
    "QuerySampling": "gpuboost.sampling.by_query",
    "RandomByLevel": "gpuboost.learners.by_level",
    "RandomByNode": "gpuboost.learners.by_node",
    "RandomGroup": "gpuboost.learners.groups",
    "RandomGroups": "gpuboost.learners.groups",
    "RandomLearners": "gpuboost.learners.pairs",
    "RandomOutputs": "gpuboost.multi_output.random_outputs",
    "RandomProjection": "gpuboost.multi_output.random_projection",
    "TopOutputs": "gpuboost.multi_output.top_outputs",
    "UniformSampling": "gpuboost.sampling.uniform",
    "WeightTrimming": "gpuboost.sampling.trimming",
    "WeightedGroups": "gpuboost.learners.weighted",
}
"""Class -> module, of the policies that ``gpuboost`` exports and model files hold by the name of the class."""

IMPLIED_POLICIES = {
    "AllLearners": "gpuboost.learners.selection",
    "EveryRow": "gpuboost.sampling.uniform",
    "QuantileStep": "gpuboost.steps",
}
"""Class -> module, of the policies that None, 1.0 or "auto" stands for: in model files, but not public names."""

PUBLIC = POLICIES | {
    "Asynchronous": "gpuboost.execution",
    "ClassifierPredictor": "gpuboost.predictor",
    "DataParallel": "gpuboost.execution",
    "ConformalClassifier": "gpuboost.model_selection.conformal",
    "ConformalRegressor": "gpuboost.model_selection.conformal",
    "Dataset": "gpuboost.data.dataset",
    "DeviceError": "gpuboost.errors",
    "GpuBoostError": "gpuboost.errors",
    "GradientBoostingClassifier": "gpuboost.api.classifier",
    "GradientBoostingRanker": "gpuboost.api.ranker",
    "GradientBoostingRegressor": "gpuboost.api.regressor",
    "InputError": "gpuboost.errors",
    "Log": "gpuboost.execution",
    "MVS": "gpuboost.sampling.presets",
    "ModelPredictor": "gpuboost.predictor",
    "OutsideTheoryWarning": "gpuboost.errors",
    "PosteriorFit": "gpuboost.model_selection.posterior_fit",
    "Ray": "gpuboost.execution",
    "RecipeError": "gpuboost.errors",
    "Replay": "gpuboost.execution",
    "RowProbabilities": "gpuboost.sampling.by_row",
    "SimulatedWorkers": "gpuboost.execution",
    "WorkerError": "gpuboost.errors",
    "chains": "gpuboost.model_selection.chains",
    "conformal": "gpuboost.model_selection.conformal",
    "cv": "gpuboost.model_selection.cv",
    "devices": "gpuboost.backends.devices",
    "dumps": "gpuboost.api.loading",
    "estimate_memory": "gpuboost.api.memory",
    "fit_posterior": "gpuboost.model_selection.posterior_fit",
    "load_conformal": "gpuboost.model_selection.conformal",
    "load_model": "gpuboost.api.loading",
    "load_predictor": "gpuboost.predictor",
    "loads": "gpuboost.api.loading",
    "permutation_importance": "gpuboost.model_selection.permutation",
    "search": "gpuboost.model_selection.search",
    "smart_first_order": "gpuboost.sampling.presets",
    "smart_second_order": "gpuboost.sampling.presets",
    "sum_models": "gpuboost.api.sums",
    "to_dict": "gpuboost.api.loading",
    "warm_up": "gpuboost.api.warm_up",
}
"""Name -> module that defines it, of what ``gpuboost`` exports."""

MODULES = {
    "callbacks": "gpuboost.watch.callbacks",
    "export": "gpuboost.export",
    "integrations": "gpuboost.integrations",
    "learners": "gpuboost.learners",
    "losses": "gpuboost.losses",
    "metrics": "gpuboost.metrics",
    "plot": "gpuboost.plot",
    "posterior": "gpuboost.posterior",
    "presets": "gpuboost.presets",
    "theory": "gpuboost.theory",
    "times": "gpuboost.execution.times",
}
"""Name -> module, of the modules that ``gpuboost`` exports."""

LOSSES = {
    "squared_error": "gpuboost.losses.residual:SquaredError",
    "huber": "gpuboost.losses.residual:Huber",
    "absolute_error": "gpuboost.losses.residual:AbsoluteError",
    "quantile": "gpuboost.losses.residual:Quantile",
    "quantiles": "gpuboost.losses.residual:Quantiles",
    "expectile": "gpuboost.losses.residual:Expectile",
    "poisson": "gpuboost.losses.positive:Poisson",
    "gamma": "gpuboost.losses.positive:Gamma",
    "tweedie": "gpuboost.losses.positive:Tweedie",
    "aft": "gpuboost.losses.censored:AFT",
    "cross_entropy": "gpuboost.losses.shares:CrossEntropy",
    "gaussian_nll": "gpuboost.losses.distribution:GaussianNLL",
    "log_normal_nll": "gpuboost.losses.likelihoods:LogNormalNLL",
    "gamma_nll": "gpuboost.losses.likelihoods:GammaNLL",
    "negative_binomial_nll": "gpuboost.losses.likelihoods:NegativeBinomialNLL",
    "logistic": "gpuboost.losses.binary:Logistic",
    "exponential": "gpuboost.losses.binary:Exponential",
    "logitboost": "gpuboost.losses.logitboost:LogitBoost",
    "smoothed_zero_one": "gpuboost.losses.zero_one:SmoothedZeroOne",
    "softmax": "gpuboost.losses.softmax:Softmax",
    "lambdamart": "gpuboost.losses.ranking:LambdaMART",
    "pairwise_logistic": "gpuboost.losses.ranking:PairwiseLogistic",
    "pair_logit": "gpuboost.losses.pair_logit:PairLogit",
    "stochastic_rank": "gpuboost.losses.stochastic_rank:StochasticRank",
    "unbiased_lambdamart": "gpuboost.losses.ranking:UnbiasedLambdaMART",
    "xendcg": "gpuboost.losses.xendcg:XENDCG",
}
"""Name of a loss -> its class, in the order in which messages list them; exported by ``gpuboost.losses``."""

SMOOTH_FAMILIES = {
    "linear": "gpuboost.learners.families.linear:Linear",
    "spline": "gpuboost.learners.families.spline:Spline",
    "tensor": "gpuboost.learners.families.tensor:TensorSpline",
    "categorical": "gpuboost.learners.families.categorical:CategoricalRidge",
}
"""Word of model files -> family of base learners that are functions of bins; exported by ``gpuboost.learners``."""

TREE_FAMILIES = {
    "tree": "gpuboost.learners.families.trees:Tree",
    "linear_tree": "gpuboost.learners.families.trees:LinearTree",
}
"""The families that are trees."""

FAMILIES = (*SMOOTH_FAMILIES.values(), *TREE_FAMILIES.values())
"""Entries of all families, in the order in which messages list them."""

EXPORTS = {
    "to_c": "gpuboost.export.c_source",
    "to_onnx": "gpuboost.export.onnx",
    "to_shap_dict": "gpuboost.export.shap",
    "to_table": "gpuboost.export.table",
    "to_treelite": "gpuboost.export.treelite",
    "to_xgboost": "gpuboost.export.xgboost",
    "trees_to_table": "gpuboost.export.trees",
}
"""Function -> module, of what ``gpuboost.export`` exports."""


def loaded(entry: str) -> Any:
    """The object of an entry "module:name"."""
    from importlib import import_module

    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)


class Loaded(Mapping[str, Any]):
    """Word -> object of a table of entries "module:name". A module is imported at the first use of its object."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._entries = entries

    def __getitem__(self, word: str) -> Any:
        return loaded(self._entries[word])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def class_name(entry: str) -> str:
    """The name in an entry "module:name"."""
    return entry.partition(":")[2]


def modules_of(entries: Iterable[str]) -> dict[str, str]:
    """Name -> module, of entries "module:name"."""
    return {class_name(entry): entry.partition(":")[0] for entry in entries}
