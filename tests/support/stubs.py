"""The type stubs of the packages whose names come from the tables of ``gpuboost.public``.

``.venv/bin/python tests/support/stubs.py`` writes them; tests/conventions/test_package.py holds them to the tables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from gpuboost import public

PACKAGE = Path(__file__).parents[2] / "gpuboost"


def stubs() -> dict[Path, str]:
    """File -> text."""
    root = [("gpuboost._version", "__version__"), *((module, name) for name, module in public.PUBLIC.items())]
    root += [module.rpartition(".")[::2] for module in public.MODULES.values()]
    families = [*public.SMOOTH_FAMILIES.values(), *public.TREE_FAMILIES.values()]
    names = {
        "": root,
        "export": [(module, name) for name, module in public.EXPORTS.items()],
        "learners": [*_split(families), *_imported("learners")],
        "losses": [*_split(public.LOSSES.values()), *_imported("losses")],
    }
    return {PACKAGE / folder / "__init__.pyi": _text(listed) for folder, listed in names.items()}


def _split(entries: object) -> Iterator[tuple[str, str]]:
    return (entry.split(":") for entry in entries)


def _imported(folder: str) -> Iterator[tuple[str, str]]:
    """(module, name) of what the package imports by itself and lists as public."""
    tree = ast.parse((PACKAGE / folder / "__init__.py").read_text())
    listed = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), alias.name) for alias in node.names if alias.name in listed)


def _text(names: list[tuple[str, str]]) -> str:
    lines = sorted(f"from {module} import {name} as {name}" for module, name in names)
    return "\n".join(["# Written by tests/support/stubs.py from gpuboost/public.py.", *lines, ""])


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
