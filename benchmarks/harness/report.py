"""Tables and plots of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuboost.benchmarks.harness import pictures, results
from gpuboost.benchmarks.harness.cases import OURS, Case, Suite
from gpuboost.benchmarks.harness.results import Line, Row


def table(suite: Suite, rows: Sequence[Row]) -> Any:
    """A rich table: one block of lines per case, ours first, its verdict beside it."""
    from rich.table import Table

    quality = suite.kind == "quality"
    columns = (
        ("case", "library", "scores", "fit s", "verdict")
        if quality
        else ("case", "library", "import s", "bin s", "train s", "fit s", "predict s", "memory MB", "score", "verdict")
    )
    drawn = Table(*columns, title=suite.title, title_justify="left", caption_justify="left")
    for i, column in enumerate(columns):
        drawn.columns[i].justify = "right" if column.endswith((" s", " MB")) else "left"
    for case in suite.cases:
        lines = results.lines(rows, case)
        for line in lines:
            cells = _quality_cells(case, line) if quality else _speed_cells(case, line)
            name = case.name if line is lines[0] else ""
            drawn.add_row(name, _marked(line), *cells, verdict(suite, case, lines) if line.peer == OURS else "")
        for row in _failures(rows, case):
            drawn.add_row("", row["peer"], *[""] * (len(columns) - 3), "[red]failed[/red]")
        if any(line.clean[0] == 0 for line in lines):
            drawn.caption = "* other processes took CPU time during every one of these runs"
        if lines:
            drawn.add_section()
    return drawn


def _failures(rows: Sequence[Row], case: Case) -> list[Row]:
    return [row for row in rows if row["case"] == case.name and "error" in row]


def _marked(line: Line) -> str:
    clean, _ = line.clean
    name = f"[bold]{line.peer}[/bold]" if line.peer == OURS else line.peer
    return name if clean else f"{name} *"


def _quality_cells(case: Case, line: Line) -> tuple[str, str]:
    decides = results.deciding(case, line.scores)
    order = sorted(line.scores, key=lambda name: name != decides)
    shown = [f"{name} {_digits(line.scores[name])}" for name in order]
    if line.by_query:
        shown[0] += f" ± {results.standard_error(line.by_query):.4f}"
    return "  ".join(shown), f"{line.measures['fit']:.2f}"


def _speed_cells(case: Case, line: Line) -> tuple[str, ...]:
    decides = results.deciding(case, line.scores)
    seconds = [f"{line.measures[name]:.3f}" for name in ("import", "bin", "train", "fit", "predict")]
    return (*seconds, f"{line.measures['memory']:.0f}", f"{decides} {_digits(line.scores[decides])}")


def _digits(value: float) -> str:
    return f"{value:.5g}" if abs(value) >= 10 else f"{value:.5f}"


def verdict(suite: Suite, case: Case, found: Sequence[Line]) -> str:
    """Text beside our line: the difference from the best peer, and whether it is within the target."""
    if suite.kind == "quality":
        worse, error = results.shortfall(case, found), results.error_of_shortfall(case, found)
        if worse is None:
            return ""
        colour, word = ("green", "ok") if worse <= results.allowed(case, found) else ("red", "worse")
        text = f"[{colour}]{word} {worse:+.2%}[/{colour}]" + ("" if error is None else f" ± {error:.2%}")
        return "  ".join([text, *_times(case, found, list(case.targets))])
    return "  ".join(_times(case, found, list(case.targets) or ["import", "fit"]))


def _times(case: Case, lines: Sequence[Line], named: Sequence[str]) -> list[str]:
    """Our measures over the best peer's, red where a target is missed."""
    ours = next(line for line in lines if line.peer == OURS)
    late = results.missed(case, ours)
    return [
        f"[{'red' if name in late else 'green'}]{name} x{ours.ratios[name]:.2f}[/]"
        for name in named
        if name in ours.ratios
    ]


def plot(suite: Suite, rows: Sequence[Row], path: str) -> None:
    """One panel per case: bars of binning and training seconds, or of the deciding score.

    Raises:
        InputError: if matplotlib is missing, or no run succeeded.
    """
    blocks = [(case, lines) for case in suite.cases if (lines := results.lines(rows, case))]
    figure, panels = pictures.sheet(len(blocks), height=2.6)
    for panel, (case, lines) in zip(panels, blocks, strict=True):
        _draw(panel, suite, case, lines[::-1])
    pictures.save(figure, path)


def _draw(panel: Any, suite: Suite, case: Case, lines: Sequence[Line]) -> None:
    names = [line.peer for line in lines]
    if suite.kind == "quality":
        decides = results.deciding(case, lines[0].scores)
        panel.plot([line.scores[decides] for line in lines], names, "o", color="tab:blue")
        panel.set_xlabel(decides)
    elif "predict" in case.targets:
        panel.barh(names, [line.measures["predict"] for line in lines], color="tab:green")
        panel.set_xlabel("seconds of prediction")
    else:
        bins = [line.measures["bin"] for line in lines]
        panel.barh(names, bins, color="tab:orange", label="binning")
        panel.barh(names, [line.measures["train"] for line in lines], left=bins, color="tab:blue", label="training")
        panel.set_xlabel("seconds")
        panel.legend(fontsize="small")
    panel.set_title(case.name, fontsize="medium")
