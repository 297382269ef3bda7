"""The command line: ``gpuboost train | predict | export | info | demo | warmup | bench``.

Exit status: 0 if it worked; 1 if a check of ``demo`` or a run of ``bench`` failed; 2 for a wrong command or input,
with one line of advice; 130 if interrupted.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from gpuboost.errors import GpuBoostError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; ``arguments``: the arguments after the program's name (``sys.argv`` by default).

    Returns the exit status. A wrong command line ends in SystemExit, as argparse does it.
    """
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # also while the library is imported
        print("\ngpuboost: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(arguments: Sequence[str] | None) -> int:
    from gpuboost.cli.parser import build_parser

    options = build_parser().parse_args(arguments)
    try:
        run: Callable[..., int] = import_module(f"gpuboost.cli.{options.command}").run
        with _warnings_in_a_line(options.command):
            return run(options)
    except BrokenPipeError:
        raise
    except (GpuBoostError, OSError) as error:
        if options.traceback:
            raise
        print(f"gpuboost {options.command}: {_one_line(error)}", file=sys.stderr)
        return 2


@contextmanager
def _warnings_in_a_line(command: str) -> Iterator[None]:
    """Context in which a warning is printed as one line, without its place in the library's source."""
    plain = warnings.formatwarning

    def one_line(message: Warning | str, *_: object, **__: object) -> str:
        return f"gpuboost {command}: warning: {' '.join(str(message).split())}\n"

    warnings.formatwarning = one_line
    try:
        yield
    finally:
        warnings.formatwarning = plain


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
