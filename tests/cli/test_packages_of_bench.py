"""Benchmarks name the packages that they need, and take every peer that their suites ask for."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpuboost import benchmarks
from gpuboost.benchmarks.gpu import categories
from gpuboost.benchmarks.harness import alternation, distributions, peers
from gpuboost.benchmarks.harness.experiments import Experiment, Options, experiments
from gpuboost.benchmarks.suites import defaults, intervals, sampling
from gpuboost.cli import bench, main

FOLDER = Path(benchmarks.__path__[0])
OF_TABLES: dict[str, tuple[str, Callable[[Options], Any]]] = {
    "gpu/categories.py": ("gpu-speed", categories.libraries),
    "harness/alternation.py": ("cpu-use", alternation.beside),
    "harness/distributions.py": ("intervals", distributions.methods),
    "suites/intervals.py": ("intervals", intervals.methods),
    "suites/defaults.py": ("defaults", defaults.methods),
    "suites/sampling.py": ("sampling", sampling._asked),
}
"""Modules that ask for names out of a table, their suites, and the functions that do so."""


def test_a_package_that_a_suite_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data_dir: Path, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUBOOST_BENCH_CACHE", str(tmp_path))
    assert main(["bench", "quality", "--case", "adult", "--size", "small", "--wait", "0"]) == 2
    said = capsys.readouterr().err
    assert "SUITE: needs the package pandas, which is not installed; pip install 'gpuboosting[bench]'" in said


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("gpuboost.benchmarks.harness.peers.installed", lambda name: name != "catboost")
    assert main(["bench", "quality", "--peer", "catboost"]) == 2
    said = capsys.readouterr().err
    assert "--peer: catboost is not installed; pip install 'gpuboosting[bench]' (lightgbm, catboost," in said
    assert "xgboost-cpu" in said


@dataclass(frozen=True)
class Asked(Options):
    """Options that note what they are asked for, none of which is there."""

    names: set[str] = field(default_factory=set)

    def beside(self, library: str) -> bool:
        self.names.add(library)
        return False


def names_in(call: ast.Call, around: list[ast.AST]) -> list[str] | None:
    """Names in the text that ``options.beside`` is called with; None if they are elsewhere."""
    name = call.args[0]
    if isinstance(name, ast.Constant):
        return [str(name.value)]
    for node in around:
        for loop in getattr(node, "generators", []):
            listed = isinstance(loop.iter, ast.Tuple) and all(isinstance(one, ast.Constant) for one in loop.iter.elts)
            if listed and ast.dump(loop.target).replace("Store", "Load") == ast.dump(name):
                return [one.value for one in loop.iter.elts]
    return None


def calls(node: ast.AST, around: list[ast.AST]) -> Iterator[tuple[ast.Call, list[ast.AST]]]:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "options.beside":
        yield node, around
    for child in ast.iter_child_nodes(node):
        yield from calls(child, [node, *around])


def suite_of(module: str, known: dict[str, Experiment]) -> Experiment:
    if module.startswith("gpu/"):
        return known["gpu-speed"]
    own = {"asynchronous": "async", "async_threads": "async", "small_fits": "cpu-use"}
    stem = module.split("/")[1].removesuffix(".py")
    return known[own.get(stem, stem).replace("_", "-")]


def test_every_name_that_a_suite_asks_for_is_one_of_its_peers() -> None:
    known = experiments()
    of_tables, found = set(), set()
    for path in sorted(FOLDER.rglob("*.py")):
        module = path.relative_to(FOLDER).as_posix()
        for call, around in calls(ast.parse(path.read_text()), []):
            if (names := names_in(call, around)) is None:
                of_tables.add(module)
            else:
                found |= {(suite_of(module, known).name, name) for name in names}
    assert of_tables == set(OF_TABLES), "OF_TABLES lists the functions that ask for names out of tables"
    for suite, ask in OF_TABLES.values():
        asked = Asked(True, (), 1, 1, lambda _: None)
        ask(asked)
        assert asked.names
        found |= {(suite, name) for name in asked.names}
    assert {("gpu-speed", "py-boost"), ("intervals", "ngboost"), ("rgbm", "sklearn")} <= found
    assert {(suite, name) for suite, name in found if name not in (*peers.NAMES, *known[suite].peers)} == set()


@pytest.mark.parametrize(
    ("suite", "of_suite"),
    [("gpu-speed", ", py-boost"), ("intervals", ", ngboost"), ("outputs", ", py-boost"), ("quality", "")],
)
def test_an_unknown_peer_is_refused_with_those_of_the_suite(
    suite: str, of_suite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "ngboost" if "py" in of_suite else "py-boost"
    assert main(["bench", suite, "--peer", other]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"--peer: {suite} has none called '{other}'; its peers are gpuboost-partition, " in said
    assert said.endswith(f"catboost, sklearn{of_suite}.")


def test_the_peers_of_an_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of its own is accepted if it is installed; ``--peers`` are all names."""
    from gpuboost.cli.parser import build_parser

    suite = experiments()["gpu-speed"]
    monkeypatch.setattr(peers, "find_spec", lambda module: module if module == "py_boost" else None)
    one = build_parser().parse_args(["bench", "gpu-speed", "--peer", "py-boost"])
    assert bench._peers(suite, one) == ("py-boost",)
    assert Options(True, ("py-boost",), 1, 1, lambda _: None).beside("py-boost")
    every = build_parser().parse_args(["bench", "gpu-speed", "--peers"])
    assert bench._peers(suite, every) == (*peers.NAMES, "py-boost")
    monkeypatch.setattr(peers, "find_spec", lambda module: None)
    with pytest.raises(ValueError, match="--peer: py-boost is not installed; pip install"):
        bench._peers(suite, one)
