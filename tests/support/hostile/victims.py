"""One process that starts many: each works until a signal ends it, and what it leaves behind is looked at.

``python -m support.hostile.victims SIGNALS NUMBER SEED FOLDER`` warms up, forks ``NUMBER`` times, and prints its counts
and the faults as JSON. A child repeats one kind of work until the signal comes at a random moment.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.harness import results
from gpuboost.benchmarks.harness.cases import suites
from gpuboost.cli import main as command_line

KINDS = ("fit", "save", "checkpoint", "predict", "result", "dataset")
RUNS = 5_000
INTERRUPTED = 130
PATIENCE = 60.0
"""Seconds that a child may take to begin, and to end."""

SAME, WRONG = 0, 9
"""Exit status of a child whose estimator is as it was, and of one where something is not."""

Work = Callable[[], object]


class Stage:
    """What the children work on: two models that differ, their bytes, and a folder."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        self.folder, self.x = folder, rng.normal(size=(400, 5))
        self.y = self.x[:, 0] + 0.1 * rng.normal(size=400)
        few: dict[str, Any] = {"n_estimators": 30, "max_depth": 3, "n_jobs": 2, "random_state": 0}
        self.few = few
        self.models = [gb.GradientBoostingRegressor(**few | {"n_estimators": n}).fit(self.x, self.y) for n in (30, 60)]
        self.answers = [model.predict(self.x) for model in self.models]
        self.place = folder / "file"
        self.whole = [self._bytes(model) for model in self.models]
        (folder / "model.json").write_bytes(self.whole[0])
        np.savetxt(folder / "rows.csv", self.x, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.17g")
        self._predict()
        self.csv = self.place.read_bytes()
        self.data = gb.Dataset(self.x, self.y)
        self.data.save(self.place)
        self.rows = self.place.read_bytes()
        self.place.unlink()

    def _bytes(self, model: Any) -> bytes:
        model.save_model(self.place)
        return self.place.read_bytes()

    def _predict(self) -> None:
        arguments = ["predict", str(self.folder / "rows.csv"), "--model", str(self.folder / "model.json")]
        with redirect_stdout(sys.stderr):
            if command_line([*arguments, "--output", str(self.place)]) == INTERRUPTED:
                raise SystemExit

    def work(self, kind: str) -> Work:
        """One turn of that kind of work; it is done again and again."""
        turns = iter(range(10**9))
        if kind == "save":
            return lambda: self.models[next(turns) % 2].save_model(self.place)
        if kind == "predict":
            return self._predict
        if kind == "dataset":
            return lambda: self.data.save(self.place)
        if kind == "result":
            return self._result
        if kind == "checkpoint":
            watch = gb.callbacks.Checkpoint(self.place, every=7)
            return lambda: gb.GradientBoostingRegressor(**self.few, callbacks=[watch]).fit(self.x, self.y)
        return lambda: self.models[0].fit(self.x, self.y)

    def _result(self) -> None:
        suite = suites()["cpu-speed"]
        runs = [{"case": suite.cases[0].name, "seconds": float(i)} for i in range(RUNS)]
        results.write(self.place, suite, "small", 1, "a command", runs)

    def judge(self, kind: str) -> str:
        """What is wrong with the file that a killed child left; empty if nothing is."""
        names = {path.name for path in self.folder.iterdir()} - {"model.json", "rows.csv", "file"}
        strange = {name for name in names if not (name.startswith(".file.") and name.endswith(".part"))}
        if strange:
            return f"left {strange}"
        if not self.place.exists():
            return ""
        found = self.place.read_bytes()
        if kind == "checkpoint":
            return self._resume()
        whole = {
            "save": found in self.whole,
            "predict": found == self.csv,
            "dataset": found == self.rows,
            "result": kind == "result" and len(json.loads(found)["runs"]) == RUNS,
        }
        return "" if whole.get(kind, True) else f"{len(found)} bytes, not those of a whole file"

    def _resume(self) -> str:
        model = gb.GradientBoostingRegressor(**self.few).fit(self.x, self.y, resume_from=self.place)
        return "" if np.array_equal(model.predict(self.x), self.answers[0]) else "another model after the checkpoint"

    def clear(self) -> None:
        for path in self.folder.iterdir():
            if path.name not in ("model.json", "rows.csv"):
                path.unlink()

    def unchanged(self) -> bool:
        """True if the estimators predict as before, and a new fit gives the same model."""
        same = all(np.array_equal(m.predict(self.x), a) for m, a in zip(self.models, self.answers, strict=True))
        fresh = gb.GradientBoostingRegressor(**self.few).fit(self.x, self.y)
        return same and np.array_equal(fresh.predict(self.x), self.answers[0])


def _child(stage: Stage, kind: str, ready: int) -> None:
    """Work until the signal; never returns."""
    status, parent = WRONG, os.getppid()
    try:
        work = stage.work(kind)
        work()
        try:
            os.write(ready, b".")
            while os.getppid() == parent:  # one whose parent was ended goes with it
                work()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            status = SAME if stage.unchanged() else WRONG
        except SystemExit:
            status = SAME
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _once(stage: Stage, kind: str, number: int, rng: np.random.Generator, counts: Counter[str]) -> tuple[int, str]:
    """The exit status of one child, negative for a signal, and what is wrong."""
    stage.clear()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(stage, kind, writing)
    os.close(writing)
    began, _, _ = select.select([reading], [], [], PATIENCE)
    os.close(reading)
    if not began:
        os.kill(child, signal.SIGABRT)  # its stacks are printed
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "it did not begin"
    time.sleep(float(rng.random()) * 0.05)
    os.kill(child, number)
    status = _end_of(child, number, counts)
    return os.waitstatus_to_exitcode(status), stage.judge(kind)


def _end_of(child: int, number: int, counts: Counter[str]) -> int:
    """The status of a child, which gets a second signal after half a minute, and is killed after a minute.

    NumPy and pandas ignore exceptions where they look whether something has an attribute, and so an interrupt that
    comes at that time.
    """
    for signal_after in (number, signal.SIGABRT):
        until = time.monotonic() + PATIENCE / 2
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.002)
        os.kill(child, signal_after)
        counts["second signals"] += int(signal_after == number)
    return os.waitpid(child, 0)[1]


def main() -> None:
    warnings.simplefilter("ignore")
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for its background jobs
    names, total, seed, folder = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    stage, rng = Stage(folder), np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for turn in range(total):
        kind, name = KINDS[turn % len(KINDS)], names[turn // len(KINDS) % len(names)]
        number = getattr(signal, name)
        status, wrong = _once(stage, kind, number, rng, counts)
        counts[f"{name} in {kind}"] += 1
        expected = -signal.SIGKILL if number == signal.SIGKILL else SAME
        if status != expected and not (kind == "predict" and status == SAME):
            faults.append(f"turn {turn}, {kind}: status {status}")
        if wrong:
            faults.append(f"turn {turn}, {kind}: {wrong}")
    if counts["second signals"] > 1 + total // 50:
        faults.append(f"{counts['second signals']} interrupts were lost")
    json.dump({"counts": counts, "faults": faults}, sys.stdout)


if __name__ == "__main__":
    main()
