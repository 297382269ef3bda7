"""Noise on gradients on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpuboost.backends.cpu import formulas
from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.kernels.common import normal
from gpuboost.kernels.sampling.row_noise import Derivatives, DrawnRows, Streams
from gpuboost.types import Array, Gradients, Noise

EVERY_ROW = np.empty(0, np.int32)

ByRows = Callable[[int, Callable[[int, int], None]], None]
"""(n, work): call work(start, stop) for parts of n rows"""


def noisy(gradients: Gradients, rows: Array | None, noise: Noise, by_rows: ByRows) -> Gradients:
    """See ``Backend.noise``."""
    if noise.scale is not None:
        return _scaled(gradients, rows, noise, by_rows)
    g, h, out = gradients.g, gradients.h, np.empty_like(gradients.g)
    m, rows = cpu_sums.multiplicity_of(gradients), EVERY_ROW if rows is None else rows

    def add(output: int, words: tuple[int, int, int, int]) -> Callable[[int, int], None]:
        from_to = (g[output], h[output], m, rows, noise.deviation, normal.TABLE, *words)
        return lambda a, b: normal.add_noise(*from_to, a, b, out[output])

    for output in range(len(g)):
        by_rows(g.shape[1], add(output, (noise.key / output).words))
    return replace(gradients, g=out)


def _scaled(gradients: Gradients, rows: Array | None, noise: Noise, by_rows: ByRows) -> Gradients:
    """The same where the scale is a user's function, by the kernel that a GPU has, too."""
    assert noise.scale is not None
    run, (k, n) = formulas.row_noise(noise.scale), gradients.g.shape
    g, h = (
        np.ascontiguousarray(values, np.float32).view(np.uint32).reshape(-1) for values in (gradients.g, gradients.h)
    )
    times, out = cpu_sums.multiplicity_of(gradients), np.empty((k, n), np.float32)
    of = Derivatives(g, h, times, int(times.size > 0))
    chosen = DrawnRows(EVERY_ROW if rows is None else rows, int(rows is not None), np.array([n], np.int32))
    seed_low, seed_high, iteration, _ = noise.key.words
    names = np.array([(noise.key / output).words[3] for output in range(k)], np.uint32)
    streams = Streams(np.uint32(seed_low), np.uint32(seed_high), np.array([iteration], np.uint32), names)
    arguments = of, chosen, n, k, noise.deviation, streams, normal.TABLE.reshape(-1), out.view(np.uint32).reshape(-1)
    by_rows(n, lambda a, b: run(a, b, 1, *arguments))
    return replace(gradients, g=out)
