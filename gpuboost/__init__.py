"""Gradient boosting for GPU and CPU, with byte-identical models on every machine.

The public names (``gpuboost.public`` lists them) are imported when first used: ``import gpuboost`` itself starts
neither numba nor scikit-learn.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from gpuboost import public
from gpuboost._imports.collection import no_collection
from gpuboost._imports.moved import install
from gpuboost._imports.namesake import warn_of_another_distribution
from gpuboost._version import __version__

__all__ = ["__version__"]
__all__ += list(public.PUBLIC | public.MODULES)

install()
warn_of_another_distribution(os.path.dirname(__file__))


def __getattr__(name: str) -> Any:
    module = public.MODULES.get(name) or public.PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'gpuboost' has no attribute {name!r}")
    with no_collection():  # scikit-learn, numba and this package make lasting objects only
        attribute: Any = import_module(module)
    if name not in public.MODULES:
        attribute = getattr(attribute, name)
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted(__all__)
