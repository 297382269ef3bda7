"""Arguments of numba kernels: few parameters, and records that numba passes at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_PARAMETERS, MOST_FIELDS = 16, 10
COMPILED = {"kernel", "jit", "for_this_process", "intrinsic"}


def trees(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((root / "kernels").rglob("*.py")):
        yield path.relative_to(root).as_posix(), ast.parse(path.read_text())


def compiled(root: Path = ROOT) -> Iterator[tuple[str, int]]:
    """Name and number of parameters of each compiled function."""
    for path, tree in trees(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                decorators = {ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in node.decorator_list}
                args = node.args
                if decorators & COMPILED:
                    yield f"{path} {node.name}", len(args.posonlyargs + args.args + args.kwonlyargs)


def records(root: Path = ROOT) -> Iterator[tuple[str, int, list[str]]]:
    """Name, number of fields and annotations of each record."""
    for path, tree in trees(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "NamedTuple" for base in node.bases):
                fields = [ast.unparse(line.annotation) for line in node.body if isinstance(line, ast.AnnAssign)]
                yield f"{path} {node.name}", len(fields), fields


def too_long(root: Path = ROOT) -> set[str]:
    """Kernels of too many parameters, and records of too many fields or with a record or None in a field."""
    names = {name.split()[-1] for name, _, _ in records(root)}
    kernels = {name for name, count in compiled(root) if count > MOST_PARAMETERS}
    long = {name for name, count, _ in records(root) if count > MOST_FIELDS}
    nested = {name for name, _, fields in records(root) if any(field in names or "None" in field for field in fields)}
    return kernels | long | nested


def test_kernels_have_few_parameters_and_records_few_fields() -> None:
    assert len(list(compiled())) > 200
    assert len(list(records())) > 10
    assert too_long() == set()


def test_offenders_are_found(tmp_path: Path) -> None:
    (tmp_path / "kernels" / "growth").mkdir(parents=True)

    def names(count: int) -> list[str]:
        return [f"a{i}" for i in range(count)]

    def record(name: str, fields: list[str]) -> str:
        return f"class {name}(NamedTuple):\n" + "".join(f"    {field}\n" for field in fields)

    (tmp_path / "kernels" / "growth" / "a.py").write_text(
        f"@kernel\ndef fits({', '.join(names(16))}):\n    pass\n"
        f"@kernel\ndef long({', '.join(names(17))}):\n    pass\n"
        f"@jit(cache=True)\ndef keyword({', '.join(names(16))}, *, b):\n    pass\n"
        + record("Ten", [f"{name}: Any" for name in names(10)])
        + record("Eleven", [f"{name}: Any" for name in names(11)])
        + record("Nested", ["a: Ten"])
        + record("Optional", ["a: Any | None"])
    )
    assert too_long(tmp_path) == {
        f"kernels/growth/a.py {name}" for name in ("long", "keyword", "Eleven", "Nested", "Optional")
    }
