"""Callbacks, flavours and converters for other libraries, each imported at its first use.

``OptunaPruning``, ``WandbLogging``, the MLflow flavour ``mlflow`` and ``register_skl2onnx`` need the package in their
name, which gpuboost does not install.
"""

from importlib import import_module
from typing import Any

_NAMES = {
    "OptunaPruning": "gpuboost.integrations.optuna_pruning",
    "WandbLogging": "gpuboost.integrations.wandb_logging",
    "register_skl2onnx": "gpuboost.integrations.skl2onnx_converter",
}
_MODULES = {"mlflow": "gpuboost.integrations.mlflow_flavour"}

__all__ = ["OptunaPruning", "WandbLogging", "mlflow", "register_skl2onnx"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'gpuboost.integrations' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
