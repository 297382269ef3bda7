"""Names for streams of random numbers.

Number ``i`` of stream ``key`` is a pure function of ``(key, i)``: no state, no order. So a draw is the same on a
CPU and on a GPU, for one thread or many, and can be replayed without being stored. The numbers are Philox4x32-10
(Salmon, Moraes, Dror, Shaw, SC 2011): the seed is its key, and ``(i // 4, iteration, stream)`` its counter.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from zlib import crc32

from gpuboost.records import dataclass


class Stream(StrEnum):
    """The names of all random streams. The CRC of a value is the stream: a changed value changes every model file."""

    __hash__ = str.__hash__  # an enum's own is written in Python, and called for every stream of every round

    # of the data
    CUTS = "cuts"  # the rows that cuts are chosen from
    PERMUTATIONS = "permutations"  # the orders of the rows for target statistics, followed by a number

    # of a round, followed by a number: that of the draw for ROWS, of the step for LEAF_NOISE and SCORE_NOISE, of the
    # ticket otherwise
    ROWS = "rows"
    LEARNERS = "learners"
    RANDOM_STRENGTH = "random strength"
    EXTRA_TREES = "extra trees"
    STRUCTURE_NOISE = "structure noise"
    LEAF_NOISE = "leaf noise"
    SCORE_NOISE = "score noise"
    RANDOM_STRUCTURE = "random structure"
    BASE_LEARNER = "base learner"
    SKETCH = "sketch"

    # within a tree
    NODE = "node"  # features of a node, followed by its number
    LEVEL = "level"  # features of a level, followed by its depth
    SETS = "sets"  # sets of categories of a tree whose shape is random

    # of a simulated cluster, followed by the number of the order
    FAILS = "fails"
    HOW_FAR_IT_CAME = "how far it came"
    NETWORK_THERE = "network there"
    NETWORK_BACK = "network back"
    BUILD = "build"
    SERVER = "server"
    USUAL = "usual"
    STRAGGLES = "straggles"


@dataclass(frozen=True, slots=True)
class Key:
    """A path such as ``Key.root(7) / Stream.LEARNERS / 12 / Stream.NODE``; its names are of ``Stream``.

    Names fold into ``stream``. The first number of a path is ``iteration``, a word of its own, so that a device
    can advance from round to round by itself; a later number folds into ``stream`` like a name.
    """

    seed: int  # 64 bits
    stream: int = 0  # 32 bits
    iteration: int = -1  # -1: not named yet; drawn from as 0

    @classmethod
    def root(cls, seed: int) -> Key:
        return cls(int(seed) & 0xFFFF_FFFF_FFFF_FFFF)

    def __truediv__(self, name: str | int) -> Key:
        if self.iteration < 0:
            if isinstance(name, str):
                return _named(self.seed, self.stream, name)
            return Key(self.seed, self.stream, int(name) & 0x7FFF_FFFF)
        return Key(self.seed, _fold(name, self.stream), self.iteration)

    @property
    def words(self) -> tuple[int, int, int, int]:
        """(seed low, seed high, iteration, stream), each 32 bits: all that a kernel needs to draw."""
        return self.seed & 0xFFFF_FFFF, self.seed >> 32, max(self.iteration, 0), self.stream


@lru_cache(maxsize=1024)  # of a round's streams the names are the same in every round
def _fold(name: str | int, stream: int) -> int:
    return crc32(f"/{name}".encode(), stream)


@lru_cache(maxsize=256)
def _named(seed: int, stream: int, name: str) -> Key:
    return Key(seed, _fold(name, stream))
