"""The package as a user finds it: what importing it costs, what it is called, what its names lead to."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points, metadata
from importlib.resources import files
from pathlib import Path
from pkgutil import walk_packages

import pytest
from support.stubs import stubs

import gpuboost as gb
from gpuboost import benchmarks, public
from gpuboost.training.parameter_json import POLICIES

ROOT = Path(__file__).parents[2]
HEAVY = ("cupy", "IPython", "joblib", "matplotlib", "numba", "pandas", "pyarrow", "rich", "scipy", "sklearn")


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, gpuboost; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", gb.__all__)
def test_every_public_name_leads_somewhere(name: str) -> None:
    assert getattr(gb, name) is not None


def test_lists_of_public_names_agree() -> None:
    assert set(gb.__all__) == {"__version__", *public.PUBLIC, *public.MODULES}
    assert len(gb.__all__) == len(set(gb.__all__))
    assert dir(gb) == sorted(gb.__all__)


@pytest.mark.parametrize(("path", "text"), stubs().items(), ids=lambda value: getattr(value, "parent", Path()).name)
def test_the_type_stubs_are_those_of_the_tables(path: Path, text: str) -> None:
    assert path.read_text() == text, "run .venv/bin/python tests/support/stubs.py"


@pytest.mark.parametrize("package", ["gpuboost", "gpuboost.export", "gpuboost.learners", "gpuboost.losses"])
def test_a_stub_names_what_the_package_has(package: str) -> None:
    stub = ast.parse(files(package).joinpath("__init__.pyi").read_text())
    named = {alias.asname for node in ast.walk(stub) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert named == set(import_module(package).__all__)


def test_every_module_of_the_benchmarks_is_imported() -> None:
    """Some are run by hand alone."""
    prefix = f"{benchmarks.__name__}."
    names = [module.name for module in walk_packages(benchmarks.__path__, prefix)]
    assert f"{prefix}harness.round_parts" in names
    for name in names:
        import_module(name)


def test_words_of_the_tables_are_those_of_the_classes() -> None:
    for word, entry in public.LOSSES.items():
        assert public.loaded(entry).name == word
    for word, entry in (public.SMOOTH_FAMILIES | public.TREE_FAMILIES).items():
        assert public.loaded(entry).kind == word


def test_policies_of_model_files_are_those_of_the_tables() -> None:
    families = {public.class_name(entry) for entry in (public.SMOOTH_FAMILIES | public.TREE_FAMILIES).values()}
    assert set(POLICIES) == {*public.POLICIES, *public.IMPLIED_POLICIES, *families}
    assert all(policy.__name__ == name for name, policy in POLICIES.items())


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Boosting'"):
        gb.Boosting  # noqa: B018, the look-up is what is tested


def test_metadata() -> None:
    about = metadata("gpuboosting")
    assert about["Version"] == gb.__version__
    assert about["License-Expression"] == "BSD-3-Clause"
    assert about["Requires-Python"] == ">=3.11"
    extras = {"cuda12", "cuda13", "ray", "plot", "cli", "bench", "docs", "integrations", "test", "dev", "all"}
    assert set(about.get_all("Provides-Extra") or ()) == extras
    assert {script.value for script in entry_points(group="console_scripts", name="gpuboost")} == {"gpuboost.cli:main"}


def test_it_is_typed_and_holds_its_kernels() -> None:
    assert files("gpuboost").joinpath("py.typed").is_file()
    assert files("gpuboost.kernels").joinpath("__init__.py").is_file()


def test_every_folder_with_code_is_packaged() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    folders = {path.parent for top in ("gpuboost", "kernels", "benchmarks") for path in (ROOT / top).rglob("*.py")}
    found = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    packages = {name if name.startswith("gpuboost") else f"gpuboost.{name}" for name in found}
    assert listed == packages


def test_every_package_has_a_docstring() -> None:
    for folder in {path.parent for top in ("gpuboost", "kernels") for path in (ROOT / top).rglob("*.py")}:
        assert (folder / "__init__.py").read_text().startswith('"""'), folder


def test_kernels_import_nothing_of_the_library_but_each_other() -> None:
    for path in (ROOT / "kernels").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                named = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
                for module in named:
                    assert not module.startswith("gpuboost") or module.startswith("gpuboost.kernels"), (path, module)


PAGES = sorted(
    [*ROOT.glob("*.md"), *(page for folder in ("docs", "benchmarks") for page in (ROOT / folder).rglob("*.md"))]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


def is_kernel(node: ast.AST) -> bool:
    marks = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(isinstance(mark, ast.Name) and mark.id in ("kernel", "jit") for mark in marks)


def outside_of_kernels(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node of what Python itself runs of a file."""
    waiting = [tree]
    while waiting:
        yield (node := waiting.pop())
        waiting += [child for child in ast.iter_child_nodes(node) if not is_kernel(child)]


@pytest.mark.slow
def test_inner_kernels_are_called_by_kernels_alone() -> None:
    """Those with ``_`` have no entry for Python (kernels/common/jit.py): a call from there would end the process."""
    trees = {path: ast.parse(path.read_text()) for path in (ROOT / "kernels").rglob("*.py")}
    inner = {node.name for tree in trees.values() for node in tree.body if is_kernel(node) and node.name[0] == "_"}
    assert len(inner) > 50
    named = re.compile(rf"\b({'|'.join(map(re.escape, sorted(inner)))})\b")
    for folder in ("gpuboost", "benchmarks", "tests"):
        texts = {path: path.read_text() for path in (ROOT / folder).rglob("*.py")}
        trees |= {path: ast.parse(text) for path, text in texts.items() if named.search(text)}
    modules = {path.stem for path in (ROOT / "kernels").rglob("*.py")} | {"kernels"}
    for path, tree in trees.items():
        of_kernels = path.is_relative_to(ROOT / "kernels")
        for node in outside_of_kernels(tree):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Name) and of_kernels:
                assert node.id not in inner, where
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                assert node.attr not in inner, where
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpuboost.kernels"):
                assert not {alias.name for alias in node.names} & inner or of_kernels, where


def test_another_distribution_of_that_name_is_warned_of(tmp_path: Path) -> None:
    from gpuboost._imports.namesake import warn_of_another_distribution

    warn_of_another_distribution(tmp_path / "gpuboost")
    (tmp_path / "gpuboost-0.3.1.dist-info").mkdir()
    with pytest.warns(UserWarning, match="distribution 'gpuboost-0.3.1' is installed.*pip uninstall gpuboost"):
        warn_of_another_distribution(tmp_path / "gpuboost")


def test_all_extras_leave_other_boosting_libraries_alone() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    users = [need for name in ("all", "bench", "cli", "plot", "ray") for need in extras[name]]
    assert not [need for need in users if "xgboost" in need]
    assert "bench" not in extras["all"][0]
