"""Files and functions have a size that a reader can take in; longer ones give the reason here."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("gpuboost", "kernels", "benchmarks")
MOST_FILES, MOST_MODULES_AT_THE_ROOT, MOST_LINES, MOST_OF_A_FUNCTION = 25, 15, 400, 60
SOURCES = {".py", ".pyi", ".cu", ".cuh", ".c", ".h", ".md"}

LONG_MODULES = {
    "gpuboost/backends/cuda/backend.py": "one short method for each verb of the protocol",
    "gpuboost/data/dataset.py": "one class of short, documented methods",
    "gpuboost/types.py": "all shapes and dtypes in one place",
}

DOCUMENTED = "the documentation of its parameters is longer than the code"
KEYWORDS = "keyword parameters, and nothing but their assignment"
ONE_EXP = "several kernels, compiled for one exp each"
ONE_CALL = "all steps in one call, since calls of several kernels would take longer than the steps"
LONG_FUNCTIONS = {
    "gpuboost/api/classifier.py __init__": KEYWORDS,
    "gpuboost/api/ranker.py __init__": KEYWORDS,
    "gpuboost/api/regressor.py __init__": KEYWORDS,
    "gpuboost/api/memory.py estimate_memory": DOCUMENTED,
    "gpuboost/api/ranker.py fit": DOCUMENTED,
    "gpuboost/model_selection/search.py search": DOCUMENTED,
    "gpuboost/presets/asynch_sgbdt.py asynch_sgbdt_paper": DOCUMENTED,
    "kernels/gradients/ranking.py lambdas_of": ONE_EXP,
    "kernels/gradients/smoothed_ranking.py smoothed_of": ONE_EXP,
    "kernels/gradients/unbiased_ranking.py passes_of": ONE_EXP,
    "kernels/growth/large_trees.py grow": ONE_CALL,
    "kernels/growth/small_stump.py grow": ONE_CALL,
    "kernels/growth/small_trees.py grow": ONE_CALL,
    "kernels/splits/columns.py search": "one loop over stored entries, whose parts share a dozen numbers",
}


def modules(root: Path) -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            yield path.relative_to(root).as_posix(), path.read_text()


def long_modules(root: Path = ROOT) -> set[str]:
    return {name for name, text in modules(root) if len(text.splitlines()) > MOST_LINES}


def long_functions(root: Path = ROOT) -> set[str]:
    found = set()
    for name, text in modules(root):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                if node.end_lineno - node.lineno + 1 > MOST_OF_A_FUNCTION:
                    found.add(f"{name} {node.name}")
    return found


def full_folders(root: Path = ROOT) -> set[str]:
    """Folders of too many files, those of tests and documents too; and ``gpuboost`` itself, of too many modules."""
    files = [path for top in (*FOLDERS, "tests", "docs") for path in (root / top).rglob("*") if path.suffix in SOURCES]
    sizes = Counter(path.parent.relative_to(root).as_posix() for path in files)
    found = {folder for folder, size in sizes.items() if size > MOST_FILES}
    modules_at_the_root = len(list((root / "gpuboost").glob("*.py")))
    return found | {"gpuboost"} if modules_at_the_root > MOST_MODULES_AT_THE_ROOT else found


def test_folders_have_few_files() -> None:
    assert full_folders() == set(), (
        f"at most {MOST_FILES} files a folder, {MOST_MODULES_AT_THE_ROOT} modules in gpuboost"
    )


def test_modules_are_short_or_give_a_reason() -> None:
    assert long_modules() == set(LONG_MODULES), f"divide what has over {MOST_LINES} lines, or give the reason above"


def test_functions_are_short_or_give_a_reason() -> None:
    said = f"divide what has over {MOST_OF_A_FUNCTION} lines, or give the reason above"
    assert long_functions() == set(LONG_FUNCTIONS), said


def test_offenders_are_found(tmp_path: Path) -> None:
    for name, count in (("gpuboost", 16), ("gpuboost/full", 26), ("kernels/not_full", 25), ("tests/full", 26)):
        (tmp_path / name).mkdir(parents=True)
        for number in range(count):
            (tmp_path / name / f"m{number}.py").write_text("x = 1\n")
    (tmp_path / "gpuboost" / "m0.py").write_text("x = 1\n" * 401)
    (tmp_path / "kernels" / "f.py").write_text("def f():\n" + "    x = 1\n" * 60 + "def g():\n" + "    x = 1\n" * 59)
    assert full_folders(tmp_path) == {"gpuboost", "gpuboost/full", "tests/full"}
    assert long_modules(tmp_path) == {"gpuboost/m0.py"}
    assert long_functions(tmp_path) == {"kernels/f.py f"}
