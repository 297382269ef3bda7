"""The log of a run: which worker built which tree from which version. A run can be replayed from it to the last bit."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import astuple, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_integer
from gpuboost.errors import InputError, shown
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.execution.rules import LEAF_VALUES, SAMPLE_AT
from gpuboost.records import dataclass, declared
from gpuboost.storage import checked_path, write
from gpuboost.types import Built

FORMAT, VERSION = "gpuboost log", 1

FIELDS = tuple(field.name for field in fields(Built))

HEAD: dict[str, Any] = {
    "seed": int,
    "workers": int,
    "leaf_values": LEAF_VALUES,
    "sample_at": SAMPLE_AT,
    "simulated": bool,
}
"""Fields of a whole run: the type, or the accepted words."""

OUTCOMES = ("applied", "dropped", "failed")

KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("ticket", "worker", "pulled"), (int,)),
    "applied": (int, type(None)),
    **dict.fromkeys(("share", "began", "built", "ended"), (int, float)),
    "outcome": (str,),
}


@dataclass(frozen=True, slots=True)
class Log:
    """One line per pull, in the order in which the server finished with them.

    Lines are tuples of these: ``ticket`` (which names the random numbers of the round's trees), ``worker``, ``pulled``
    (version of the gradients they were fitted to), ``applied`` (version of the model that they were added to, or None),
    ``share`` (of the learning rate), ``outcome`` ("applied", "dropped" or "failed"), and the seconds at which the
    building ``began``, was done (``built``), and was taken up by the server (``ended``). Trees of round r were
    applied to version r.
    """

    lines: tuple[Built, ...]
    seed: int = 0
    workers: int = 1
    leaf_values: str = "server"
    sample_at: str = "pull"
    simulated: bool = False  # True: seconds are simulated

    def __len__(self) -> int:
        return len(self.lines)

    def __repr__(self) -> str:
        return f"Log({self})"

    def __str__(self) -> str:
        kind = "simulated workers" if self.simulated else "workers"
        lost = len(self.lines) - len(self.applied)
        parts = [
            f"{len(self.applied)} rounds by {self.workers} {kind}, staleness {self.mean_staleness:.3g} on average",
            f"{self.build_seconds:.3g} s to build",
        ]
        if self.server_seconds > 0.0:  # known once a worker has come back for a second tree
            parts[1] += f" and {self.server_seconds:.3g} s at the server, so {self.saturation:.3g} workers are enough"
        return "; ".join(parts + [f"{lost} trees were lost"] * (lost > 0))

    @property
    def applied(self) -> tuple[Built, ...]:
        """The lines of trees that are in the model, round by round."""
        return tuple(line for line in self.lines if line.applied is not None)

    @property
    def staleness(self) -> NDArray[np.int64]:
        """(rounds,) how many rounds were applied between the pull of a round's gradients and its application."""
        return np.array([line.staleness for line in self.applied], dtype=np.int64)

    @property
    def mean_staleness(self) -> float:
        values = self.staleness
        return float(values.mean()) if len(values) else 0.0

    @property
    def build_seconds(self) -> float:
        """T_b: median time to build one round's trees; 0 if nothing was built."""
        return _median([line.built - line.began for line in self.applied])

    @property
    def server_seconds(self) -> float:
        """T_s: median time that the server is busy with one round, from taking it up to answering the next pull.

        0 if no worker came back for a second tree.
        """
        return _median(list(self._busy()))

    @property
    def saturation(self) -> float:
        """1 + T_b / T_s: more workers give staleness but no speed-up (Asynch-SGBDT, equation 13, corrected).

        Infinite where T_s is not known.
        """
        server = self.server_seconds
        return 1.0 + self.build_seconds / server if server > 0.0 else float("inf")

    @property
    def seconds(self) -> float:
        """From the first pull to the end of the last round."""
        ends = [line.ended for line in self.applied]
        return max(ends) + self.server_seconds - min(line.began for line in self.lines) if ends else 0.0

    @property
    def speed_up(self) -> float:
        """Speed-up over one worker: the time of all builds and of the server, divided by ``seconds``."""
        alone = sum(line.built - line.began for line in self.applied) + len(self.applied) * self.server_seconds
        return alone / self.seconds if self.seconds > 0.0 else 1.0

    def before(self, rounds: int) -> Log:
        """The lines of the model's first ``rounds`` rounds. Raises InputError for what is no such number."""
        if not is_integer(rounds, 0):
            raise InputError(f"rounds: must be a whole number, 0 or more; got {shown(rounds)}.")
        last = next(
            (i for i, line in enumerate(self.lines) if line.applied is not None and line.applied >= rounds), None
        )
        return replace(self, lines=self.lines[:last])

    def _busy(self) -> Iterator[float]:
        """Seconds between the arrival of a worker's tree and the same worker's next pull, where one follows."""
        last: dict[int, float] = {}
        for line in sorted(self.lines, key=lambda line: line.began):
            if line.worker in last and line.began >= last[line.worker]:
                yield line.began - last[line.worker]
            last[line.worker] = line.ended

    def to_json(self) -> dict[str, Any]:
        """The log as a dictionary of JSON values."""
        head = {name: getattr(self, name) for name in HEAD}
        lines = [list(astuple(line)) for line in self.lines]
        return {"format": FORMAT, "version": VERSION, **head, "fields": list(FIELDS), "lines": lines}

    @classmethod
    def from_json(cls, found: Any) -> Log:
        """The inverse of ``to_json``.

        Raises:
            InputError: if it is anything else; the message names the place.
        """
        names = {"format", "version", "fields", "lines", *HEAD}
        if not isinstance(found, dict) or set(found) != names or found["format"] != FORMAT:
            raise InputError(
                f'log: a log is a record of {sorted(names)}, of format "{FORMAT}"; got {str(found)[:80]!r}.'
            )
        if found["version"] != VERSION or found["fields"] != list(FIELDS):
            raise InputError(f"log: this gpuboost reads version {VERSION} of {FIELDS}; found {found['version']!r}.")
        for name, allowed in HEAD.items():
            value = found[name]
            if value not in allowed if isinstance(allowed, tuple) else type(value) is not allowed:
                raise InputError(f"log: {name}: found {value!r}.")
        if not isinstance(found["lines"], list):
            raise InputError(f"log: lines: must be a list; found {found['lines']!r}.")
        if found["workers"] < 1:
            raise InputError(f"log: workers: must be 1 or more; found {found['workers']}.")
        lines = tuple(_line(number, values) for number, values in enumerate(found["lines"]))
        _check_once(lines)
        return cls(lines, **{name: found[name] for name in HEAD})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the log as JSON, whole or not at all."""
        write(path, (json.dumps(self.to_json()) + "\n").encode("ascii"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Log:
        """Read what ``save`` wrote.

        Raises:
            InputError: if it is anything else.
        """
        content = checked_path(path).read_bytes()
        try:
            record = json.loads(content)
        except (ValueError, RecursionError) as error:  # no text, no JSON, an integer of thousands of digits
            raise InputError(f"log: {os.fspath(path)!r} is not JSON; {error}.") from None
        return cls.from_json(record)


def log_of(execution: Any, seed: int, lines: tuple[Built, ...]) -> Log:
    """The log of a run: its lines, and the properties of its execution."""
    traits = declared(ExecutionTraits, execution)
    return Log(lines, int(seed), traits.workers, traits.leaf_values or "server", traits.sample_at, traits.simulated)


def _line(number: int, values: Any) -> Built:
    if not isinstance(values, list) or len(values) != len(FIELDS):
        raise InputError(
            f"log: line {number}: must have the {len(FIELDS)} values {', '.join(FIELDS)}; found {values!r}."
        )
    for name, value in zip(FIELDS, values, strict=True):
        if not isinstance(value, KINDS[name]) or isinstance(value, bool):
            raise InputError(f"log: line {number}: {name}: wrong kind of value; found {value!r}.")
    line = Built(*values)
    _check_ranges(number, line)
    if line.applied is not None and not 0 <= line.pulled <= line.applied:
        raise InputError(f"log: line {number}: applied to version {line.applied}, before it was pulled, {line.pulled}.")
    return line


def _check_once(lines: tuple[Built, ...]) -> None:
    """Raise InputError if two trees have one ticket, or were applied to one version. A failed ticket is used again."""
    tickets: set[int] = set()
    versions: set[int | None] = {None}
    for number, line in enumerate(lines):
        if line.outcome != "failed" and line.ticket in tickets:
            raise InputError(f"log: line {number}: ticket: {line.ticket} is that of an earlier line.")
        if line.applied is not None and line.applied in versions:
            raise InputError(f"log: line {number}: applied: an earlier line was applied to version {line.applied}.")
        tickets |= {line.ticket} if line.outcome != "failed" else set()
        versions.add(line.applied)


def _check_ranges(number: int, line: Built) -> None:
    """Raise InputError for a value that no run writes."""
    rules = {
        "ticket": (0 <= line.ticket < 2**63, "0 or more"),
        "worker": (0 <= line.worker < 2**31, "0 or more"),
        "pulled": (0 <= line.pulled < 2**31, "0 or more"),
        "share": (0.0 <= line.share <= 1.0, "a share of the learning rate, 0 to 1"),
        "outcome": (line.outcome in OUTCOMES, f"one of {', '.join(OUTCOMES)}"),
        **{name: (math.isfinite(getattr(line, name)), "finite seconds") for name in ("began", "built", "ended")},
    }
    for name, (holds, rule) in rules.items():
        if not holds:
            raise InputError(f"log: line {number}: {name}: must be {rule}; found {getattr(line, name)!r}.")
    if (line.applied is None) == (line.outcome == "applied"):
        raise InputError(f"log: line {number}: outcome: {line.outcome!r} contradicts applied: {line.applied!r}.")


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else 0.0
