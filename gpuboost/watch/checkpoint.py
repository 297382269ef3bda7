"""Save the model while it grows."""

from __future__ import annotations

import os
from pathlib import Path

from gpuboost.errors import RecipeError
from gpuboost.watch.record import Plan, Round


class Checkpoint:
    """Writes the model file to ``path`` every ``every`` rounds and when the fit ends.

    Whoever reads it, also after a crash, finds the last model or the one before, never half of one. Continue with
    ``fit(init_model=path)``.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 10) -> None:
        if every < 1:
            raise RecipeError(f"every: a checkpoint is due every 1 or more rounds; got {every!r}.")
        self.path = Path(path)
        self.every = every
        self._last: Round | None = None
        self._saved = True

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, every={self.every})"

    def begin(self, plan: Plan) -> None:
        if not self.path.parent.is_dir():
            raise RecipeError(f"path: a checkpoint needs a folder that exists; {str(self.path.parent)!r} does not.")
        self._write = plan.write_model
        self._last, self._saved = None, True

    def __call__(self, record: Round) -> bool:
        self._last, self._saved = record, False
        if (record.round + 1) % self.every == 0:
            self._save(record)
        return False

    def end(self) -> None:
        """Save what came after the last checkpoint, also if the fit was interrupted."""
        if self._last is not None and not self._saved:
            self._save(self._last)

    def _save(self, record: Round) -> None:
        self._write(record.ensemble, str(self.path))
        self._saved = True
