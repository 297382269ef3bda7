"""All-reduce of arrays by the shards of a Ray cluster, through its object store, where GPUs have no other way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from gpuboost.backends.cuda.device.collective import combined


@dataclass(slots=True)
class _Turn:
    given: dict[int, NDArray[Any]] = field(default_factory=dict)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    found: NDArray[Any] | None = None
    left: int = 0  # ranks that took it


class RendezvousActor:
    """The actor: all ranks are in it at once, each waiting for the others."""

    def __init__(self) -> None:
        self._turns: dict[int, _Turn] = {}

    async def reduce(self, turn: int, rank: int, size: int, array: NDArray[Any], how: str) -> NDArray[Any]:
        now = self._turns.setdefault(turn, _Turn())
        now.given[rank] = array
        if len(now.given) == size:
            now.found = combined([now.given[worker] for worker in range(size)], how)
            now.given.clear()
            now.done.set()
        await now.done.wait()
        now.left += 1
        if now.left == size:
            del self._turns[turn]
        assert now.found is not None
        return now.found


class RayRendezvous:
    """See ``cuda.device.collective.Rendezvous``. Each rank has a copy, that counts the calls.

    A shard that is lost ends the fit, and with it those that wait.
    """

    def __init__(self, actor: Any) -> None:
        self._actor, self._turn = actor, 0

    def reduce(self, rank: int, size: int, array: NDArray[Any], how: str) -> NDArray[Any]:
        import ray

        self._turn += 1
        total: NDArray[Any] = ray.get(self._actor.reduce.remote(self._turn, rank, size, array, how))
        return total

    def abort(self) -> None:
        """The driver ends all shards when one fails."""
