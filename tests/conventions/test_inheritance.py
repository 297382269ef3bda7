"""Classes are abstract or final: a class of this package derives from protocols and abstract classes of it only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"gpuboost": "gpuboost", "kernels": "gpuboost.kernels", "benchmarks": "gpuboost.benchmarks"}
ABSTRACT = ("ABC", "Protocol")
EXCEPTED = ("Exception", "Error", "Warning")  # callers catch errors by a common class


@dataclass
class Package:
    """The classes by qualified name, and the qualified names of what modules import."""

    classes: dict[str, tuple[str, ast.ClassDef]]
    imported: dict[tuple[str, str], str]

    @classmethod
    def of(cls, root: Path) -> Package:
        package = cls({}, {})
        for folder, name in FOLDERS.items():
            for path in sorted((root / folder).rglob("*.py")):
                parts = path.relative_to(root / folder).with_suffix("").parts
                package.read(".".join([name, *(part for part in parts if part != "__init__")]), path.read_text())
        return package

    def read(self, module: str, text: str) -> None:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                self.classes[f"{module}.{node.name}"] = module, node
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imported[module, alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def bases(self, name: str) -> list[str]:
        """Qualified names of the base classes, through modules that pass them on."""
        module, node = self.classes[name]
        bases = [f"{module}.{ast.unparse(base).split('[')[0]}" for base in node.bases]
        for i in range(len(bases)):
            while bases[i] not in self.classes and tuple(bases[i].rsplit(".", 1)) in self.imported:
                where, _, what = bases[i].rpartition(".")
                bases[i] = self.imported[where, what]
        return bases

    def is_abstract(self, name: str) -> bool:
        decorators = [one for child in self.classes[name][1].body for one in getattr(child, "decorator_list", [])]
        declared = any(base.rsplit(".", 1)[-1] in ABSTRACT for base in self.bases(name))
        return declared or any(ast.unparse(one).endswith("abstractmethod") for one in decorators)

    def is_excepted(self, name: str) -> bool:
        if name not in self.classes:
            return name.endswith(EXCEPTED)
        return any(map(self.is_excepted, self.bases(name)))

    def concrete_bases(self) -> Iterator[str]:
        """Lines "class <- base" for each base that is a concrete class of the package, and no exception to the rule."""
        for name in self.classes:
            for base in self.bases(name):
                if base in self.classes and not self.is_abstract(base) and not self.is_excepted(base):
                    yield f"{name} <- {base}"


@pytest.mark.slow
def test_no_class_derives_from_a_concrete_class_of_the_package() -> None:
    assert sorted(Package.of(ROOT).concrete_bases()) == []


def test_a_concrete_base_is_found(tmp_path: Path) -> None:
    (tmp_path / "gpuboost").mkdir()
    (tmp_path / "gpuboost" / "a.py").write_text(
        "from abc import ABC\nclass Shape(ABC): ...\nclass Round(Shape): ...\nclass Oval(Round): ...\n"
        "class MyError(ValueError): ...\nclass Narrower(MyError): ...\n"
    )
    (tmp_path / "gpuboost" / "b.py").write_text(
        "from gpuboost.a import Round as Circle\nfrom gpuboost.a import Shape\nclass Disc(Circle): ...\n"
        "class Square(Shape[int]): ...\n"
    )
    assert sorted(Package.of(tmp_path).concrete_bases()) == [
        "gpuboost.a.Oval <- gpuboost.a.Round",
        "gpuboost.b.Disc <- gpuboost.a.Round",
    ]
