"""Every public name stands in the API reference of the documentation's site; `.ci/run` builds the site itself."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpuboost import public

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    monkeypatch.syspath_prepend(ROOT / "docs")
    return dict(importlib.import_module("reference_pages").pages())


@pytest.mark.slow
def test_every_public_name_has_an_entry_on_one_page(pages: Mapping[str, str]) -> None:
    headings = [heading for text in pages.values() for heading in re.findall(r"^## (.*)$", text, flags=re.MULTILINE)]
    assert len(headings) == len(set(headings))
    assert {f"gpuboost.{name}" for name in public.PUBLIC} <= set(headings)
    assert {f"gpuboost.export.{name}" for name in public.EXPORTS} <= set(headings)
    losses = {entry.split(":")[1] for entry in public.LOSSES.values()}
    assert {f"gpuboost.losses.{name}" for name in losses} <= set(headings)


@pytest.mark.slow
def test_every_page_is_linked_from_the_index(pages: Mapping[str, str]) -> None:
    for name in pages:
        assert name == "index.md" or f"({name})" in pages["index.md"]
