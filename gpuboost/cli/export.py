"""``gpuboost export``: a saved model in, a file for another library out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from gpuboost.cli.console import new_console
from gpuboost.cli.tables import check_place
from gpuboost.errors import InputError


def run(options: argparse.Namespace) -> int:
    """Write a saved model in the format of another library."""
    import gpuboost

    check_place("--output", options.output, options.model)
    model: Any = gpuboost.load_model(options.model)
    try:
        _WRITERS[options.format](model, options.output)
    except ImportError as error:
        raise InputError(f"--format: {options.format}: {error}") from None
    new_console().print(f"exported to {options.output}", highlight=False, soft_wrap=True)
    return 0


def _onnx(model: Any, path: str) -> None:
    from gpuboost.export import to_onnx

    to_onnx(model, path)


def _c(model: Any, path: str) -> None:
    from gpuboost.export import to_c

    to_c(model, path)


def _xgboost(model: Any, path: str) -> None:
    from gpuboost.export import to_xgboost

    to_xgboost(model, path)


def _treelite(model: Any, path: str) -> None:
    """Write treelite's checkpoint, for ``treelite.Model.deserialize``."""
    from gpuboost.export import to_treelite
    from gpuboost.storage import writing

    with writing(path) as file:
        file.write(to_treelite(model).serialize_bytes())


_WRITERS: dict[str, Callable[[Any, str], None]] = {
    "onnx": _onnx,
    "treelite": _treelite,
    "xgboost": _xgboost,
    "c": _c,
}
