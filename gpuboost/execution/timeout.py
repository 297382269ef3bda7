"""Timeout of a worker's answer, and the message for a worker that exceeds it."""

from __future__ import annotations

from typing import Any

from gpuboost.arguments import is_one_of
from gpuboost.errors import RecipeError
from gpuboost.execution.engine import EngineKind
from gpuboost.execution.machines import EngineTraits
from gpuboost.execution.rules import positive
from gpuboost.records import declared

ENGINES_OWN = "auto"


def timeout_message(worker: int, seconds: float | None) -> str:
    """Message for a worker that did not answer in time."""
    return (
        f"Worker {worker} gave no answer for {seconds:g} s, and counts as lost. If its trees take that long, raise "
        "Asynchronous(timeout=)."
    )


def check(timeout: Any) -> None:
    """Raise RecipeError unless it is "auto", None, or a number of seconds."""
    if timeout is not None and not is_one_of(timeout, (ENGINES_OWN,)):
        positive("timeout", timeout)


def limited(kind: EngineKind, timeout: Any) -> EngineKind:
    """The engine with that timeout; "auto" keeps its own.

    Raises:
        RecipeError: if the engine has no timeout.
    """
    if timeout == ENGINES_OWN:
        return kind
    with_timeout = declared(EngineTraits, kind).with_timeout
    if with_timeout is None:
        raise RecipeError(
            f"timeout: {type(kind).__name__} cannot tell a worker that hangs; got {timeout!r}. Leave it out, or use "
            "engine='threads' or 'ray'."
        )
    changed: EngineKind = with_timeout(timeout)
    return changed
