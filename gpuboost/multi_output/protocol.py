"""Protocols: the trees of a round's outputs, and the sketch of gradients that their splits are searched by."""

from __future__ import annotations

from typing import Protocol

from gpuboost.backends.optional_verbs import OneTreeGrower
from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.types import Candidates, Gradients, Grow, Limits, Structure, Target, TrainingSet


class MultiOutput(Protocol):
    """The shapes of a round's trees."""

    def grow(
        self, backend: Backend, data: TrainingSet, target: Target, candidates: Candidates, alone: Grow, limits: Limits,
        key: Key,
    ) -> tuple[Structure, ...]:  # fmt: skip
        """One structure for each output. ``alone`` grows that of one output."""
        ...


class Sketch(Protocol):
    """Gradients of few outputs in the place of many, to search the splits of one tree by.

    Leaf values are always of all outputs. The gain by the sketch estimates that of all outputs, which is the sum over
    them of G^2 / (H + lambda) (Iosipoi and Vakhrushev 2022, arXiv 2211.12858).
    """

    def of(self, machine: OneTreeGrower, gradients: Gradients, key: Key) -> Gradients:
        """(s, m) gradients from (k, m), a function of the key, made by the machine that holds them. s: at most k."""
        ...
