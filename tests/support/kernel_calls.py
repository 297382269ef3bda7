"""Calls of a kernel that Python makes, counted."""

from __future__ import annotations

from typing import Any

import pytest


def noted_calls(module: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each call of ``module.grow`` from now on."""
    made: list[int] = []
    compiled = module.grow
    monkeypatch.setattr(module, "grow", lambda *given: made.append(1) or compiled(*given))
    return made
