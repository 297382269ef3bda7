"""The console of all commands. rich is imported where one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def new_console(width: int | None = None) -> Console:
    """A console on standard output that raises BrokenPipeError when its reader has gone, as ``print`` does."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            """Leave the exit status to ``main``; rich would end the process with status 1."""
            raise BrokenPipeError

    return Output(width=width)
