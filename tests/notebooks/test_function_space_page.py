"""The theory page reads the loop line by line, so the lines must be those of the loop."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuboost import losses

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory" / "function_space.md"


def test_quotes_of_the_loop_are_exact() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## The loop, line by line")[1].split("\n## ")[0]
    quoted = re.findall(r"^\| `(.+?)` \|", section, flags=re.MULTILINE)
    loop = (ROOT / "gpuboost" / "boosting.py").read_text(encoding="utf-8")
    assert len(quoted) >= 10
    missing = [line for line in quoted if line not in loop]
    assert not missing


def test_links_lead_somewhere() -> None:
    pages = [PAGE, ROOT / "notebooks" / "README.md"]
    links = [(page, link) for page in pages for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text("utf-8"))]
    assert links
    assert not [link for page, link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("name", ["squared_error", "huber", "logistic", "softmax"])
def test_losses_that_the_page_calls_smooth(name: str) -> None:
    loss = losses.Softmax(3) if name == "softmax" else losses.get(name)
    assert loss.smoothness is not None


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie", "exponential", "absolute_error", "quantile"])
def test_losses_that_the_page_calls_not_smooth(name: str) -> None:
    assert losses.get(name).smoothness is None
