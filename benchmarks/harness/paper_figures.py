"""Pictures of the suites that reproduce papers, from their findings: run now, or read from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpuboost.benchmarks.harness import pictures
from gpuboost.benchmarks.harness.experiments import Finding

Panel = Callable[[Any], None]

SGLB_TABLES = {
    "adult": {"error": (0.132, 0.128), "logloss": (0.274, 0.276)},
    "amazon": {"error": (0.052, 0.048), "logloss": (0.144, 0.145)},
    "higgs7k": {"error": (0.252, 0.248), "logloss": (0.480, 0.479)},
}
"""SGB and SGLB in tables 2 and 3 of the paper; Higgs there has 11,000,000 rows."""

SMART_SHOWN = {
    "a8a": ("baseline", "uniform", "trimming", "1st order", "2nd order, node (B)", "2nd order, leaf refit",
            "mvs, leaf refit"),
    "mslr": ("all rows", "uniform 0.08, as the paper", "trimming, as the paper", "loss 0.15, as the paper",
             "1st order 0.09, as the paper",
             "2nd order 0.06, as the paper, leaf refit", "mvs 0.1"),
}  # fmt: skip
SMART_SHOWN["letor"] = SMART_SHOWN["mslr"]

SMART_TIMES = {
    "a8a": dict(zip(SMART_SHOWN["a8a"], (1.0, 16 / 65, 141 / 65, 15 / 65, 6 / 65), strict=False)),
    "mslr": dict(
        zip(SMART_SHOWN["mslr"], (1.0, 779 / 6899, 403 / 6899, 7453 / 33773, 665 / 6899, 273 / 6899), strict=False)
    ),
}
"""Time to the first target relative to the baseline's: tables 2 and 4 of the paper; by loss, table 6."""
SMART_TIMES["letor"] = SMART_TIMES["mslr"]

ASYNC_SPEED_UPS = {"real-sim-shaped": 14.0, "E2006-log1p-shaped, a tenth of its columns": 20.0}
"""Figure 10 of the paper, 32 workers."""


def drawn(panels: Sequence[Panel], path: str, across: int = 3) -> None:
    """Write a sheet of the panels."""
    figure, axes = pictures.sheet(len(panels), across)
    for panel, axis in zip(panels, axes, strict=True):
        panel(axis)
    pictures.save(figure, path)


# SGLB


def sglb(findings: Mapping[str, Finding], path: str) -> None:
    """Tables 1, 2 and 3, and the ranking under SGLB."""
    panels: list[Panel] = []
    if "table-1" in findings:
        panels.append(lambda axis: _table_1(axis, findings["table-1"]))
    for name in (name for name in SGLB_TABLES if name in findings):
        for loss, table in (("error", "table 2, 0-1 loss"), ("logloss", "table 3, log loss")):
            panels.append(
                lambda axis, name=name, loss=loss, table=table: _of_set(axis, findings[name], name, loss, table)
            )
    if "ranking" in findings:
        panels += [lambda axis, of=of: _ranking(axis, findings["ranking"], of) for of in ("train", "test")]
    drawn(panels, path)


def _table_1(axis: Any, finding: Finding) -> None:
    numbers = finding.numbers or {}
    errors = {name: np.array(of_folds) for name, of_folds in numbers["errors"].items()}
    paper = {row[0]: float(row[-2]) for row in finding.rows if row[-2]}
    spread = {name: each.std(ddof=1) / len(each) ** 0.5 for name, each in errors.items()}
    pictures.points(axis, {name: each.mean() for name, each in errors.items()}, spread, paper)
    pictures.title(axis, f"SGLB, table 1: {numbers['folds']} folds", "0-1 loss")


def _of_set(axis: Any, finding: Finding, name: str, loss: str, table: str) -> None:
    rows = [row for row in finding.rows if row[0] == loss]
    paper = dict(
        zip([row[1] for row in rows if not row[1].startswith("catboost")][-2:], SGLB_TABLES[name][loss], strict=True)
    )
    pictures.points(axis, {row[1]: float(row[2]) for row in rows}, {row[1]: float(row[3]) for row in rows}, paper)
    pictures.title(axis, f"SGLB, {table}: {name}", "test loss")


def _ranking(axis: Any, finding: Finding, of: str) -> None:
    pictures.curves(axis, {name: run[of] for name, run in (finding.numbers or {})["curves"].items()})
    pictures.title(
        axis, f"SGLB, section 8: {of}ing queries" if of == "train" else "held-out queries", "rounds", "NDCG@10"
    )


# SMART


def smart(findings: Mapping[str, Finding], path: str) -> None:
    """Figures 2 to 4: loss by rounds and by seconds, and the time to the target beside the paper's."""
    panels: list[Panel] = []
    for name in (name for name in SMART_SHOWN if name in findings):
        held = findings[name].numbers or {}
        runs = {label: held[label] for label in SMART_SHOWN[name] if label in held}
        means = {label: np.mean([run["scores"] for run in of], axis=0) for label, of in runs.items()}
        seconds = {label: float(np.median([run["seconds_of_a_round"] for run in of])) for label, of in runs.items()}
        shown = means if name == "a8a" else {label: 1.0 - score for label, score in means.items()}
        panels.append(lambda axis, name=name, shown=shown: _losses(axis, name, shown, None))
        panels.append(lambda axis, name=name, shown=shown, seconds=seconds: _losses(axis, name, shown, seconds))
        panels.append(lambda axis, name=name, means=means, seconds=seconds: _times(axis, name, means, seconds))
    drawn(panels, path)


def _losses(axis: Any, name: str, means: Mapping[str, Any], seconds: Mapping[str, float] | None) -> None:
    pictures.curves(axis, means, seconds)
    if name == "a8a":
        axis.set_ylim(0.312, 0.36)
        axis.axhline(0.325, color="black", linewidth=0.6)
    figure = {"a8a": "figure 2", "mslr": "figure 3, 5,000 documents", "letor": "figure 3, synthetic lists"}[name]
    score = "test loss" if name == "a8a" else "test NDCG@10"
    pictures.title(axis, f"SMART, {figure}: {name}", "rounds" if seconds is None else "seconds", score)


def _times(axis: Any, name: str, means: Mapping[str, Any], seconds: Mapping[str, float]) -> None:
    """Rounds times seconds of a round to the target, relative to the baseline."""
    base = next(iter(means))
    target = 0.325 if name == "a8a" else min(means[base][: max(6 * len(means[base]) // 10, 1)])
    reached = {label: np.flatnonzero(score <= target) for label, score in means.items()}
    times = {label: (int(rounds[0]) + 1) * seconds[label] for label, rounds in reached.items() if len(rounds)}
    labels = list(means)[::-1]
    axis.barh(
        labels, [times.get(label, 0.0) / times[base] for label in labels], color=pictures.COLOURS[0], label="here"
    )
    known = [label for label in labels if label in SMART_TIMES[name]]
    axis.plot([SMART_TIMES[name][label] for label in known], known, "x", color=pictures.COLOURS[1], label="paper")
    pictures.title(
        axis, f"time to {target if name == 'a8a' else 1.0 - target:.4g}; no bar: never", "relative to all rows"
    )


# Asynch-SGBDT


def asynchronous(findings: Mapping[str, Finding], path: str) -> None:
    """Figures 5 to 10: test loss by trees, by workers and by sampling rate, and the speed-up."""
    panels: list[Panel] = []
    for name in (name for name in ("higgs", "real-sim") if name in findings):
        for leaves in ("server", "worker"):
            panels.append(lambda axis, name=name, leaves=leaves: _workers(axis, findings[name], name, leaves))
    for part in (part for part in ("paper", "tiny", "rates") if part in findings):
        panels += _rate_panels(part, findings[part].numbers or {})
    if "times" in findings:
        panels.append(lambda axis: _speed_up(axis, findings["times"]))
    drawn(panels, path)


def _workers(axis: Any, finding: Finding, name: str, leaves: str) -> None:
    lines = {}
    for key, run in (finding.numbers or {}).items():
        rate, workers, run_leaves = key.split(", ")
        if rate == "0.05" and run_leaves in (leaves, "server" if workers == "1" else leaves):
            lines[f"{workers} workers" if workers != "1" else "1 worker"] = run["test"]
    pictures.curves(axis, lines)
    figure = {"higgs": 5, "real-sim": 6}[name]
    pictures.title(axis, f"figure {figure}: {name}-shaped, leaves of the {leaves}", "trees", "test loss")


def _rate_panels(part: str, numbers: Mapping[str, Sequence[float]]) -> list[Panel]:
    """By workers at each rate (part "paper": figures 5 and 6; "tiny": 9), and by rates for each number of workers."""
    keys = [key.split(", ") for key in numbers]
    panels: list[Panel] = []

    def add(lines: dict[str, Sequence[float]], text: str) -> None:
        panels.append(lambda axis: (pictures.curves(axis, lines), pictures.title(axis, text, "trees", "test loss"))[-1])

    for name in dict.fromkeys(key[0] for key in keys):
        rates, workers = (list(dict.fromkeys(key[i] for key in keys if key[0] == name)) for i in (1, 2))
        if part != "rates":
            for rate in rates:
                figure = 9 if part == "tiny" else 5 if name == "higgs" else 6
                text = f"figure {figure}: {name}-shaped, rate {rate}, v = 0.01"
                add({f"{w} workers": numbers[f"{name}, {rate}, {w}"] for w in workers}, text)
        for w in (w for w in workers if w != "32" and part != "tiny"):  # as in the paper
            text = f"figure {7 if name == 'higgs' else 8}: {name}-shaped, {w} workers"
            text += ", v = 0.01" if part == "paper" else ", and 9"
            add({f"rate {rate}": numbers[f"{name}, {rate}, {w}"] for rate in rates}, text)
    return panels


def _speed_up(axis: Any, finding: Finding) -> None:
    """Simulated with measured times, the limit of equation 13, and the paper's figure."""
    workers = [1, 4, 8, 16, 32]
    for i, row in enumerate(finding.rows):
        colour, limit = pictures.COLOURS[i], float(row[4])
        axis.plot(workers, [1.0, *map(float, row[5:9])], "o-", color=colour, label=row[0])
        axis.plot(workers, [min(w, limit) for w in workers], ":", color=colour)
        if row[0] in ASYNC_SPEED_UPS:
            axis.plot([32], [ASYNC_SPEED_UPS[row[0]]], "x", color=colour)
    pictures.title(axis, "figure 10: speed-up, simulated; dotted: equation 13; x: paper", "workers", "speed-up")


# functional


def functional(findings: Mapping[str, Finding], path: str) -> None:
    """Held-out score and seconds of competing families, with the spread over repeats."""
    drawn([lambda axis, name=name: _families(axis, findings[name], name) for name in findings], path)


def _families(axis: Any, finding: Finding, name: str) -> None:
    numbers = finding.numbers or {}
    for i, (label, run) in enumerate(numbers.items()):
        axis.plot(np.median(run["seconds"]), np.median(run["scores"]), "o", color=pictures.COLOURS[i % 10], label=label)
    axis.set_xscale("log")
    pictures.title(axis, name, "seconds of the fit", finding.columns[1])


# RGBM


def rgbm_theory(finding: Finding, path: str) -> None:
    """Figures 2, 3 and 4."""
    numbers = finding.numbers or {}

    def ranks(axis: Any) -> None:
        for i, (label, line) in enumerate(numbers["ranks"].items()):
            axis.plot(
                line["q"],
                line["density"],
                "-" if label.startswith("Beta") else ".-",
                color=pictures.COLOURS[i],
                label=label,
            )
        pictures.title(axis, "RGBM, figure 2: chances of ranks, t = 10", "q = j / K", "K gamma(j)")

    def spread(axis: Any) -> None:
        angles = numbers["angles"]
        axis.plot(angles["learners"], angles["theta squared"], "o", color=pictures.COLOURS[0], label="computed")
        axis.plot(angles["learners"], angles["formula"], "-", color=pictures.COLOURS[1], label="cos²(π / 2K)")
        pictures.title(axis, "figure 3: K even learners in the plane", "K", "Θ²")

    def orthogonal(axis: Any) -> None:
        for i, (label, line) in enumerate(numbers["orthogonal"].items()):
            axis.loglog(line["p"], line["theta"], color=pictures.COLOURS[i], label=label)
        pictures.title(axis, "figure 4: orthogonal learners", "p", "Θ")

    drawn([ranks, spread, orthogonal], path)
