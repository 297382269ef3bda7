"""The budget that speeds are held to, and the GPU they are measured on, or why there is none."""

from __future__ import annotations

from typing import Any

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.backends.cuda.trees.plan import WIDE_BYTES, tile_width
from gpuboost.benchmarks.harness.experiments import Finding

GRADIENTS, ROUTE, LAST_ROUTE = 17.0, 21.0, 14.0  # bytes a row
LISTED, GATHER_WASTE = 0.4, 1.3  # share of the rows in smaller children; sectors fetched for a row's own
SCORE, STEPS, DRAW, LOOKED_UP, SUMMED = 12.0, 4, 4.3, 4.0, 12.0  # where rows are drawn by scores: of every row
APART, SCATTERED = 27.0, 100.0  # gradients and scores where a step is taken apart; sectors for a drawn row's numbers
PASS = 20.0  # of a line search: target, score and leaf
NOISY = 1.25  # times as much, at most, may a round with noise on its gradients move


def bytes_per_row(d: int, depth: int) -> float:
    """Bytes that a tree of one output moves for each row, by design: 353 for 28 features and depth 8.

    Gradients and scores; the root's histogram, all bins of a row and its gradients; on each further level the route of
    every row and the bins of those in the smaller children; the last route.
    """
    bins = _bytes_of_row(d)
    built = LISTED * (8 + GATHER_WASTE * bins)
    return GRADIENTS + bins + 4 + (depth - 1) * (ROUTE + built) + LAST_ROUTE


def _bytes_of_row(d: int) -> int:
    """Bins of a row, in whole tiles."""
    width = tile_width(d, WIDE_BYTES)
    return -(-d // width) * width


def sampled_bytes_per_row(d: int, depth: int, rate: float) -> float:
    """The same where a share of the rows is drawn by importance, and leaf values are of all rows.

    Of every row a score is made, which each step of the search for the threshold and the draw read; its leaf is looked
    up and summed. The rows drawn are laid side by side, and cost what a tree costs.
    """
    bins = _bytes_of_row(d)
    of_all = GRADIENTS + APART + SCORE + 4.0 * STEPS + DRAW + bins + LOOKED_UP + SUMMED
    return of_all + rate * (bytes_per_row(d, depth) - GRADIENTS + 2.0 * bins + d + SCATTERED)


def searched_bytes_per_row(d: int, depth: int, passes: int) -> float:
    """The same where the step is a line search along the tree that takes so many passes, the one at 0 among them."""
    return bytes_per_row(d, depth) + APART + PASS * passes


def noisy_bytes_per_row(d: int, depth: int) -> float:
    """The same with noise on the gradient: no more than a quarter more."""
    return NOISY * bytes_per_row(d, depth)


def gpu_or_reason() -> tuple[Any, str]:
    """(runtime of the first usable GPU, its description), or (None, the reason why there is none)."""
    gpus = [device for device in gb.devices() if device.kind == "cuda"]
    for device in gpus:
        if device.usable:
            return open_gpu(device.name), device.description
    return None, "; ".join(device.why_not for device in gpus)


def skipped(title: str, columns: tuple[str, ...], reason: str) -> Finding:
    """An empty table, with the reason."""
    row = ("skipped", *[""] * (len(columns) - 2), reason.replace("[", r"\["))  # rich takes brackets for styles
    return Finding(title, columns, (row,), (), {"skipped": reason})
