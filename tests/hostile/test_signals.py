"""SIGKILL and SIGINT at random moments: files are whole or absent, estimators are as they were."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.hostile.campaign import Tally, many

TESTS = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def _killed(names: str, number: int, tally: Tally, folder: Path) -> None:
    command = [sys.executable, "-m", "support.hostile.victims", names, str(number), "3", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    for what, count in found["counts"].items():
        tally.add(what, count)
    assert not found["faults"], "\n".join([*found["faults"][:20], done.stderr[-2000:]])


def test_kills_and_interrupts(tally: Tally, tmp_path: Path) -> None:
    _killed("SIGKILL,SIGINT", 12, tally, tmp_path)  # each of both in each kind of work


@pytest.mark.thorough
def test_many_kills(tally: Tally, tmp_path: Path) -> None:
    _killed("SIGKILL", many(200), tally, tmp_path)


@pytest.mark.thorough
def test_many_interrupts(tally: Tally, tmp_path: Path) -> None:
    _killed("SIGINT", many(200), tally, tmp_path)
