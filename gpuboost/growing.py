"""A model while it grows. A round more costs the same, however many there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuboost.types import Component, Ensemble


class Growing:
    """An ensemble that rounds are added to: F <- scale F, then F <- F + factor h. A round is in it once counted."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.scale, self.n_rounds = ensemble.scale, ensemble.n_rounds
        self._start, self._scales = ensemble, list(ensemble.scales)
        self._trees, self._components = list(ensemble.trees), list(ensemble.components)
        self._factors = list(ensemble.factors)
        self._last: Ensemble | None = ensemble  # what it is now, once somebody asked

    def shrink(self, by: float) -> None:
        """The bias apart; what is added afterwards is not shrunk."""
        if by != 1.0:
            self._last = None
            self._remember_scales()
            self.scale *= by

    def add(self, weak: tuple[Any, ...], factor: float) -> None:
        """One round: trees, or components, one per output."""
        self._last = None
        self._factors += [factor / self.scale] * len(weak)
        (self._components if isinstance(weak[0], Component) else self._trees).extend(weak)
        if self._scales or self.scale != 1.0:
            self._remember_scales()
            self._scales.append(self.scale)
        self.n_rounds += 1

    def ensemble(self, rounds: int | None = None) -> Ensemble:
        """The ensemble, now or after so many rounds; only whole rounds, even if a signal interrupted one."""
        if self._last is None:
            stop, scales = self.n_rounds * self._start.n_outputs, self._scales[: self.n_rounds]
            before = self.scale if self.n_rounds else self._start.scale  # a scale that never changed
            self._last = replace(
                self._start,
                trees=tuple(self._trees[:stop]),
                factors=tuple(self._factors[:stop]),
                scale=scales[-1] if scales else before,
                scales=tuple(scales),
                components=tuple(self._components[:stop]),
            )
        return self._last if rounds is None or rounds == self.n_rounds else self._last.first(rounds)

    def _remember_scales(self) -> None:
        if not self._scales:
            self._scales = [self.scale] * self.n_rounds
