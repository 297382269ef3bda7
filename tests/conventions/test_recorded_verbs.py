"""What a recorded verb is known by: every argument, but for those that say where their value lies on the device."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from gpuboost import losses
from gpuboost.backends import cuda
from gpuboost.backends.cuda.device.inputs import Input, KeyInput, RoundKey, RoundNoise
from gpuboost.backends.cuda.device.round import WORDS, RecordedRound, recorded_verb
from gpuboost.backends.numerics.probabilities import Proportional
from gpuboost.keys import Key
from gpuboost.types import Cuts, Limits, Noise, Sample

DYNAMIC = (Input, RoundKey, RoundNoise)


class Counting:
    """In the place of a ``Recorder``: verbs do nothing, and how many are recorded is counted."""

    def __init__(self) -> None:
        self.recorded, self.graphs = 0, 0
        self.member = None

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype)

    pinned = zeros

    def write(self, device, pinned):
        device[:] = pinned

    def wait(self): ...

    def record(self, work):
        self.recorded += 1
        return object(), [lambda: None], True

    def launches_of(self, work):
        return []

    def captured(self, launches):
        def launch():
            self.graphs += 1

        return launch


class Machine:
    """An object with verbs."""

    def __init__(self, rounds: RecordedRound) -> None:
        self._rounds = rounds

    @recorded_verb()
    def first(self, x: Any) -> Any: ...

    @recorded_verb()
    def second(self, x: Any, n: int = 3) -> Any: ...


class Player:
    """Plays rounds of one verb."""

    def __init__(self, verb: Callable[..., Any] = Machine.second) -> None:
        self.runtime = Counting()
        self.rounds = RecordedRound(self.runtime)
        self.machine, self.verb = Machine(self.rounds), verb
        self.number, self.key = Input(self.rounds, 2), KeyInput(self.rounds)

    def recordings(self, *args: Any, sequence: int = 0, **kwargs: Any) -> int:
        """How many verbs were recorded in a round of this call."""
        before = self.runtime.recorded
        with self.rounds.enclosed(sequence):
            self.verb(self.machine, *args, **kwargs)
        return self.runtime.recorded - before

    def replays(self, *args: Any) -> None:
        """Bring it so far that this call is replayed."""
        assert [self.recordings(*args) for _ in range(4)] == [1, 1, 0, 0]


def verbs() -> dict[str, Callable[..., Any]]:
    """All recorded verbs of the backend."""
    found = {}
    for module in pkgutil.walk_packages(cuda.__path__, f"{cuda.__name__}."):
        for owner in vars(import_module(module.name)).values():
            if isinstance(owner, type) and owner.__module__ == module.name:
                for name, value in vars(owner).items():
                    if getattr(value, "__code__", None) is Machine.first.__code__:
                        found[f"{owner.__name__}.{name}"] = value
    return found


VERBS = verbs()


def value(hint: Any, player: Player, number: int) -> Any:
    """One of several values for a parameter."""
    kinds = [kind for kind in (get_args(hint) if get_origin(hint) is UnionType else (hint,)) if kind is not type(None)]
    plain = {bool: number % 2 == 1, int: 10 + number, float: 0.5 + number}
    if kinds[0] in plain:
        return plain[kinds[0]]
    if kinds[0] is Input:
        return player.number.set(0, 0)
    if kinds[0] is RoundKey:
        return player.key.set(Key(7, 100 + number, 5))
    if kinds[0] is RoundNoise:
        return player.key.set_noise(Noise(0.5 + number, Key(7, 9, 5)))
    return (object(), object()) if get_origin(kinds[0]) is tuple else object()


def parameters(verb: Callable[..., Any]) -> dict[str, Any]:
    hints = get_type_hints(verb.__wrapped__)
    return {name: hints[name] for name in list(signature(verb.__wrapped__).parameters)[1:]}


def changes() -> list[tuple[str, str]]:
    """Every parameter of every verb, but inputs, of which each verb has one object."""
    return [(name, one) for name, verb in VERBS.items() for one, kind in parameters(verb).items() if kind is not Input]


def test_all_verbs_between_gradients_and_scores_are_recorded():
    assert {name.split(".")[0] for name in VERBS} == {
        "Targets", "RankingGradients", "SmoothedRankingGradients", "Importance", "Control", "Leaves", "LineSearch",
        "CudaSmoothing", "Cuda", "ScoreMetrics", "ArrayGradients", "CrossEntropyGradients", "GradientsOfHost",
        "OneTreeOnDevice", "DeviceSketches",
    }  # fmt: skip
    assert len(VERBS) >= 17


@pytest.mark.parametrize(("name", "changed"), changes())
def test_another_argument_is_another_recording(name, changed):
    kinds = parameters(VERBS[name])
    for other in (1, None) if type(None) in get_args(kinds[changed]) else (1,):
        player = Player(VERBS[name])
        args = {one: value(kind, player, 0) for one, kind in kinds.items()}
        player.replays(*args.values())
        args[changed] = None if other is None else value(kinds[changed], player, other)
        assert player.recordings(*args.values()) == 1


@pytest.mark.parametrize("name", [name for name in VERBS if set(parameters(VERBS[name]).values()) & {*DYNAMIC}])
def test_what_lies_on_the_device_may_change(name):
    player = Player(VERBS[name])
    args = [value(kind, player, 0) for kind in parameters(VERBS[name]).values()]
    player.replays(*args)
    player.number.set(12, 34)
    player.key.set(Key(7, 100, 6))
    assert player.recordings(*args) == 0
    assert player.number.words.tolist() == [12, 34]


def test_another_object_is_another_recording():
    player, x = Player(), object()
    player.replays(x)
    player.machine = Machine(player.rounds)
    assert player.recordings(x) == 1


def test_another_verb_is_another_recording():
    player, x = Player(Machine.first), object()
    player.replays(x)
    player.verb = Machine.second
    assert player.recordings(x) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Limits(8, 3, reg_lambda=float("0.5")),
        lambda: Proportional(rate=float("0.25")),
        lambda: losses.Huber(float("0.75")),
        Sample,
        lambda: float("0.1"),
        lambda: (Limits(8, 3), float("0.1"), ("a", 1)),
    ],
)
def test_equal_policies_are_the_same_argument(make):
    player = Player()
    player.replays(make())
    assert player.recordings(make()) == 0


@pytest.mark.parametrize(
    "make", [lambda: np.zeros(3), lambda: Cuts((np.zeros(2),), (None,)), lambda: Sample(np.zeros(2)), lambda: [1]]
)
def test_what_holds_arrays_is_the_same_only_if_it_is_one_object(make):
    player, x = Player(), make()
    player.replays(x)
    assert player.recordings(make()) == 1


@pytest.mark.parametrize(("a", "b"), [(1, True), (0, 0.0), ((1, 2), (1, 2, 3)), (None, 0), (1, None)])
def test_values_of_two_types_differ(a, b):
    player = Player()
    player.replays(a)
    assert player.recordings(b) == 1


def test_sequences_in_turn_have_a_recorded_round_each_and_buffers_in_common():
    player, scores, rooms = Player(), [object() for _ in range(3)], set()

    def play(x: Any, sequence: int) -> int:
        before = player.runtime.recorded
        with player.rounds.enclosed(sequence):
            player.machine.second(x)
            rooms.add(player.rounds.buffer(("room",), object))
        return player.runtime.recorded - before

    recorded = [[play(x, sequence) for sequence, x in enumerate(scores)] for _ in range(4)]
    assert recorded == [[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert player.runtime.graphs == 6
    assert len(rooms) == 1
    assert play(object(), 0) == 1  # another training: all are forgotten
    assert len(rooms) == 2
    assert [play(x, sequence) for sequence, x in enumerate(scores)] == [1, 1, 1]


def test_arguments_by_keyword_are_those_by_position():
    player, x = Player(), object()
    player.replays(x, 5)
    assert player.recordings(x, n=5) == player.recordings(n=5, x=x) == 0
    assert player.recordings(x, n=6) == 1


def test_the_result_of_a_verb_stands_for_that_of_the_round_before():
    """Handles are made anew while rounds are recorded."""
    player = Player()
    recorded = []
    for _ in range(4):
        before = player.runtime.recorded
        with player.rounds.enclosed():
            player.machine.second(player.machine.first(1))
        recorded.append(player.runtime.recorded - before)
    assert recorded == [2, 2, 0, 0]


def test_keys_are_known_by_all_but_their_iteration():
    key = Player().key
    one = key.set(Key(7, 3, 5))
    assert key.set(Key(7, 3, 6)) is one
    assert key.set(Key(7, 3, -1)) != one
    assert key.set(Key(8, 3, 5)) != one != key.set(Key(7, 4, 5))
    for name in ("sets", 3):
        low, high, _, stream = (Key(7, 3, 5) / name).words
        found = (one / name).arguments
        assert (found["seed_low"], found["seed_high"], found["name"]) == (low, high, stream)


def test_an_input_has_one_value_in_a_round():
    """A graph sees the last one, so a round that sets another is done verb by verb."""
    player = Player()
    number, recorded = player.number, []

    def play(*values):
        before = player.runtime.recorded
        with player.rounds.enclosed():
            for x in values:
                player.machine.second(number.set_number(x))
        recorded.append(player.runtime.recorded - before)

    play(0.5, 0.5)
    play(0.25, 0.25)
    play(0.125, 0.125)
    assert (recorded, player.runtime.graphs) == ([2, 2, 0], 1)
    assert number.number.tolist() == [0.125]
    play(0.5, 0.25)
    assert (recorded[-1], player.runtime.graphs) == (2, 1)


def test_a_number_lies_at_a_multiple_of_its_size():
    """A GPU cannot read it elsewhere."""
    rounds = RecordedRound(Counting())
    for words in (1, 2, 1, 4, 3, 2):
        place = Input(rounds, words).words.ctypes.data - rounds.inputs.ctypes.data
        assert place % (8 if words % 2 == 0 else 4) == 0
    assert place == 4 * 14


def test_there_is_room_for_so_many_inputs():
    rounds = RecordedRound(Counting())
    Input(rounds, WORDS)
    with pytest.raises(ValueError, match=f"inputs: there are {WORDS} words, and {WORDS + 1} are asked for"):
        Input(rounds, 1)
