"""The rounds of a training: the first ones launch verb by verb, later ones are one graph.

A verb is a method under ``@recorded_verb()``. The key of a call is the method, its object and all of its arguments, and
nothing else may affect its launches. After two consecutive rounds of equal calls, their launches become a graph: from
then on the methods are not called, calls return the recorded results, and the graph is launched at the end of the
round. A round that differs from the recorded one is executed verb by verb, from its first verb on. Sequences of trees
that grow in turn, each from scores of its own, have a recorded round each, and their buffers in common.

An input that may change from round to round without a new recording is an argument of a type of ``inputs``: the address
of 32-bit words on the device, not their value. The words are written before a verb's work, or before the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from functools import partial, wraps
from inspect import signature
from itertools import groupby
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, TypeVarTuple, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device.launches import Launch
from gpuboost.backends.cuda.device.recorder import Recorder
from gpuboost.types import Array

T = TypeVar("T")
P = ParamSpec("P")
Arguments = TypeVarTuple("Arguments")
Verb = tuple[Any, ...]  # the key of a call: a function and its arguments

WORDS = 32  # of input
UPLOADS = 64  # of inputs that may be under way before the host waits

_PLAIN = (int, float, str, bytes, bool)


@dataclass(frozen=True, slots=True)
class _Step:
    key: Verb  # keeps its objects alive, so that their ids stay theirs
    work: Callable[[], Any]
    result: Any
    launches: list[Launch]
    replayable: bool
    takes: bool
    lane: int | None = None


_Recorded: TypeAlias = tuple[list[_Step], Callable[[], None] | None, dict[int, Callable[[], None]]]


def _nothing() -> None:
    """Launch nothing."""


class Recording(Protocol):
    """An object that has recorded verbs."""

    _rounds: RecordedRound


S = TypeVar("S", bound=Recording)


def recorded_verb(*, takes: bool = False) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Make a method a verb of its object's rounds; see ``RecordedRound.call``, also for ``takes``.

    Besides its arguments the method may read what its object was made with, and nothing that changes.
    """

    def decorate(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        names = signature(method)

        @wraps(method)
        def verb(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if kwargs:
                args, kwargs = names.bind(self, *args, **kwargs).args[1:], {}  # type: ignore[assignment]  # as mypy sees P
            return self._rounds.verb((method, self, *args), partial(method, self, *args, **kwargs), takes=takes)

        return verb

    return decorate


class Postponed(Protocol):
    """Launches that wait for the next verb, which may fuse them with its own."""

    def launch(self) -> None: ...


class RecordedRound:
    """Recorder of rounds, one at a time: ``with round.enclosed(): ...`` around the verbs of a round."""

    def __init__(self, runtime: Recorder) -> None:
        self._runtime = runtime
        self.inputs: Array = runtime.zeros(WORDS, np.uint32)
        self._values = np.zeros(WORDS, np.uint32)
        self._words: dict[int, tuple[int, ...]] = {}  # the same, by the place of the first
        self._staged: list[NDArray[Any]] = [runtime.pinned(WORDS, np.uint32) for _ in range(UPLOADS)]
        self._written, self._dirty, self._reserved = 0, True, 0
        self._buffers: dict[Any, Any] = {}
        self._before: list[_Step] = []  # the last round, or the recorded one, of this sequence
        self._graph: Callable[[], None] | None = None
        self._several: dict[int, Callable[[], None]] = {}  # graphs of several rounds
        self._sequence, self._others = 0, dict[int, _Recorded]()  # these three of the other sequences
        self._now: list[_Step] = []
        self._open, self._replaying = False, False
        self._set: dict[int, tuple[int, ...]] = {}  # inputs of this round
        self._counted: dict[int, tuple[int, ...]] = {}  # those of the last round of which one word counts the rounds
        self._counts: dict[int, int] = {}  # place of that word, by the place of the input
        self._alike = True  # this round's verbs so far are those of the round before
        self._postponed: Postponed | None = None
        self._lane: int | None = None  # of the verb that is being recorded
        self._twins: dict[int, Any] = {}  # id of a result to the result of the same call in the round before

    @property
    def is_open(self) -> bool:
        return self._open

    @contextmanager
    def enclosed(self, sequence: int = 0) -> Iterator[None]:
        """Context of the verbs of one round of that sequence."""
        self._turn_to(sequence)
        self._open, self._replaying, self._alike = True, self._graph is not None, True
        self._now, self._set, self._counted, self._twins = [], {}, {}, {}
        try:
            yield
        except BaseException:
            self.forget()
            raise
        finally:
            self._open = False
        self._end()

    @property
    def repeatable(self) -> bool:
        """True after a round whose launches were, or have become, a graph."""
        return self._graph is not None and not self._open

    def repeat(
        self, first: Mapping[int, tuple[int, ...]], times: int = 1, after: Callable[[], None] = _nothing
    ) -> None:
        """The recorded round again, so many times, by one graph.

        Args:
            first: words that differ from round to round: by their place, the value for the first of these rounds.
            times: rounds. The first call for several rounds makes their graph.
            after: launches what makes these words, and those that ``counting`` names, the ones of the next round, where
                there are several. The host does not know their value then.
        """
        graph = self._graph if times == 1 else self._several.get(times)
        if graph is None:
            graph = self._several[times] = self._captured(self._before, times, after)
        for place, words in (*first.items(), *((counted, self._advanced(counted, 1)) for counted in self._counted)):
            self._put(place, words)
        self._write_inputs()
        graph()
        for counted in self._counted:
            self._counted[counted] = self._advanced(counted, times)
        if times > 1:
            for changed in (*first, *self._counted):
                self._words[changed] = ()

    @property
    def counting(self) -> int:
        """A bit for each word of ``inputs`` that counts the rounds."""
        return sum(1 << self._counts[place] for place in self._counted)

    def _advanced(self, place: int, times: int) -> tuple[int, ...]:
        """The words of an input that counts, so many rounds after the last one."""
        words, word = self._counted[place], self._counts[place] - place
        return (*words[:word], words[word] + times, *words[word + 1 :])

    def forget(self) -> None:
        """Drop the graphs, and the memory of the rounds so far."""
        if any(graph is not None for _, graph, _ in self._others.values()):
            self._runtime.wait()
        self._drop_graph()
        self._others = {}
        self._before, self._now, self._buffers, self._postponed, self._twins = [], [], {}, None, {}

    def call(self, work: Callable[[Unpack[Arguments]], T], *arguments: *Arguments, takes: bool = False) -> T:
        """The result of ``work`` for the arguments, or its result in the recorded round.

        ``work`` is a function, not a bound method, and its launches depend on nothing but the arguments. Arguments that
        are plain values, or frozen dataclasses of such, are compared by value, tuples entry by entry, all others by
        identity.

        takes: ``work`` takes the postponed launches; otherwise they are launched before it.
        """
        return self.verb((work, *arguments), partial(work, *arguments), takes=takes)

    def verb(self, key: Verb, work: Callable[[], T], *, takes: bool = False) -> T:
        """``call`` with an explicit key, which must contain everything that the launches of ``work`` depend on."""
        if not self._open:
            self._write_inputs()
            return work()
        expected = self._before[len(self._now)] if len(self._now) < len(self._before) else None
        if self._replaying:
            if expected is not None and self._same(key, expected.key):
                self._now.append(_Step(key, work, expected.result, expected.launches, True, takes, expected.lane))
                return cast(T, expected.result)
            self._do_after_all()
        return cast(T, self._did(key, work, takes))

    def postpone(self, launches: Postponed) -> None:
        """Postpone launches, from a verb's work: the next verb takes them, or they are launched before it. Outside of
        rounds they are launched at once."""
        if self._open:
            self._postponed = launches
        else:
            launches.launch()

    def take(self) -> Postponed | None:
        """The postponed launches, which the caller must launch then."""
        taken, self._postponed = self._postponed, None
        return taken

    def in_lane(self, lane: int | None) -> None:
        """Say of a verb, from its work, that it is independent of the verbs of other lanes before and after it.

        Independent are verbs up to the next one without a lane. In a graph they are launched together.
        """
        self._lane = lane

    def buffer(self, name: tuple[Any, ...], make: Callable[[], T]) -> T:
        """The result of ``make``, kept from round to round under this name; outside of rounds, a new one."""
        if not self._open:
            return make()
        if name not in self._buffers:
            self._buffers[name] = make()
        return cast(T, self._buffers[name])

    def reserve(self, count: int) -> int:
        """Index of the first of so many words among the inputs, reserved for one use.

        An even number of words begins at an even place: two words may be one float64, which GPUs read at multiples of
        8 bytes only.
        """
        place = self._reserved + (self._reserved % 2 if count % 2 == 0 else 0)
        self._reserved = place + count
        if self._reserved > WORDS:
            raise ValueError(f"inputs: there are {WORDS} words, and {self._reserved} are asked for.")
        self._words[place] = (0,) * count
        return place

    def set_inputs(self, place: int, words: tuple[int, ...], counts: int | None = None) -> None:
        """Set the value of reserved words on the device for the kernels of the next verbs.

        counts: which of the words is the number of the round, or None. When the round is repeated, it counts on.
        """
        if counts is not None:
            self._counted[place], self._counts[place] = words, place + counts
        if self._replaying and self._set.get(place, words) != words:
            self._do_after_all()  # a graph sees one value of each
        self._set[place] = words
        self._put(place, words)

    def _turn_to(self, sequence: int) -> None:
        if sequence != self._sequence:
            self._others[self._sequence] = self._before, self._graph, self._several
            self._before, self._graph, self._several = self._others.pop(sequence, ([], None, {}))
            self._sequence = sequence

    def _put(self, place: int, words: tuple[int, ...]) -> None:
        if self._words[place] != words:
            self._words[place], self._dirty = words, True
            self._values[place : place + len(words)] = words

    def _did(self, key: Verb, work: Callable[[], Any], takes: bool) -> Any:
        place = len(self._now)
        expected = self._before[place] if place < len(self._before) else None
        self._alike = self._alike and expected is not None and self._same(key, expected.key)
        if place == 0 and not self._alike and (self._before or not self._sequence):  # another training
            self.forget()
        self._write_inputs()
        before = None if takes else self.take()

        def all_of_it() -> Any:
            if before is not None:
                before.launch()
            return work()

        self._lane = None
        result, launches, replayable = self._runtime.record(all_of_it)
        self._now.append(_Step(key, work, result, launches, replayable, takes, self._lane))
        if self._alike and expected is not None:
            self._twins[id(result)] = expected.result
        return result

    def _do_after_all(self) -> None:
        """Execute the round's verbs so far, since it differs from the recorded round."""
        steps, self._now = self._now, []
        self._drop_graph()
        for step in steps:
            self._did(step.key, step.work, step.takes)

    def _end(self) -> None:
        if self._replaying:
            if self._graph is not None and len(self._now) == len(self._before):
                self._write_inputs()
                self._graph()
                self._now = []
                return
            self._do_after_all()
        self._launch_postponed()
        again = self._alike and len(self._now) == len(self._before)
        if again and self._now and all(step.replayable for step in self._now):
            self._graph = self._captured(self._now)
        elif self._runtime.member is not None:
            self._runtime.member.had_no_graph()
        self._before, self._now = self._now, []

    def _launch_postponed(self) -> None:
        """Launch what no verb took, as a part of the last verb."""
        if (left := self.take()) is not None:
            _, launches, replayable = self._runtime.record(left.launch)
            last = self._now[-1]
            replayable &= last.replayable
            self._now[-1] = replace(last, launches=[*last.launches, *launches], replayable=replayable)

    def _same(self, now: Verb, before: Verb) -> bool:
        """True if all entries are the same objects, their twins of the round before, or equal values."""
        if len(now) != len(before):
            return False
        for a, b in zip(now, before, strict=True):
            if a is b or self._twins.get(id(a), a) is b or (type(a) is type(b) and self._equal(a, b)):
                continue
            return False
        return True

    def _equal(self, a: Any, b: Any) -> bool:
        if type(a) is tuple:
            return self._same(a, b)
        if isinstance(a, _PLAIN):
            return bool(a == b)
        if not is_dataclass(a):
            return False
        try:
            return hash(a) == hash(b) and a == b
        except TypeError:  # it holds arrays
            return False

    def _drop_graph(self) -> None:
        if self._graph is not None:
            self._runtime.wait()  # it may still be running
        self._graph, self._several, self._replaying = None, {}, False

    def _captured(self, steps: list[_Step], times: int = 1, after: Callable[[], None] = _nothing) -> Callable[[], None]:
        return self._runtime.captured(times * [*_segments(steps), [self._runtime.launches_of(after)]])

    def _write_inputs(self) -> None:
        if not self._dirty:
            return
        if self._written == UPLOADS:
            self._runtime.wait()
            self._written = 0
        staged = self._staged[self._written]
        staged[:] = self._values
        self._runtime.write(self.inputs, staged)
        self._written, self._dirty = self._written + 1, False


def _segments(steps: list[_Step]) -> Iterator[list[list[Launch]]]:
    """The launches of a round in parts that follow one another, each of several lanes: see ``joined``."""
    for in_lanes, some in groupby(steps, lambda step: step.lane is not None):
        lanes: dict[int | None, list[Launch]] = {}
        for step in some:
            lanes.setdefault(step.lane if in_lanes else None, []).extend(step.launches)
        yield list(lanes.values())
