"""Progress of a fit through rich: a live bar in a terminal or a notebook, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from gpuboost.arguments import is_integer
from gpuboost.errors import RecipeError
from gpuboost.records import dataclass
from gpuboost.watch.record import Plan, Round

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as RichProgress

BEFORE_FIRST = "compiling kernels"
"""Text until the first round is done, which is slow on a cold cache."""

REFRESH_SECONDS = 0.25
"""A bar is not drawn more often, so that it costs nothing when rounds are fast."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Speed without the first round, which may hold the compilation."""

    rounds_per_second: float
    seconds_left: float

    @classmethod
    def of(cls, record: Round, seconds_of_first: float) -> Pace:
        later = record.round > 0
        seconds = record.seconds - seconds_of_first if later else record.seconds
        rate = (record.round if later else 1) / max(seconds, 1e-9)
        return cls(rate, (record.rounds - record.round - 1) / rate)

    @property
    def speed(self) -> str:
        return f"{self.rounds_per_second:.1f} rounds/s"

    def __str__(self) -> str:
        minutes, seconds = divmod(round(self.seconds_left), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{self.speed}  {hours}:{minutes:02d}:{seconds:02d} left"


def metrics_text(record: Round, between: str = "  ") -> str:
    """Every metric of every eval set, with ``between`` after each set; the training loss if there is no eval set."""
    if not record.evals:
        return f"training loss {record.training_loss():.5g}"
    return between.join(
        f"{name} " + " ".join(f"{metric} {value:.5g}" for metric, value in values.items())
        for name, values in record.evals.items()
    )


class Screen(Protocol):
    """One way to show progress."""

    def open(self, plan: Plan) -> None: ...

    def show(self, record: Round, pace: Pace) -> None: ...

    def close(self) -> None: ...


class ProgressLines:
    """A line every k rounds, for logs."""

    def __init__(self, console: Console, every: int) -> None:
        self.console = console
        self.every = every
        self.latest: Round | None = None

    def open(self, plan: Plan) -> None:
        self._say(f"{BEFORE_FIRST}, then up to {plan.rounds} rounds")

    def show(self, record: Round, pace: Pace) -> None:
        self.latest, done = record, record.round + 1
        if done % self.every == 0 or done == record.rounds:
            self._say(f"[{done:>{len(str(record.rounds))}}/{record.rounds}] {metrics_text(record)}  {pace}")

    def close(self) -> None:
        """Write where a fit ended that did not run all its rounds."""
        if self.latest is not None and (done := self.latest.round + 1) < self.latest.rounds:
            self._say(f"stopped after {done} of up to {self.latest.rounds} rounds: {metrics_text(self.latest)}")

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


class Surface(Protocol):
    """Display of a progress bar; in a terminal rich's own ``Progress``."""

    def start(self) -> None: ...

    def refresh(self) -> None: ...

    def stop(self) -> None: ...


class Cell:
    """One output of a notebook, replaced at each refresh: needs no widgets."""

    def __init__(self, bar: RichProgress) -> None:
        self.bar = bar

    def start(self) -> None:
        from IPython import display

        show: Any = display.display
        self.handle = show(self.bar, display_id=True)

    def refresh(self) -> None:
        self.handle.update(self.bar)

    def stop(self) -> None:
        self.refresh()


class Bar:
    """A bar that pulses until the first round is done and then fills; metrics stand below, a line per eval set."""

    def __init__(self, bar: RichProgress, surface: Surface) -> None:
        self.bar = bar
        self.surface = surface
        self.latest: tuple[Round, Pace] | None = None
        self.drawn_at = 0.0

    def open(self, plan: Plan) -> None:
        self.task = self.bar.add_task(BEFORE_FIRST, total=None, done=f"0/{plan.rounds}", pace="", metrics="")
        self.surface.start()

    def show(self, record: Round, pace: Pace) -> None:
        self.latest = record, pace
        if time.perf_counter() - self.drawn_at >= REFRESH_SECONDS:
            self._draw(record, pace)

    def close(self) -> None:
        if self.latest is not None:
            self._draw(*self.latest, over=True)
        self.surface.stop()

    def _draw(self, record: Round, pace: Pace, *, over: bool = False) -> None:
        self.drawn_at = time.perf_counter()
        done = record.round + 1
        early = over and done < record.rounds
        self.bar.update(
            self.task,
            description="stopped" if early else "boosting",
            total=done if early else record.rounds,
            completed=done,
            done=f"after {done} of up to {record.rounds} rounds" if early else f"{done}/{record.rounds}",
            pace=pace.speed if early else str(pace),
            metrics=metrics_text(record, between="\n"),
        )
        self.surface.refresh()


def screen_for(console: Console, every: int) -> Screen:
    """The way to show progress that suits where the console writes."""
    if not (console.is_jupyter or console.is_terminal):
        return ProgressLines(console, every)
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    class WithMetrics(Progress):
        """A bar with the metrics below it, wrapped where the console is narrow."""

        def get_renderables(self) -> Iterable[RenderableType]:
            yield self.make_tasks_table(self.tasks)
            for task in self.tasks:
                yield Text(task.fields["metrics"], overflow="fold")

    fields = ("{task.fields[done]}", "{task.fields[pace]}")
    bar = WithMetrics(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        *(TextColumn(field, markup=False) for field in fields),
        console=console,
    )
    return Bar(bar, Cell(bar) if console.is_jupyter else bar)


class ProgressBar:
    """Round, metrics, rounds per second and time left, on standard error.

    In a terminal and in Jupyter it is a live bar; elsewhere a plain line every ``every`` rounds. It shows the metrics
    of the eval sets, or the training loss if there are none.
    """

    def __init__(self, every: int = 1, console: Console | None = None) -> None:
        if not is_integer(every, 1):
            raise RecipeError(f"every: a line is due every 1 or more rounds; got {every!r}.")
        self.every = every
        self.console = console

    def __repr__(self) -> str:
        return f"ProgressBar(every={self.every})"

    def begin(self, plan: Plan) -> None:
        from rich.console import Console

        self._screen = screen_for(self.console or Console(stderr=True), self.every)
        self._seconds_of_first: float | None = None
        self._screen.open(plan)

    def __call__(self, record: Round) -> bool:
        if self._seconds_of_first is None:
            self._seconds_of_first = record.seconds
        self._screen.show(record, Pace.of(record, self._seconds_of_first))
        return False

    def end(self) -> None:
        self._screen.close()
