"""Distributions of durations in a simulated cluster. Every draw is a pure function of a key, so runs are repeatable.

A number of seconds stands for ``Constant`` in every parameter that takes a distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from statistics import NormalDist
from typing import Any, Protocol, runtime_checkable

from gpuboost.elementary import exp, log
from gpuboost.errors import RecipeError
from gpuboost.execution.rules import positive
from gpuboost.keys import Key, Stream

__all__ = ["Constant", "Exponential", "LogNormal", "Straggling", "Time"]


@runtime_checkable
class Time(Protocol):
    """A distribution of durations."""

    def seconds(self, key: Key) -> float: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant duration."""

    value: float

    def __post_init__(self) -> None:
        positive("value", self.value, or_zero=True)

    def seconds(self, key: Key) -> float:
        return float(self.value)


@dataclass(frozen=True, slots=True)
class ExponentialTimes:
    """Exponential distribution, the assumption of queueing theory."""

    mean: float

    def __post_init__(self) -> None:
        positive("mean", self.mean)

    def seconds(self, key: Key) -> float:
        return -self.mean * log(uniform(key))


Exponential = ExponentialTimes
"""The public name, ``gb.times.Exponential``; ``gb.losses.Exponential`` is a loss."""


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Log-normal distribution, as measured times have. ``spread`` is the standard deviation of the logarithm."""

    median: float
    spread: float = 0.25

    def __post_init__(self) -> None:
        positive("median", self.median)
        positive("spread", self.spread, or_zero=True)

    def seconds(self, key: Key) -> float:
        return self.median * exp(self.spread * NormalDist().inv_cdf(uniform(key)))


@dataclass(frozen=True, slots=True)
class Straggling:
    """Stragglers: with ``probability``, ``factor`` times as long as ``usual``."""

    usual: Any
    probability: float = 0.05
    factor: float = 10.0

    def __post_init__(self) -> None:
        time("usual", self.usual)
        positive("factor", self.factor)
        if positive("probability", self.probability, or_zero=True) > 1.0:
            raise RecipeError(f"probability: must be at most 1; got {self.probability!r}.")

    def seconds(self, key: Key) -> float:
        usual = time("usual", self.usual).seconds(key / Stream.USUAL)
        return usual * self.factor if uniform(key / Stream.STRAGGLES) < self.probability else usual


def time(name: str, value: Any) -> Time:
    """The distribution that the value stands for, or RecipeError."""
    if isinstance(value, Time) and not isinstance(value, type):
        return value
    try:
        return Constant(positive(name, value, or_zero=True))
    except RecipeError:
        raise RecipeError(
            f"{name}: must be a number of seconds, 0 or more, or a distribution such as gb.times.LogNormal(0.1); "
            f"got {value!r}."
        ) from None


def uniform(key: Key) -> float:
    """A number in (0, 1) from a hash of the key: drawn on the host only, and rarely."""
    seed = b"".join(word.to_bytes(4, "little") for word in key.words)
    lot = int.from_bytes(blake2b(seed, digest_size=8).digest(), "little") >> 11
    return (lot + 0.5) * 2.0**-53
