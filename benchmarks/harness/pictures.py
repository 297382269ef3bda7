"""Sheets of panels for suites that reproduce figures: matplotlib without its global state, and small files."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpuboost.errors import InputError

MOST_POINTS = 32  # of a line: a picture shows no more, and an SVG holds each of them
COLOURS = ("#3b4cc0", "#d1495b", "#2a9d8f", "#e9a03b", "#7b4ea3", "#6c757d", "#9c6644", "#1d3557", "#ef8fb0", "#88b04b")


def sheet(panels: int, across: int = 3, width: float = 4.6, height: float = 3.3) -> tuple[Any, list[Any]]:
    """A figure, and so many axes on it.

    Raises:
        InputError: if matplotlib is missing, or there is nothing to draw.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("--plot: needs matplotlib, which is not installed. pip install 'gpuboosting[plot]'") from None
    if not panels:
        raise InputError("--plot: none of the cases has anything to draw.")
    across = min(across, panels)
    down = -(-panels // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).ravel())
    for unused in axes[panels:]:
        unused.set_axis_off()
    return figure, axes[:panels]


def save(figure: Any, path: str | Path) -> None:
    """Write the file; an SVG has text as text, tenths of a point, and no date."""
    from matplotlib import rc_context

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if not str(path).endswith(".svg"):
        figure.savefig(path)
        return
    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "gpuboost"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    short = re.sub(r"(\d\.\d)\d+", r"\1", text.getvalue())
    Path(path).write_text(re.sub(r"\s*\n\s*", "\n", short), encoding="utf-8")


def title(panel: Any, text: str, across: str = "", down: str = "", *, legend: bool = True) -> None:
    """Title, names of the axes, and a legend."""
    panel.set_title(text, loc="left", fontsize="small", fontweight="bold")
    panel.set_xlabel(across)
    panel.set_ylabel(down)
    panel.grid(alpha=0.3, axis="y")
    if legend:
        panel.legend(fontsize="x-small")


def thinned(count: int) -> list[int]:
    """At most ``MOST_POINTS`` evenly spaced places of so many, the first and the last among them."""
    return [int(k) for k in np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(int))]


def curves(panel: Any, lines: Mapping[str, Sequence[float]], step: Mapping[str, float] | None = None) -> None:
    """A line for each name: values by rounds, or by rounds times ``step`` of that name."""
    for i, (name, values) in enumerate(lines.items()):
        kept = thinned(len(values))
        scale = 1.0 if step is None else step[name]
        dashes = "-" if i < len(COLOURS) else "--"
        across = [scale * (k + 1) for k in kept]
        panel.plot(across, [values[k] for k in kept], dashes, color=COLOURS[i % len(COLOURS)], label=name)


def points(panel: Any, values: Mapping[str, float], errors: Mapping[str, float], paper: Mapping[str, float]) -> None:
    """A point with twice its standard error for each name, from the top, and a cross where the paper's figure is."""
    names = list(values)[::-1]
    bars = [2.0 * errors.get(name, 0.0) for name in names]
    panel.errorbar(
        [values[name] for name in names], names, xerr=bars, fmt="o", color=COLOURS[0], label="here, ± 2 s.e."
    )
    known = [name for name in names if name in paper]
    if known:
        panel.plot([paper[name] for name in known], known, "x", color=COLOURS[1], label="paper")


_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d*)?(e[+-]?\d+)?")
_LONGEST = 40  # characters of a label


def tables(findings: Mapping[str, Any], path: str, *, by_column: bool = False) -> None:
    """A panel for each table: its first column of numbers, a point for each row.

    by_column: the numbers of the last row, a point for each column.
    """
    read = _of_last_row if by_column else _of_first_column
    shown = {name: read(finding) for name, finding in findings.items()}
    shown = {name: series for name, series in shown.items() if series[1]}
    figure, axes = sheet(len(shown), width=6.0)
    for axis, (name, (column, points)) in zip(axes, shown.items(), strict=True):
        labels = list(points)[::-1]
        values = [points[label] for label in labels]
        axis.plot(values, labels, "o", color=COLOURS[0])
        if min(values) > 0.0 and max(values) > 30.0 * min(values):
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter("")
        axis.tick_params(labelsize="x-small")
        title(axis, name, column, legend=False)
    save(figure, path)


def _of_last_row(finding: Any) -> tuple[str, dict[str, float]]:
    last = finding.rows[-1]
    numbers = {name: _number(cell) for name, cell in zip(finding.columns[1:], last[1:], strict=True)}
    return last[0], {name: value for name, value in numbers.items() if value is not None}


def _of_first_column(finding: Any) -> tuple[str, dict[str, float]]:
    """Name of the column, and its number for each row; rows without a number are left out."""
    rows, columns = finding.rows, finding.columns
    for k in range(1, len(columns)):
        values = [_number(row[k]) for row in rows]
        if any(value is not None for value in values) and all(
            value is not None or not row[k] for value, row in zip(values, rows, strict=True)
        ):
            labels = _labels([row[:k] for row in rows])
            numbers = dict(zip(labels, values, strict=True))
            return columns[k], {label: value for label, value in numbers.items() if value is not None}
    return "", {}


def _labels(cells: Sequence[Sequence[str]]) -> list[str]:
    """A different text for each row, of the cells before its number."""
    names = [_plain(", ".join(cell for cell in row if cell))[:_LONGEST] for row in cells]
    return [name if names.count(name) == 1 else f"{name} ({names[:i].count(name) + 1})" for i, name in enumerate(names)]


def _number(cell: str) -> float | None:
    match = _NUMBER.match(_plain(cell))
    return float(match[0].replace(",", "")) if match else None


def _plain(cell: str) -> str:
    """The text without marks of colour, which cells have before they are stored."""
    return re.sub(r"\[/?[a-z ]*\]", "", cell)
