"""Tools of the hostile campaign: how many cases there are, what became of them, and what an error may look like."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gpuboost.errors import GpuBoostError

SCALE = float(os.environ.get("GPUBOOST_HOSTILE_SCALE", "1"))
"""Factor on the number of cases of every long form."""

SECONDS = 60.0
"""Most seconds that one case may take; a machine may be busy."""


def many(cases: int) -> int:
    """The number of cases of a long form."""
    return max(1, round(cases * SCALE))


class TooLong(BaseException):
    """A case did not end. No ``except Exception`` of the library catches it."""


@contextmanager
def no_longer_than(seconds: float = SECONDS) -> Iterator[None]:
    """Raise TooLong where the block takes longer; end the process with its stacks where even that cannot be raised."""

    def stop(number: int, frame: object) -> None:
        raise TooLong(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(2 * seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


class Tally:
    """Counts of a test, printed at the end of the run, and the cases that did not behave."""

    def __init__(self, counts: dict[str, int], lists: dict[str, list[str]]) -> None:
        self.counts = counts
        self.lists = lists
        self.wrong: list[str] = []

    def add(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number

    def show(self, what: str, names: Iterable[str]) -> None:
        """Names that are printed at the end of the run, one a line."""
        self.lists[what] = sorted(names)

    def fault(self, case: object, what: object) -> None:
        self.add("faults")
        self.wrong.append(f"{case}: {what}"[:1500])

    def check(self) -> None:
        """Fail with the cases that did not behave, the first ones of them."""
        assert not self.wrong, f"{len(self.wrong)} faults\n" + "\n".join(self.wrong[:25])


def outcome(call: Callable[[], object]) -> Exception | None:
    """The exception of a call, without its warnings; None where it returns."""
    with warnings.catch_warnings(action="ignore"), no_longer_than():
        try:
            call()
        except Exception as error:
            return error
    return None


def is_refusal(error: Exception, *names: str) -> bool:
    """True for an error that a user can act on: the library's own, or a ValueError or TypeError that names one of
    ``names``, the argument, on its first line."""
    first = str(error).partition("\n")[0]
    named = any(re.search(rf"\b{re.escape(name)}\b", first) for name in names)
    if isinstance(error, GpuBoostError):
        return named or not names
    return type(error) in (ValueError, TypeError) and named


def described(error: Exception) -> str:
    """Class, message and innermost place of an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
    return f"{type(error).__name__}: {str(error)[:300]}{where}"


def values_of(folder: Any) -> set[str]:
    """Names of the files in a folder."""
    return {entry.name for entry in os.scandir(folder)}
