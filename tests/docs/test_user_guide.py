"""What the documents say is so: their Python runs, the names in them exist, every public name is in them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import gpuboost as gb
from gpuboost import losses, metrics, public
from gpuboost.training.parameters.assembly import GROWTHS
from gpuboost.training.parameters.policies import STEPS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"  # written when the site is built
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "notebooks" / "README.md"]
PAGES = [page for page in PAGES if REFERENCE not in page.parents]
GUIDE, OF_LOSSES = ROOT / "docs" / "user_guide.md", ROOT / "docs" / "losses.md"
ESTIMATORS = [getattr(gb, name) for name in gb.__all__ if name.startswith("GradientBoosting")]


def blocks(page: Path) -> list[tuple[int, str]]:
    """The Python of a page, and the line that each block begins in."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(1)), match.group(1)) for match in found]


RUN = [
    "README.md",
    "docs/user_guide.md",
    "docs/losses.md",
    "docs/theory/langevin.md",
    "docs/theory/rgbm.md",
    "docs/theory/sampling.md",
    "docs/theory/asynchronous.md",
    "docs/theory/sharding.md",
    "docs/index.md",
    *(f"docs/how_to/{page.name}" for page in sorted((ROOT / "docs" / "how_to").glob("*.md")) if page.stem != "index"),
]


HEAVY = {  # thousands of rounds, a search over learners, kernels that no other page needs
    "docs/theory/langevin.md",
    "docs/theory/rgbm.md",
    "docs/theory/sharding.md",
    "docs/how_to/clusters.md",
    "docs/how_to/ranking.md",
    "docs/how_to/text.md",
    "docs/how_to/uncertainty.md",
    "docs/how_to/deployment.md",
    "docs/how_to/several_outputs.md",
    "docs/losses.md",
    "docs/user_guide.md",
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in HEAVY else []) for n in RUN])
def test_each_python_block_of_a_page_runs_by_itself(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder, with no names but its own: a reader copies one block."""
    page = ROOT / name
    assert blocks(page)
    for number, (line, source) in enumerate(blocks(page)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        exec(compile("\n" * line + source, str(page), "exec"), {"__name__": "page"})


def test_no_other_page_has_python_that_nobody_runs() -> None:
    run = {ROOT / name for name in (*RUN, "docs/gpu.md")}  # the last by tests/backends/test_gpu.py
    run |= set((ROOT / "docs" / "coming_from").glob("*.md"))  # by test_coming_from.py
    assert not [page for page in PAGES if page not in run and blocks(page)]


def test_links_lead_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text("utf-8"))]
    assert not [(page.name, link) for page, link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "README.md"])
def test_everything_written_is_within_reach_of_the_first_pages(page: Path) -> None:
    """Each decision, theory page and notebook is linked from docs/README.md or a page that it links."""
    linked = {(page.parent / link).resolve() for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text("utf-8"))}
    theory = sorted((ROOT / "docs" / "theory").glob("*.md"))
    assert theory
    assert {*theory, ROOT / "notebooks" / "README.md", GUIDE} <= linked
    if page.parent != ROOT:
        assert set((ROOT / "docs" / "decisions").glob("*.md")) <= linked


INNER = {"Plan", "Watchers"}  # of ``gb.callbacks``: a fit makes them, and passes on the first


def code_words(page: Path) -> set[str]:
    """Every word that stands in code, in a block or in the text."""
    text = page.read_text(encoding="utf-8")
    code = re.findall(r"```.*?```|`[^`]+`", text, flags=re.DOTALL)
    return {word for piece in code for word in re.findall(r"[A-Za-z_][A-Za-z_0-9]*", piece)}


@pytest.mark.parametrize("name", [name for name in gb.__all__ if name != "__version__"])
def test_every_public_name_is_in_the_guide(name: str) -> None:
    assert name in code_words(GUIDE), f"docs/user_guide.md: write `{name}` into the table of names, or the text"


FAMILIES = {public.class_name(entry) for entry in public.FAMILIES}


@pytest.mark.parametrize(
    ("page", "names"),
    [
        pytest.param(OF_LOSSES, losses.NAMES, id="losses"),
        pytest.param(OF_LOSSES, metrics.NAMES, id="metrics"),
        pytest.param(GUIDE, [*GROWTHS, *STEPS], id="growth and step"),
        pytest.param(GUIDE, FAMILIES, id="base_learner"),
        pytest.param(GUIDE, gb.callbacks.__all__, id="callbacks"),
    ],
)
def test_every_word_and_class_of_a_parameter_is_on_its_page(page: Path, names: Sequence[str]) -> None:
    missing = set(names) - code_words(page) - INNER
    assert not missing, f"{page.relative_to(ROOT)}: write about {', '.join(sorted(missing))}, as code"


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda found: found.__name__)
def test_every_parameter_is_in_the_guide_and_in_the_docstring(estimator: Any) -> None:
    parameters = set(estimator().get_params())
    assert not parameters - code_words(GUIDE)
    documented = re.findall(r"^    (\w[\w, ]*) : ", inspect.getdoc(estimator).replace("\n", "\n    "), re.MULTILINE)
    listed = {name.strip() for line in documented for name in line.split(",")}
    assert not parameters - listed


def test_every_parameter_of_the_guide_exists() -> None:
    """Those of the tables, and those that a function or an estimator is given in the text."""
    known = {name for estimator in ESTIMATORS for name in estimator().get_params()}
    text = GUIDE.read_text(encoding="utf-8").split("## Parameters")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", text, flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 10
    assert not named - known


@pytest.mark.slow
def test_names_after_gb_exist() -> None:
    for page in PAGES:
        for path in re.findall(r"\bgb((?:\.\w+)+)", page.read_text(encoding="utf-8")):
            found: Any = gb
            for name in path.strip(".").split("."):
                assert hasattr(found, name), f"{page.name}: gb{path}"
                found = getattr(found, name)


def test_defaults_in_the_guide_are_those_of_the_code() -> None:
    defaults = gb.GradientBoostingRegressor().get_params()
    text = GUIDE.read_text(encoding="utf-8")
    for name, shown in [("n_estimators", "100, 0.1"), ("max_depth", "6, none"), ("min_samples_leaf", "1, 1.0")]:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}`"))
        assert row.split("|")[2].strip() == shown
        assert defaults[name] == float(shown.split(",")[0])
