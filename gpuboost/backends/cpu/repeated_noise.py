"""Noise of rounds that a CPU repeats: the arguments of ``kernels.growth.repeated_noise``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.backends.cpu import sums as cpu_sums
from gpuboost.backends.cpu.sampling.noise import EVERY_ROW
from gpuboost.kernels.common import normal
from gpuboost.kernels.common.by_address import address_of
from gpuboost.kernels.common.records import NoiseStreams, RepeatedTrees
from gpuboost.kernels.leaves.leaf_noise import add_leaf_noise
from gpuboost.types import Gradients, Noise

ITERATION = 2  # its place among ``Key.words``


class NoiseOfRounds:
    """The noise of repeated rounds, on gradients or on leaf values or on both."""

    def __init__(self, of_gradients: Noise | None, of_leaves: Noise | None, k: int, n: int) -> None:
        """k outputs, whose trees are grown from at most n rows."""
        self._both = of_gradients, of_leaves
        words = [
            np.array([(noise.key / output).words for output in range(k)] if noise else [], np.int64).reshape(-1, 4)
            for noise in self._both
        ]
        deviations = np.array([0.0 if noise is None else noise.deviation for noise in self._both])
        self._noise = NoiseStreams(*words, deviations, normal.TABLE, np.empty(n, np.float32))

    def arguments(self, trees: RepeatedTrees, gradients: Gradients, ridge: float) -> tuple[Any, ...]:
        """The kernel's ``of_noise``. gradients: those of all rows."""
        noise, words, m = self._noise, (0, 0, 0, 0), cpu_sums.multiplicity_of(gradients)
        g, h, n = gradients.g[0], gradients.h[0], len(noise.room)
        of_rows = g, h, m, EVERY_ROW, 0.0, noise.table, *words, 0, n, noise.room
        of_leaves = trees.feature, trees.cover, ridge, 0.0, noise.table, *words, trees.value
        addresses = [
            0 if self._both[0] is None else address_of(normal.add_noise, *of_rows),
            0 if self._both[1] is None else address_of(add_leaf_noise, *of_leaves),
        ]
        self.is_known = None not in addresses  # the verbs have called them with arguments of these types
        return np.array([address or 0 for address in addresses], np.int64), tuple(noise)

    def begin(self, rounds: int) -> None:
        """Begin a call. rounds: from the one whose verbs are known to the first of the call."""
        for noise, words in zip(self._both, self._noise, strict=False):
            if noise is not None:
                words[:, ITERATION] = noise.key.iteration + rounds
