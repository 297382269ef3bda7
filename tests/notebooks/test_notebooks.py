"""Every notebook runs from top to bottom, in a namespace and a folder of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """A client of a running kernel. Notebooks share it, since its imports take as long as most of them."""
    manager_of = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    manager, client = manager_of.start_new_kernel(kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client: Any, code: str) -> None:
    """Run a cell. Raises an AssertionError with the traceback of the kernel if it fails."""
    reply = client.execute_interactive(code, timeout=300, output_hook=lambda message: None, allow_stdin=False)
    content = reply["content"]
    assert content["status"] == "ok", "\n".join(content.get("traceback", [content["status"]]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the notebook machinery; the kernel is another process
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, kernel: Any, tmp_path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert any(text.strip() for text in code)
    run(kernel, f"%reset -f\nimport os; os.chdir({os.fspath(tmp_path)!r}); del os")
    for text in code:
        run(kernel, text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_begins_with_its_only_title(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "markdown"]
    titles = [line for cell in cells for line in cell["source"] if line.startswith("# ")]
    assert titles == cells[0]["source"][:1]
