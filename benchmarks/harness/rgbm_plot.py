"""Figures 1 and 5 of the RGBM paper: optimality gap and test loss, against rounds and against CPU seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuboost.benchmarks.harness import pictures
from gpuboost.errors import InputError

DEEPEST = 1e-5  # a share of the first gap: below it lies only the end of the run that is best

Run = Mapping[str, Any]
"""The fields of an ``rgbm_runs.Curve``."""


def draw(curves: Mapping[str, Sequence[Run]], path: str | Path) -> None:
    """One row of panels a data set: gap by rounds and by seconds of CPU, test loss by rounds and by seconds.

    Raises InputError if no set was run, or matplotlib is missing.
    """
    try:
        from matplotlib import colormaps
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("--plot: needs matplotlib, which is not installed. pip install 'gpuboosting[plot]'") from None
    if not curves:
        raise InputError("--plot: none of the parts that were run has curves to draw; a9a, colon, rcv1 and year have.")
    figure = Figure(figsize=(15.0, 3.3 * len(curves)), layout="constrained")
    panels = figure.subplots(len(curves), 4, squeeze=False)
    shades = colormaps["viridis"]
    for line, (name, runs) in zip(panels, curves.items(), strict=True):
        for i, run in enumerate(runs):  # the more compete, the darker
            shade = shades(0.92 * i / max(len(runs) - 1, 1))
            for panel, across, down in zip(line, ("rounds", "cpu") * 2, ("gap", "gap", "test", "test"), strict=True):
                panel.plot(*_line(run, runs, across, down), label=f"t = {run['t']:,}", color=shade, linewidth=1.4)
        _label(line, name)
    pictures.save(figure, path)


def _line(run: Run, runs: Sequence[Run], across: str, down: str) -> tuple[list[float], list[float]]:
    """The points of one curve. Times count from the end of the first round, which so has none to be drawn at."""
    least = min(min(curve["train"]) for curve in runs)
    first = max(curve["train"][0] for curve in runs) - least
    values = [loss - least for loss in run["train"]] if down == "gap" else run["test"]
    kept = [
        (x, value)
        for i, (x, value) in enumerate(zip(run[across], values, strict=True))
        if (across == "rounds" or i > 0) and (down == "test" or value > DEEPEST * first)
    ]
    kept = [kept[k] for k in pictures.thinned(len(kept))]
    return [x for x, _ in kept], [value for _, value in kept]


def _label(line: Sequence[Any], name: str) -> None:
    what = "training loss above the least", "training loss above the least", "test loss", "test loss"
    for panel, across, down in zip(line, ("rounds", "cpu") * 2, what, strict=True):
        panel.set_xscale("log")
        if down != "test loss":
            panel.set_yscale("log")
        panel.set_xlabel("rounds" if across == "rounds" else "CPU seconds")
        panel.set_ylabel(down)
        panel.grid(alpha=0.3)
    line[0].set_title(name, loc="left", fontweight="bold")
    line[0].legend(fontsize="small", loc="lower left")
