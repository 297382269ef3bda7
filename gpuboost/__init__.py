"""Gradient boosting for GPU and CPU, with byte-identical models on every machine.

The names below are imported when first used: ``import gpuboost`` itself starts neither numba nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpuboost import _moved
from gpuboost._version import __version__

if TYPE_CHECKING:
    from gpuboost import export, learners, losses, metrics, plot, posterior, theory
    from gpuboost.api import GradientBoostingClassifier, GradientBoostingRanker, GradientBoostingRegressor, load_model
    from gpuboost.api.memory import estimate_memory
    from gpuboost.backends.devices import devices
    from gpuboost.data.dataset import Dataset
    from gpuboost.errors import DeviceError, GpuBoostError, InputError, OutsideTheoryWarning, RecipeError
    from gpuboost.execution import Asynchronous, DataParallel, Log, Ray, Replay, SimulatedWorkers
    from gpuboost.langevin import Langevin
    from gpuboost.learners import (
        CyclicGroups,
        RandomByNode,
        RandomGroup,
        RandomGroups,
        RandomLearners,
        WeightedGroups,
    )
    from gpuboost.model_selection.chains import chains
    from gpuboost.model_selection.cv import cv
    from gpuboost.model_selection.posterior_fit import PosteriorFit, fit_posterior
    from gpuboost.sampling import (
        GOSS,
        MVS,
        ImportanceSampling,
        UniformSampling,
        WeightTrimming,
        smart_first_order,
        smart_second_order,
    )
    from gpuboost.steps import ConstantStep, GradientStep, LineSearchStep, NewtonStep
    from gpuboost.watch import callbacks

_HOME = {
    "Asynchronous": "gpuboost.execution",
    "GOSS": "gpuboost.sampling",
    "MVS": "gpuboost.sampling",
    "ConstantStep": "gpuboost.steps",
    "CyclicGroups": "gpuboost.learners",
    "DataParallel": "gpuboost.execution",
    "Dataset": "gpuboost.data.dataset",
    "DeviceError": "gpuboost.errors",
    "GpuBoostError": "gpuboost.errors",
    "GradientBoostingClassifier": "gpuboost.api",
    "GradientBoostingRanker": "gpuboost.api",
    "GradientBoostingRegressor": "gpuboost.api",
    "GradientStep": "gpuboost.steps",
    "ImportanceSampling": "gpuboost.sampling",
    "InputError": "gpuboost.errors",
    "Langevin": "gpuboost.langevin",
    "Log": "gpuboost.execution",
    "LineSearchStep": "gpuboost.steps",
    "NewtonStep": "gpuboost.steps",
    "OutsideTheoryWarning": "gpuboost.errors",
    "PosteriorFit": "gpuboost.model_selection.posterior_fit",
    "RandomByNode": "gpuboost.learners",
    "RandomGroup": "gpuboost.learners",
    "RandomGroups": "gpuboost.learners",
    "RandomLearners": "gpuboost.learners",
    "Ray": "gpuboost.execution",
    "RecipeError": "gpuboost.errors",
    "Replay": "gpuboost.execution",
    "SimulatedWorkers": "gpuboost.execution",
    "UniformSampling": "gpuboost.sampling",
    "WeightTrimming": "gpuboost.sampling",
    "WorkerError": "gpuboost.errors",
    "WeightedGroups": "gpuboost.learners",
    "callbacks": "gpuboost.watch",
    "chains": "gpuboost.model_selection.chains",
    "cv": "gpuboost.model_selection.cv",
    "devices": "gpuboost.backends.devices",
    "estimate_memory": "gpuboost.api.memory",
    "export": "gpuboost",
    "fit_posterior": "gpuboost.model_selection.posterior_fit",
    "learners": "gpuboost",
    "load_model": "gpuboost.api",
    "losses": "gpuboost",
    "metrics": "gpuboost",
    "plot": "gpuboost",
    "posterior": "gpuboost",
    "smart_first_order": "gpuboost.sampling",
    "smart_second_order": "gpuboost.sampling",
    "theory": "gpuboost",
    "times": "gpuboost.execution",
}
"""Where each public name lives: in that module, or as a module of that package."""

__all__ = [
    "GOSS",
    "MVS",
    "Asynchronous",
    "ConstantStep",
    "CyclicGroups",
    "DataParallel",
    "Dataset",
    "DeviceError",
    "GpuBoostError",
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "GradientStep",
    "ImportanceSampling",
    "InputError",
    "Langevin",
    "LineSearchStep",
    "Log",
    "NewtonStep",
    "OutsideTheoryWarning",
    "PosteriorFit",
    "RandomByNode",
    "RandomGroup",
    "RandomGroups",
    "RandomLearners",
    "Ray",
    "RecipeError",
    "Replay",
    "SimulatedWorkers",
    "UniformSampling",
    "WeightTrimming",
    "WeightedGroups",
    "WorkerError",
    "__version__",
    "callbacks",
    "chains",
    "cv",
    "devices",
    "estimate_memory",
    "export",
    "fit_posterior",
    "learners",
    "load_model",
    "losses",
    "metrics",
    "plot",
    "posterior",
    "smart_first_order",
    "smart_second_order",
    "theory",
    "times",
]


_moved.install()


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'gpuboost' has no attribute {name!r}")
    if home == __name__:
        found: Any = import_module(f"{home}.{name}")
    else:
        package = import_module(home)
        found = getattr(package, name) if hasattr(package, name) else import_module(f"{home}.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
