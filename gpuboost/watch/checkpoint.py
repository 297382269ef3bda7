"""Save the model while it grows."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from numbers import Integral
from typing import Any

from gpuboost.errors import RecipeError
from gpuboost.storage import checked_path
from gpuboost.types import Ensemble
from gpuboost.watch.record import Plan, Round


class Checkpoint:
    """Writes the model file to ``path`` every ``every`` rounds and when the fit ends.

    The file always holds the last model or the one before, also after a crash, never half of one. It is a model file
    with the state to continue: ``fit(resume_from=path)`` gives the model of an uninterrupted fit. On SIGTERM, which
    cluster schedulers send before they kill, the finished rounds are saved and the process exits with
    ``SystemExit(143)``.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 10) -> None:
        interval: Any = every
        if isinstance(interval, bool) or not isinstance(interval, Integral) or interval < 1:
            raise RecipeError(f"every: a checkpoint is due every 1 or more rounds; got {interval!r}.")
        self.path = checked_path(path)
        self.every = every
        self._last: Round | None = None
        self._saved = True
        self._write: Callable[..., None] = _not_begun
        self._restore: Callable[[], object] = _nothing

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, every={self.every})"

    def begin(self, plan: Plan) -> None:
        if not self.path.parent.is_dir():
            raise RecipeError(f"path: a checkpoint needs a folder that exists; {str(self.path.parent)!r} does not.")
        self._write = plan.write_model
        self._last, self._saved = None, True
        self._restore = _exit_on_sigterm()

    def __call__(self, record: Round) -> bool:
        self._last, self._saved = record, False
        if (record.round + 1) % self.every == 0:
            self._save(record)
        return False

    def end(self) -> None:
        """Save the rounds after the last checkpoint, also if the fit was interrupted."""
        try:
            if self._last is not None and not self._saved:
                self._save(self._last)
        finally:
            self._last = None  # a round holds the model, and functions of the fit, which cannot be pickled
            self._write, restore = _not_begun, self._restore
            self._restore = _nothing
            restore()

    def _save(self, record: Round) -> None:
        self._write(record.ensemble, str(self.path))
        self._saved = True


def _exit_on_sigterm() -> Callable[[], object]:
    """Have SIGTERM unwind the fit, as an interrupt does. Returns a function that restores the handler.

    Only the main thread may set signal handlers; a handler of the program is not replaced.
    """
    if threading.current_thread() is not threading.main_thread():
        return _nothing
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_DFL:
        return _nothing
    signal.signal(signal.SIGTERM, _exit)
    return lambda: signal.signal(signal.SIGTERM, before)


def _exit(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _nothing() -> None:
    pass


def _not_begun(ensemble: Ensemble, path: str) -> None:
    """Placeholder for the function of a fit that writes its model."""
    raise RuntimeError(f"no fit is running whose model could be written to {path}")
