"""Names and modules of a package that are imported at their first use, not with the package (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    package: its ``__name__``. modules: name -> module that defines it.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        attribute = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, attribute)
        return attribute

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names


def lazy_modules(package: str, *modules: str) -> Callable[[str], ModuleType]:
    """``__getattr__`` of a package whose ``modules`` are attributes of it before they are imported."""

    def get(name: str) -> ModuleType:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return get
