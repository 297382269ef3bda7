"""Gradient boosting for GPU and CPU, with byte-identical models on every machine.

The names below are imported when first used: ``import gpuboost`` itself starts neither numba nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpuboost._version import __version__

if TYPE_CHECKING:
    from gpuboost import export, losses, metrics, plot
    from gpuboost.api import GradientBoostingClassifier, GradientBoostingRegressor, load_model
    from gpuboost.api.cv import cv
    from gpuboost.backends.devices import devices
    from gpuboost.data.dataset import Dataset
    from gpuboost.errors import DeviceError, GpuBoostError, InputError, OutsideTheoryWarning, RecipeError
    from gpuboost.learners import RandomGroups
    from gpuboost.sampling import UniformSampling
    from gpuboost.steps import ConstantStep, GradientStep, NewtonStep
    from gpuboost.watch import callbacks

_HOME = {
    "ConstantStep": "gpuboost.steps",
    "Dataset": "gpuboost.data.dataset",
    "DeviceError": "gpuboost.errors",
    "GpuBoostError": "gpuboost.errors",
    "GradientBoostingClassifier": "gpuboost.api",
    "GradientBoostingRegressor": "gpuboost.api",
    "GradientStep": "gpuboost.steps",
    "InputError": "gpuboost.errors",
    "NewtonStep": "gpuboost.steps",
    "OutsideTheoryWarning": "gpuboost.errors",
    "RandomGroups": "gpuboost.learners",
    "RecipeError": "gpuboost.errors",
    "UniformSampling": "gpuboost.sampling",
    "callbacks": "gpuboost.watch",
    "cv": "gpuboost.api.cv",
    "devices": "gpuboost.backends.devices",
    "export": "gpuboost",
    "load_model": "gpuboost.api",
    "losses": "gpuboost",
    "metrics": "gpuboost",
    "plot": "gpuboost",
}
"""Where each public name lives: in that module, or as a module of that package."""

__all__ = [
    "ConstantStep",
    "Dataset",
    "DeviceError",
    "GpuBoostError",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "GradientStep",
    "InputError",
    "NewtonStep",
    "OutsideTheoryWarning",
    "RandomGroups",
    "RecipeError",
    "UniformSampling",
    "__version__",
    "callbacks",
    "cv",
    "devices",
    "export",
    "load_model",
    "losses",
    "metrics",
    "plot",
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
