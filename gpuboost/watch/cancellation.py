"""Stop when another thread sets an event."""

from __future__ import annotations

import threading

from gpuboost.watch.record import Plan, Round


class Cancellation:
    """Stops once ``event`` is set. Unlike a callback it need not be called in every round: rounds may be repeated."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def begin(self, plan: Plan) -> None:
        """Do nothing: one event stops all fits."""

    def __call__(self, record: Round) -> bool:
        return self.event.is_set()

    def end(self) -> None:
        """Do nothing: no resource is held."""
