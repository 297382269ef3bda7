"""A body of some length is written once."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_SHARED = 650
"""Characters of a dumped body up to which functions may be alike: two statements or three"""


def same_bodies(root: Path = ROOT) -> list[set[str]]:
    """Functions of equal bodies, apart from docstrings. Constructors, which take the same parts, may be equal."""
    homes: dict[str, set[str]] = defaultdict(set)
    for path in sorted((root / "gpuboost").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name != "__init__":
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                dumped = "".join(ast.dump(statement) for statement in body)
                if len(dumped) > MOST_SHARED:
                    homes[dumped].add(f"{path.relative_to(root).as_posix()} {node.name}")
    return [functions for functions in homes.values() if len(functions) > 1]


def test_no_body_is_written_twice() -> None:
    assert same_bodies() == [], "keep one of each set, and let the others call it"


def test_offenders_are_found(tmp_path: Path) -> None:
    (tmp_path / "gpuboost").mkdir()
    long = "".join(f"    x{i} = [{i}, y + {i}, y * {i}]\n" for i in range(5))
    (tmp_path / "gpuboost" / "a.py").write_text(f'def f(y):\n    """One."""\n{long}\ndef g(y):\n    x = y\n')
    (tmp_path / "gpuboost" / "b.py").write_text(
        f"def h(y):\n{long}\ndef k(y):\n    x = y\n\ndef m(z):\n{long}    z = 1\n"
    )
    assert same_bodies(tmp_path) == [{"gpuboost/a.py f", "gpuboost/b.py h"}]
