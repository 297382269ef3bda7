"""A log of the rows that each round drew: written on the device, read by the host after the training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.round import RecordedRound
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.types import Array, Drawn, Gradients, Sample

ToHost: TypeAlias = Callable[[Any], NDArray[Any]]

PLACES = 1 << 14  # rounds; of a longer training, the last ones

DRAW = np.dtype([("rows", np.int32), ("excluded", np.int32), ("largest", np.float32), ("spare", np.uint32)])
"""One round: rows drawn, rows whose probability was 0, and the largest 1 / p."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawLog:
    """A ring of DRAW, and the number of records written."""

    places: int
    ring: Array  # (places, 16) uint8
    written: Array  # (1,) uint32

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of kernels that draw."""
        return {"log": self.ring, "places": self.places, "draws": self.written}

    def read(self, to_host: ToHost, numbers: Sequence[int] = ()) -> NDArray[np.void]:
        """(rounds,) DRAW, the first round first. numbers: of the draws that became rounds, in that order; (): all."""
        count, ring = int(to_host(self.written)[0]), to_host(self.ring).view(DRAW).reshape(self.places)
        if numbers:
            return ring[[number % self.places for number in numbers if number >= count - self.places]]
        return ring[:count] if count <= self.places else np.roll(ring, -(count % self.places))


def draw_log(runtime: Runtime, rounds: RecordedRound) -> DrawLog:
    """An empty log; outside of rounds only the last draw is kept."""
    places = PLACES if rounds.is_open else 1
    return DrawLog(places, runtime.zeros((places, DRAW.itemsize), np.uint8), runtime.zeros(1, np.uint32))


def fetched(drawn: Drawn, to_host: ToHost, numbers: Sequence[int] = ()) -> tuple[Drawn, NDArray[np.void]]:
    """The last draw of a training in the host's memory, and (rounds,) DRAW of all of them; numbers: see ``DrawLog``."""
    sample: Any = drawn.sample
    draws = cast(DrawLog, sample.log).read(to_host, numbers)
    last, some = draws[-1], drawn.target.rows is not None
    count = int(last["rows"])
    inverse = np.full(count, last["largest"])
    if sample.inverse_probability is not None:
        inverse = to_host(sample.inverse_probability)[:count]

    def downloaded(gradients: Gradients, rows: int | None) -> Gradients:
        g, h, m = gradients.g, gradients.h, gradients.multiplicity
        return Gradients(to_host(g)[:, :rows], to_host(h)[:, :rows], None if m is None else to_host(m)[:rows])

    of_all, of_target = downloaded(drawn.gradients, None), downloaded(drawn.target.gradients, count if some else None)
    on_host = Sample(to_host(sample.rows)[:count], inverse, int(last["excluded"]))
    target = replace(drawn.target, rows=on_host.rows if some else None, gradients=of_target)
    leaves = tuple(leaf if leaf is None else to_host(leaf) for leaf in drawn.leaves)
    return Drawn(of_all, on_host, target, leaves), draws
