"""What the hostile campaign's tests share: a mark, counts that are printed at the end, one corpus of model files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hostile.campaign import Tally
from support.hostile.corpus import Corpus


@pytest.hookimpl(tryfirst=True)  # before ``-m`` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the campaign slow, but for its table of parameters, which a new parameter has to enter."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name != "test_table.py":
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """Counts of this test; ``tests/conftest.py`` prints them."""
    counts: dict[str, int] = {}
    lists: dict[str, list[str]] = {}
    request.node.user_properties += [("counts", counts), ("lists", lists)]
    return Tally(counts, lists)


@pytest.fixture(scope="package")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Model files of every kind, written once for each process of the tests."""
    folder: Path = tmp_path_factory.mktemp("corpus")
    return Corpus(folder)
