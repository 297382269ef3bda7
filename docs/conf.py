"""The documentation as a site: ``pip install -e '.[docs]'``, then ``sphinx-build -W -c docs . site``.

The repository is the source folder, so that the pages' links are those of the repository. The pages of the API
reference are written from ``gpuboost/public.py`` before each build.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs")]

import reference_pages  # noqa: E402  # it lies beside this file

import gpuboost  # noqa: E402

project = "gpuboost"
author = "The gpuboost authors"
release = gpuboost.__version__
root_doc = "docs/index"

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon", "myst_parser", "sphinx_copybutton"]
include_patterns = ["docs/**", "*.md", "benchmarks/*.md", "kernels/*.md", "notebooks/*.md", "tests/*/README.md"]
exclude_patterns = ["README.md", "docs/README.md"]  # the start pages of the repository; the site has its own
language = "en"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # model_file.md and others begin deeper levels where it reads better

autodoc_typehints = "none"  # the sections of docstrings hold shapes and types
napoleon_use_rtype = False
napoleon_use_ivar = True
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"gpuboost {release}"
html_copy_source = False
html_show_sphinx = False


def setup(app: Any) -> None:
    app.connect("builder-inited", lambda _: reference_pages.write(ROOT / "docs/reference"))
    app.connect("source-read", site_links)
    app.connect("autodoc-process-docstring", absolute_values)
    app.connect("autodoc-skip-member", of_metadata_routing)


def site_links(app: Any, page: str, source: list[str]) -> None:
    """Lead links to the repository's start pages to the site's."""
    up = "../" * page.count("/")
    for start in ("docs/README.md", "README.md"):
        for target in (f"]({up}{start})", "](README.md)" if page.startswith("docs/") else ""):
            if target:
                source[0] = source[0].replace(target, f"]({up}docs/index.md)")


def absolute_values(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Escape the bars of |x| in docstrings, where reStructuredText would look for a substitution."""
    for number, line in enumerate(lines):
        parts = line.split("``")
        lines[number] = "``".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts))


def of_metadata_routing(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that scikit-learn adds to every estimator for its metadata routing."""
    return True if name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request")) else None
