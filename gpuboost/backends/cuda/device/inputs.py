"""Inputs of a round that may change without a new recording: words at a fixed address on the device.

An argument of one of these types gives a recorded verb the address of a value, not the value itself. So the value
cannot become part of a recorded launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any, final

import numpy as np

from gpuboost.backends.cuda.device.round import RecordedRound
from gpuboost.keys import Key
from gpuboost.types import Array, Noise, NoiseScale

ITERATION = 2  # of the words of a key
_ONE_FLOAT, _TWO_WORDS = Struct("=d"), Struct("=II")


@final
class Input:
    """(count,) uint32 on the device. Compared by identity."""

    __slots__ = ("_place", "_rounds", "words")

    def __init__(self, rounds: RecordedRound, count: int) -> None:
        self._rounds, self._place = rounds, rounds.reserve(count)
        self.words: Array = rounds.inputs[self._place : self._place + count]

    @property
    def number(self) -> Array:
        """(1,) float64 on the device: two words."""
        return self.words.view(np.float64)

    def set(self, *words: int) -> Input:
        """Set the value from the next verb on; return self."""
        self._rounds.set_inputs(self._place, words)
        return self

    def set_key(self, key: Key) -> Input:
        """Set four words to those of the key; return self. Its iteration counts on when the round is repeated."""
        self._rounds.set_inputs(self._place, key.words, ITERATION)
        return self

    def count(self, number: int) -> Input:
        """Set one word to a number that counts on when the round is repeated; return self."""
        self._rounds.set_inputs(self._place, (number,), 0)
        return self

    def set_number(self, number: float) -> Input:
        """Set the value of two words to one float64; return self."""
        return self.set(*_words_of(number))

    def holding(self, *words: int) -> tuple[int, tuple[int, ...]]:
        """Its place and these words, for ``RecordedRound.repeat``."""
        return self._place, words

    def holding_number(self, number: float) -> tuple[int, tuple[int, ...]]:
        """The same for one float64."""
        return self._place, _words_of(number)


def _words_of(number: float) -> tuple[int, ...]:
    return _TWO_WORDS.unpack(_ONE_FLOAT.pack(number))


@dataclass(frozen=True, slots=True)
class RoundKey:
    """A ``Key`` whose iteration is on the device. ``names``: the other parts, of iteration 0, or -1 if not named."""

    names: Key
    iteration: Input

    def __truediv__(self, name: str | int) -> RoundKey:
        return RoundKey(self.names / name, self.iteration)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of kernels that draw from the stream."""
        low, high, _, name = self.names.words
        return {"seed_low": low, "seed_high": high, "iteration": self.iteration.words, "name": name}


@dataclass(frozen=True, slots=True)
class RoundNoise:
    """A ``Noise`` whose key is a ``RoundKey``."""

    deviation: float
    key: RoundKey
    scale: NoiseScale | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of kernels that add the noise."""
        return {"deviation": self.deviation, **self.key.arguments}


@final
class KeyInput:
    """The device address of the iteration in one verb's keys."""

    __slots__ = ("_iteration", "_last", "_last_noise")

    def __init__(self, rounds: RecordedRound) -> None:
        self._iteration = Input(rounds, 1)
        self._last: RoundKey | None = None
        self._last_noise: RoundNoise | None = None

    def set(self, key: Key) -> RoundKey:
        """Set the key of the next verb. Returns the same object as long as only the iteration changes."""
        if key.iteration >= 0:
            self._iteration.count(key.iteration)
        else:
            self._iteration.set(0)  # a key without a number is the same in every round
        names, last = (key.seed, key.stream, min(key.iteration, 0)), self._last
        if last is None or (last.names.seed, last.names.stream, last.names.iteration) != names:
            last = self._last = RoundKey(Key(*names), self._iteration)
        return last

    def set_noise(self, noise: Noise | None) -> RoundNoise | None:
        """``set`` for the noise's key; None without noise."""
        if noise is None:
            return None
        key, last = self.set(noise.key), self._last_noise
        if last is None or last.key is not key or (last.deviation, last.scale) != (noise.deviation, noise.scale):
            last = self._last_noise = RoundNoise(noise.deviation, key, noise.scale)
        return last
