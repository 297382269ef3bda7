"""What a sharded machine does whatever its shards compute with: rows that no shard holds, and arrays that shards do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpuboost.backends.capabilities import Capabilities
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.sharded.arrays import Distributed, Driver, is_distributed
from gpuboost.errors import InputError
from gpuboost.kernels.gradients import pointwise
from gpuboost.losses.protocol import Loss
from gpuboost.types import Array, Bins, Cuts, Ensemble, TrainingSet

MOST_ROWS = 2**31 - 1


class Machine(ABC):
    """Rows of eval sets and to predict are the driver's own, with ``threads`` of its CPU."""

    name = "sharded"
    offers: Capabilities

    def __init__(self, driver: Driver, threads: int) -> None:
        self._local, self._driver = Cpu(threads), driver
        self._losses: list[tuple[Loss, Distributed]] = []
        self._sizes: tuple[int, ...] = ()

    @property
    def shards(self) -> int:
        return self._driver.crew.size

    # the data, once

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        return self._local.quantise(x, cuts)

    # the round

    def collect(self, ensemble: Ensemble) -> Ensemble:
        return ensemble

    def to_host(self, found: Array) -> Array:
        if not isinstance(found, Distributed):
            return found
        return np.concatenate(self._driver.ask("fetch", found), axis=-1)

    # the target, once a round

    def start(self, data: TrainingSet, bias: Array) -> Array:
        if not is_distributed(data):
            return self._local.start(data, bias)
        (number,) = self._driver.keep(1, "begin", np.asarray(bias, np.float64))
        return self._array(number, (len(bias), data.n_rows))

    # the model

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        if isinstance(sums, Distributed):
            self._driver.tell("show", sums, bias, scale, out)
        else:
            self._local.scores(sums, bias, scale, out)

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        if not isinstance(scores, Distributed):
            return self._local.loss_value(loss, scores, y, weight)
        total = self._sum_of_losses(loss, scores, weighted=weight is not None)
        return total / (len(y) if weight is None else float(pointwise.sum_in_order(weight)))

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        return self._local.predict(self.collect(ensemble), x)

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        return self._local.staged_predict(self.collect(ensemble), x)

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        return self._local.leaves(self.collect(ensemble), x)

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        return self._local.contributions(self.collect(ensemble), x)

    # parts of the above

    @abstractmethod
    def _sum_of_losses(self, loss: Loss, scores: Array, *, weighted: bool) -> float:
        """Over all shards' rows, in the library's fixed order."""

    def _sized(self, sizes: Sequence[int], n_rows: int) -> list[int]:
        """Take note of how many rows each shard is to have. Answers the number of the first row of each."""
        if n_rows > MOST_ROWS:
            raise InputError(f"X: rows are numbered by 32 bits, so {MOST_ROWS:,} are the most; got {n_rows:,}.")
        self._sizes = tuple(sizes)
        return [int(first) for first in np.cumsum([0, *sizes])[:-1]]

    def _array(self, number: int, shape: tuple[int, ...]) -> Distributed:
        """What the shards hold under that number, of every row."""
        return self._driver.array(number, shape, self._sizes)

    def _held(self, loss: Loss) -> Distributed:
        """The loss, sent to the shards once: a copy that came with each message would be compiled each time."""
        for known, held in self._losses:
            if known is loss:
                return held
        (number,) = self._driver.keep(1, "receive", loss)
        self._losses.append((loss, self._array(number, ())))
        return self._losses[-1][1]
