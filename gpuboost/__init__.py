"""Gradient boosting for GPU and CPU, with byte-identical models on every machine.

The names below are imported when first used: ``import gpuboost`` itself starts neither numba nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpuboost._version import __version__

if TYPE_CHECKING:
    from gpuboost import export, losses, metrics, plot, posterior
    from gpuboost.api import GradientBoostingClassifier, GradientBoostingRanker, GradientBoostingRegressor, load_model
    from gpuboost.api.chains import chains
    from gpuboost.api.cv import cv
    from gpuboost.api.memory import estimate_memory
    from gpuboost.backends.devices import devices
    from gpuboost.data.dataset import Dataset
    from gpuboost.errors import DeviceError, GpuBoostError, InputError, OutsideTheoryWarning, RecipeError
    from gpuboost.langevin import Langevin
    from gpuboost.learners import RandomGroups
    from gpuboost.sampling import (
        GOSS,
        MVS,
        ImportanceSampling,
        UniformSampling,
        WeightTrimming,
        smart_first_order,
        smart_second_order,
    )
    from gpuboost.steps import ConstantStep, GradientStep, NewtonStep
    from gpuboost.watch import callbacks

_HOME = {
    "GOSS": "gpuboost.sampling",
    "MVS": "gpuboost.sampling",
    "ConstantStep": "gpuboost.steps",
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
    "NewtonStep": "gpuboost.steps",
    "OutsideTheoryWarning": "gpuboost.errors",
    "RandomGroups": "gpuboost.learners",
    "RecipeError": "gpuboost.errors",
    "UniformSampling": "gpuboost.sampling",
    "WeightTrimming": "gpuboost.sampling",
    "callbacks": "gpuboost.watch",
    "chains": "gpuboost.api.chains",
    "cv": "gpuboost.api.cv",
    "devices": "gpuboost.backends.devices",
    "estimate_memory": "gpuboost.api.memory",
    "export": "gpuboost",
    "load_model": "gpuboost.api",
    "losses": "gpuboost",
    "metrics": "gpuboost",
    "plot": "gpuboost",
    "posterior": "gpuboost",
    "smart_first_order": "gpuboost.sampling",
    "smart_second_order": "gpuboost.sampling",
}
"""Where each public name lives: in that module, or as a module of that package."""

__all__ = [
    "GOSS",
    "MVS",
    "ConstantStep",
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
    "NewtonStep",
    "OutsideTheoryWarning",
    "RandomGroups",
    "RecipeError",
    "UniformSampling",
    "WeightTrimming",
    "__version__",
    "callbacks",
    "chains",
    "cv",
    "devices",
    "estimate_memory",
    "export",
    "load_model",
    "losses",
    "metrics",
    "plot",
    "posterior",
    "smart_first_order",
    "smart_second_order",
]


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
