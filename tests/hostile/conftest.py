"""What the hostile campaign's tests share: counts that are printed at the end, and one corpus of model files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hostile.campaign import Tally
from support.hostile.corpus import Corpus


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
