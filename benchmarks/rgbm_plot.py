"""Figures 1 and 5 of the RGBM paper: optimality gap and test loss, against rounds and against seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuboost.errors import InputError


def draw(curves: Mapping[str, Sequence[Mapping[str, Any]]], path: str | Path) -> None:
    """One row of panels a data set: gap by rounds, gap by seconds, test loss by rounds, test loss by seconds.

    Raises InputError if no set was run, or matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("--plot: needs matplotlib, which is not installed. pip install 'gpuboost[plot]'") from None
    if not curves:
        raise InputError("--plot: none of the parts that were run has curves to draw; a9a, colon, rcv1 and year have.")
    figure = Figure(figsize=(15.0, 3.4 * len(curves)), layout="constrained")
    panels = figure.subplots(len(curves), 4, squeeze=False)
    for line, (name, runs) in zip(panels, curves.items(), strict=True):
        least = min(min(run["train"]) for run in runs)
        for run in runs:
            gap = [max(loss - least, 1e-12) for loss in run["train"]]
            label = f"t = {run['t']}"
            for panel, across in ((line[0], "rounds"), (line[1], "seconds")):
                panel.loglog(run[across], gap, label=label)
            for panel, across in ((line[2], "rounds"), (line[3], "seconds")):
                panel.semilogx(run[across], run["test"], label=label)
        for panel, what, across in zip(line, ("gap", "gap", "test", "test"), ("rounds", "seconds") * 2, strict=True):
            panel.set_xlabel(across)
            panel.set_ylabel("training loss above the least" if what == "gap" else "test loss")
            panel.set_title(name, fontsize="medium")
        line[0].legend(fontsize="small")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
