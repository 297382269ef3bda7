"""Docstrings are noun phrases or imperatives, and a public class name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFUSED = {"What", "How", "Whether", "Where", "Which", "Who", "Of"}
FOLDERS = ("gpuboost", "kernels")


def modules(root: Path = ROOT) -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            yield path.relative_to(root).as_posix(), ast.parse(path.read_text())


def docstrings(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, str]]:
    """Qualified name and text of the docstrings of a module, of its classes and functions, and of what it assigns."""
    body = getattr(tree, "body", [])
    assigned = inside or "the module"
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield assigned, node.value.value
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            assigned = f"{inside}.{ast.unparse(target)}".lstrip(".")
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from docstrings(node, f"{inside}.{node.name}".lstrip("."))


@cache
def offences(root: Path = ROOT) -> tuple[set[str], set[str]]:
    """One line for each docstring that begins with a refused word, and for each name of several public classes."""
    beginnings: set[str] = set()
    homes: dict[str, set[str]] = defaultdict(set)
    for path, tree in modules(root):
        for name, text in docstrings(tree):
            if text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0].strip(",.:;") in REFUSED:
                beginnings.add(f"docstring {path} {name}")
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(path)
    return beginnings, {f"class {name}" for name, paths in homes.items() if len(paths) > 1}


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    assert offences()[0] == set()


def test_a_public_class_name_means_one_thing() -> None:
    assert offences()[1] == set()


def test_offenders_are_found(tmp_path: Path) -> None:
    for folder in FOLDERS:
        (tmp_path / folder).mkdir()
    (tmp_path / "gpuboost" / "a.py").write_text(
        '"""How it is done."""\nclass Plan:\n    """A plan."""\n    x: int = 1\n    """Of a row."""\n'
        '    def f(self):\n        """Whether: yes."""\nWhatever = 1\n"""Whatever follows."""\n'
    )
    (tmp_path / "kernels" / "b.py").write_text("class Plan:\n    pass\nclass _Own:\n    pass\ndef f():\n    ''\n")
    beginnings, shared_names = offences(tmp_path)
    assert beginnings == {
        "docstring gpuboost/a.py the module", "docstring gpuboost/a.py Plan.x", "docstring gpuboost/a.py Plan.f"
    }  # fmt: skip
    assert shared_names == {"class Plan"}
