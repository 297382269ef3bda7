"""Every package that the library imports is a dependency or in an extra of pyproject.toml."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "cupy": "cupy-cuda13x",
    "cupyx": "cupy-cuda13x",
    "cuda": "cuda-bindings",
    "mlflow": "mlflow-skinny",
}
"""Names on the package index that differ from the module's."""

HOSTS = {
    "IPython": "imported inside a notebook only, which runs it",
    "pytest": "gpuboost.testing is for tests that pytest runs",
}
"""Modules whose program runs the library, and has imported them."""


def _imported() -> dict[str, str]:
    """Top-level modules of other packages, each with a file that imports it."""
    found: dict[str, str] = {}
    for folder in ("gpuboost", "kernels"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                for name in names:
                    found.setdefault(name.partition(".")[0], path.relative_to(ROOT).as_posix())
    return {name: path for name, path in found.items() if name not in {*sys.stdlib_module_names, "gpuboost"}}


@pytest.mark.slow
def test_imported_packages_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = {"test", "dev", "docs"}  # of this repository
    extras = {name: listed for name, listed in project["optional-dependencies"].items() if name not in own}
    declared = {
        re.split(r"[\[<>=;! ]", requirement)[0]
        for requirement in [*project["dependencies"], *(one for listed in extras.values() for one in listed)]
    }
    imported = _imported()
    assert {"numpy", "numba", "joblib", "cupy", "arviz"} <= set(imported)
    assert set(HOSTS) <= set(imported)
    missing = {
        name: path
        for name, path in imported.items()
        if DISTRIBUTIONS.get(name, name) not in declared and name not in HOSTS
    }
    assert not missing
