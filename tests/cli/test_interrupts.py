"""Ctrl-C while the command line is still importing: one line and status 130."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.examples import daily

import gpuboost

PLACE = Path(gpuboost.__file__).parents[1]

AT_AN_IMPORT = """
import os, signal, sys

class Interrupter:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Interrupter())
from gpuboost.cli import main
raise SystemExit(main(["info"]))
"""


@pytest.mark.parametrize("module", daily(["gpuboost.cli.parser", "argparse", "gpuboost.cli.info"], 1))
def test_an_interrupt_during_an_import_is_one_line(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_AN_IMPORT, module], cwd=PLACE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (130, "gpuboost: interrupted")


def test_little_is_imported_before_interrupts_are_caught() -> None:
    """Modules that take milliseconds: an interrupt at that time would end in a traceback."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules); import gpuboost.cli\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code, str(PLACE)], capture_output=True, text=True, check=True)
    slow = {"pathlib", "tempfile", "importlib.abc", "importlib.resources", "argparse", "numpy", "gpuboost.cli.parser"}
    assert not slow & set(done.stdout.split())
