"""Stop when another thread asks for it."""

from __future__ import annotations

import threading

from gpuboost.watch.record import Plan, Round


class Cancellation:
    """Stops once ``event`` is set. It need not be asked in every round, as a callback must: rounds may be repeated."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def begin(self, plan: Plan) -> None:
        """Do nothing: the event tells all fits."""

    def __call__(self, record: Round) -> bool:
        return self.event.is_set()

    def end(self) -> None:
        """Do nothing: no resource is held."""
