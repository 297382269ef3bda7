"""A model during training: the cost of adding a round does not depend on the number of rounds."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from gpuboost.types import Component, Ensemble, FittedTree, Nodes


class GrowingEnsemble:
    """An ensemble to which rounds are added: F <- scale F, then F <- F + factor h. A round is in it once counted."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.scale, self.n_rounds = ensemble.scale, ensemble.n_rounds
        self._start, self._scales = ensemble, list(ensemble.scales)
        self._trees, self._components = list(ensemble.trees), list(ensemble.components)
        self._factors = list(ensemble.factors)
        self._n_sealed = 0
        self._current: Ensemble | None = ensemble  # the ensemble as it is now, after the first request

    def shrink(self, by: float) -> None:
        """Multiply all but the bias; rounds that are added afterwards are not shrunk."""
        if by != 1.0:
            self._current = None
            self._remember_scales()
            self.scale *= by

    def add(self, weak_learners: tuple[Any, ...], factor: float) -> None:
        """One round: trees, or components, one per output."""
        self._current = None
        self._factors += [factor / self.scale] * len(weak_learners)
        (self._components if isinstance(weak_learners[0], Component) else self._trees).extend(weak_learners)
        if self._scales or self.scale != 1.0:
            self._remember_scales()
            self._scales.append(self.scale)
        self.n_rounds += 1

    def ensemble(self, rounds: int | None = None) -> Ensemble:
        """The ensemble now, or after this many rounds. It holds whole rounds, even if a signal interrupted one."""
        if self._current is None:
            stop, scales = self.n_rounds * self._start.n_outputs, self._scales[: self.n_rounds]
            before = self.scale if self.n_rounds else self._start.scale  # a scale that never changed
            self._current = replace(
                self._start,
                trees=tuple(self._trees[:stop]),
                factors=tuple(self._factors[:stop]),
                scale=scales[-1] if scales else before,
                scales=tuple(scales),
                components=tuple(self._components[:stop]),
            )
        return self._current if rounds is None or rounds == self.n_rounds else self._current.first(rounds)

    def sealed(self, ensemble: Ensemble) -> Ensemble:
        """The ensemble, collected to the host; arrays of its trees and components can no longer be written to."""
        for weak_learners in (ensemble.trees, ensemble.components):
            for weak_learner in weak_learners[self._n_sealed :]:
                _seal(weak_learner)
        self._n_sealed = max(len(ensemble.trees), len(ensemble.components))
        return ensemble

    def _remember_scales(self) -> None:
        if not self._scales:
            self._scales = [self.scale] * self.n_rounds


def _seal(record: Any) -> None:
    """Make the arrays of a tree or component read-only. Its space and centres, which others share, are left alone."""
    for field in fields(record) if is_dataclass(record) else ():
        value = getattr(record, field.name)
        if isinstance(value, (FittedTree, Nodes)):
            _seal(value)
        elif isinstance(value, np.ndarray) and field.name != "centres":
            value.setflags(write=False)
