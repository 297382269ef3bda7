"""Common part of the sharded machines: rows that the driver holds, and arrays that the shards hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Capabilities
from gpuboost.backends.sharded.arrays import Distributed, Driver, RemoteCalls, is_distributed
from gpuboost.backends.sharded.worker_group import AnyShard
from gpuboost.errors import InputError
from gpuboost.kernels.gradients import pointwise
from gpuboost.losses.protocol import Loss
from gpuboost.types import Array, Bins, Cuts, Ensemble, TrainingSet

MOST_ROWS = 2**31 - 1


class Machine(ABC):
    """The driver holds rows of eval sets and rows to predict, and computes on them with ``threads`` of its CPU."""

    name = "sharded"
    offers: Capabilities
    _shard: ClassVar[type[AnyShard]]  # class of the workers' shards

    def __init__(self, driver: Driver, calls: RemoteCalls, threads: int) -> None:
        self._local, self._driver, self._calls = Cpu(threads), driver, calls
        self._losses: list[tuple[Loss, Distributed]] = []
        self._sizes: tuple[int, ...] = ()

    @property
    def shards(self) -> int:
        return self._driver.workers.size

    # the data, once

    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        return self._local.quantise(x, cuts)

    # the round

    def collect(self, ensemble: Ensemble) -> Ensemble:
        return ensemble

    def to_host(self, result: Array) -> Array:
        if not isinstance(result, Distributed):
            return result
        return np.concatenate(self._calls.ask(self._shard.fetch, result), axis=-1)

    # the target, once a round

    def start(self, data: TrainingSet, bias: Array) -> Array:
        if not is_distributed(data):
            return self._local.start(data, bias)
        begin = np.asarray(bias, np.float64)
        if begin.ndim == 2:  # each shard gets the numbers of its rows
            parts = np.split(begin, np.cumsum(self._sizes)[:-1], axis=1)
            (number,), _ = self._driver.ask_each_and_keep(1, self._shard.begin, [(part,) for part in parts])
            return self._array(number, begin.shape)
        (number,) = self._calls.keep(1, self._shard.begin, begin)
        return self._array(number, (len(bias), data.n_rows))

    # the model

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        if isinstance(sums, Distributed):
            self._calls.tell(self._shard.show, sums, bias, scale, out)
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

    def interactions(self, ensemble: Ensemble, x: Any) -> Array:
        return self._local.interactions(self.collect(ensemble), x)

    # parts of the above

    @abstractmethod
    def _sum_of_losses(self, loss: Loss, scores: Array, *, weighted: bool) -> float:
        """Sum over all shards' rows, in the library's fixed order."""

    def _sized(self, sizes: Sequence[int], n_rows: int) -> list[int]:
        """Set the number of rows of each shard. Returns the number of each shard's first row."""
        if n_rows > MOST_ROWS:
            raise InputError(f"X: rows are numbered by 32 bits, so {MOST_ROWS:,} are the most; got {n_rows:,}.")
        self._sizes = tuple(sizes)
        return [int(first) for first in np.cumsum([0, *sizes])[:-1]]

    def _array(self, number: int, shape: tuple[int, ...]) -> Distributed:
        """The rows of the shards' arrays of that number, concatenated."""
        return self._driver.array(number, shape, self._sizes)

    def _remote_loss(self, loss: Loss) -> Any:
        """The loss, sent to the shards once: a copy in each message would be compiled each time."""
        for known, held in self._losses:
            if known is loss:
                return held
        (number,) = self._calls.keep(1, self._shard.receive, loss)
        self._losses.append((loss, self._array(number, ())))
        return self._losses[-1][1]
