"""From rows of runs to medians and ratios, and the JSON file that keeps them."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpuboost.benchmarks.harness import machine
from gpuboost.benchmarks.harness.cases import OURS, Case, Size, Suite
from gpuboost.benchmarks.harness.scores import HIGHER_IS_BETTER
from gpuboost.errors import InputError
from gpuboost.storage import write as write_file

Row = dict[str, Any]

MEASURES = ("import", "bin", "train", "fit", "predict", "memory")
"""Seconds of each phase, fit = bin + train; memory is the peak of the fit in MB beside data and library."""

TOLERANCE = 0.01  # a held-out score may be this much worse, relatively, than the best rival's
DRAWS = 2000  # of the bootstrap


@dataclass(frozen=True)
class Line:
    """One library on one case: medians over the repeats."""

    case: str
    peer: str
    measures: Mapping[str, float]
    ratios: Mapping[str, float]  # to the best peer: median of the ratios repeat by repeat; ours only
    scores: Mapping[str, float]
    clean: tuple[int, int]  # runs that other programs did not disturb, and runs
    by_query: tuple[float, ...] = ()  # the deciding score of each held-out query, of rankings
    error: float | None = None  # standard error of our deciding score less this one's, by held-out rows


def measure(row: Row, name: str) -> float:
    """One measure of one run."""
    phases = row["phases"]
    if name == "fit":
        return float(phases["bin"]["seconds"] + phases["train"]["seconds"])
    if name == "memory":
        return float(max(phases["bin"]["peak_mb"], phases["train"]["peak_mb"]))
    return float(phases[name]["seconds"])


def lines(rows: Sequence[Row], case: Case) -> list[Line]:
    """Medians of a case, ours first. Runs that failed are left out."""
    good = [row for row in rows if row["case"] == case.name and "error" not in row]
    peers = list(dict.fromkeys([OURS, *case.peers, *(row["peer"] for row in good)]))
    by_peer = {peer: [row for row in good if row["peer"] == peer] for peer in peers}
    by_peer = {peer: runs for peer, runs in by_peer.items() if runs}
    return [
        Line(
            case.name,
            peer,
            {name: statistics.median(measure(run, name) for run in runs) for name in MEASURES},
            _ratios(by_peer) if peer == OURS else {},
            {name: statistics.median(run["scores"][name] for run in runs) for name in runs[0]["scores"]},
            (sum(not _disturbed(run) for run in runs), len(runs)),
            tuple(runs[0].get("by_query", ())),
            runs[0].get("ours_less", {}).get("standard_error"),
        )
        for peer, runs in by_peer.items()
    ]


def _disturbed(row: Row) -> bool:
    return bool({"bin", "train", "predict"} & set(row["disturbed"]))


def _ratios(by_peer: Mapping[str, Sequence[Row]]) -> dict[str, float]:
    others = {peer: runs for peer, runs in by_peer.items() if peer != OURS}
    ratios = {}
    for name in MEASURES:
        medians = {peer: statistics.median(measure(run, name) for run in runs) for peer, runs in others.items()}
        positive = {peer: value for peer, value in medians.items() if value > 0}
        if not positive:
            continue
        best = min(positive, key=positive.__getitem__)
        if name == "memory" and "lightgbm" in positive:
            best = "lightgbm"  # the lightest of the peers that bin by themselves, and the one we are held to
        theirs = {run["repeat"]: measure(run, name) for run in others[best]}
        pairs = [
            measure(run, name) / theirs[run["repeat"]] for run in by_peer[OURS] if theirs.get(run["repeat"], 0.0) > 0
        ]
        if pairs:
            ratios[name] = statistics.median(pairs)
    return ratios


def deciding(case: Case, scores: Mapping[str, float]) -> str:
    """The score that decides: the case's, or the first of its task."""
    return case.verdict or next(iter(scores))


def shortfall(case: Case, found: Sequence[Line]) -> float | None:
    """Relative amount by which our deciding score is worse than the best rival's; None without rivals."""
    ours, theirs = _ours(found), _best_rival(case, found)
    if ours is None or theirs is None:
        return None
    name = deciding(case, ours.scores)
    best = theirs.scores[name]
    worse = best - ours.scores[name] if name in HIGHER_IS_BETTER else ours.scores[name] - best
    return worse / abs(best) if best else worse


def error_of_shortfall(case: Case, found: Sequence[Line]) -> float | None:
    """The standard error of ``shortfall`` by the choice of held-out rows, or queries (bootstrap); None if unknown.

    Paired: rows that are hard for both libraries are not in it.
    """
    ours, theirs = _ours(found), _best_rival(case, found)
    if ours is None or theirs is None:
        return None
    if theirs.error is not None:
        return theirs.error / (abs(theirs.scores[deciding(case, theirs.scores)]) or 1.0)
    if not ours.by_query or len(ours.by_query) != len(theirs.by_query):
        return None
    worse = np.array(theirs.by_query) - np.array(ours.by_query)
    return standard_error(worse) / float(np.mean(theirs.by_query))


def allowed(case: Case, found: Sequence[Line]) -> float:
    """The most that ``shortfall`` may be: 1 %, and for rankings, whose queries are few, two standard errors."""
    error = error_of_shortfall(case, found)
    ranked = any(line.by_query for line in found)
    return 2.0 * error if ranked and error is not None else TOLERANCE


def beside_ours(by_row: Path, peer: str) -> Row:
    """Our deciding score less the peer's, and the standard error of that, from the values of paired held-out rows.

    by_row: a folder with <library>.npy, (n,) each. Returns {"ours_less": ...}, or {} where there is nothing to compare.
    """
    ours, theirs = by_row / f"{OURS}.npy", by_row / f"{peer}.npy"
    if peer == OURS or not (ours.exists() and theirs.exists()):
        return {}
    less = np.load(ours) - np.load(theirs)
    error = float(less.std(ddof=1)) / len(less) ** 0.5
    return {"ours_less": {"difference": float(less.mean()), "standard_error": error}}


def standard_error(values: Any) -> float:
    """Standard error of the mean of values, by the bootstrap."""
    x, rng = np.asarray(values, dtype=np.float64), np.random.default_rng(0)
    return float(np.std([x[rng.integers(0, len(x), len(x))].mean() for _ in range(DRAWS)]))


def _ours(case_lines: Sequence[Line]) -> Line | None:
    return next((line for line in case_lines if line.peer == OURS), None)


def _best_rival(case: Case, case_lines: Sequence[Line]) -> Line | None:
    theirs = [line for line in case_lines if line.peer in case.rivals]
    if not theirs:
        return None
    name = deciding(case, theirs[0].scores)
    best = max if name in HIGHER_IS_BETTER else min
    return best(theirs, key=lambda line: line.scores[name])


def missed(case: Case, ours: Line) -> dict[str, float]:
    """Targets that were not met: measure -> ratio."""
    return {name: ours.ratios[name] for name, target in case.targets.items() if ours.ratios.get(name, 0.0) > target}


def destination(where: str, suite: Suite) -> Path:
    """A file as it is named; in a folder, <device>/<suite>.json."""
    path = Path(where)
    if path.is_dir() or where.endswith("/"):
        return path / machine.slug(machine.describe()) / f"{suite.name.replace('-', '_')}.json"
    return path


def stored(path: str, suite: Suite, names: Sequence[str]) -> list[Row]:
    """The runs that a file of ``write`` holds, of the named cases or of all.

    Raises:
        InputError: if it cannot be read, or is of another suite, or has none of the cases.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        name, runs = document["suite"], document["runs"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"--stored: {path} is no file of runs; {error}.") from None
    if name != suite.name:
        raise InputError(f"--stored: {path} has results of {name!r}; the suite is {suite.name!r}.")
    chosen = {case.name for case in suite.chosen(tuple(names))}
    rows = [row for row in runs if row["case"] in chosen]
    if not rows:
        raise InputError(f"--stored: {path} has none of the cases; it has {', '.join({row['case'] for row in runs})}.")
    return rows


def write(path: Path, suite: Suite, size: Size, threads: int, command: str, rows: Sequence[Row]) -> None:
    """One JSON object, one run a line. What the file has of other cases, at the same size and threads, stays."""
    about = {"suite": suite.name, "size": size, "threads": threads, "machine": machine.describe()}
    kept: list[Row] = []
    if path.exists():
        old = json.loads(path.read_text())
        if all(old[key] == about[key] for key in ("suite", "size", "threads")):
            fresh = {row["case"] for row in rows}
            kept = [row for row in old["runs"] if row["case"] not in fresh]
    stamp = {"date": time.strftime("%Y-%m-%d"), "command": command}
    order = [case.name for case in suite.cases]
    every = sorted([*kept, *({**row, **stamp} for row in rows)], key=lambda row: order.index(row["case"]))
    head = json.dumps({**about, **stamp}, indent=1).removesuffix("\n}")
    runs = ",\n  ".join(json.dumps(row) for row in every)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, f'{head},\n "runs": [\n  {runs}\n ]\n}}\n'.encode())
