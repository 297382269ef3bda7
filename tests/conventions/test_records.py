"""Records that are made quickly are what ``dataclasses`` makes."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import weakref
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from typing import Any, get_type_hints

import pytest

from gpuboost import records
from gpuboost.types import Built

OPTIONS: dict[str, Any] = {"frozen": True, "slots": True, "weakref_slot": True}


def both(**options: Any) -> Callable[[type[Any]], tuple[type[Any], type[Any]]]:
    """A class made by ``dataclasses``, and by the library."""

    def made(record: type[Any]) -> tuple[type[Any], type[Any]]:
        text = {name: value for name, value in vars(record).items() if name not in {"__dict__", "__weakref__"}}
        plain, quick = (type(record.__name__, (), dict(text)) for _ in range(2))
        given = OPTIONS | options
        return dataclasses.dataclass(**given)(plain), records.dataclass(**given)(quick)

    return made


@both()
class PAIR:
    """Fields with and without defaults, one that is not shown, one that is not compared."""

    a: int
    b: str
    c: float = field(default=0.5, repr=False)
    d: tuple[int, ...] = field(default=(), compare=False)
    e: list[int] = field(default_factory=list, hash=False)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError(self.b)


PLAIN, QUICK = PAIR


@pytest.mark.parametrize("given", [((1, "x"), {}), ((1, "x", 2.0), {"d": (3,), "e": [4]}), ((), {"b": "x", "a": 1})])
def test_they_hold_what_they_are_given(given: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    record, plain = QUICK(*given[0], **given[1]), PLAIN(*given[0], **given[1])
    assert asdict(record) == asdict(plain)
    assert repr(record) == repr(plain)
    assert hash(record) == hash(plain)
    assert record == QUICK(*given[0], **given[1])
    assert record == replace(record, d=(9,))
    assert record != replace(record, e=[9])
    assert record != plain
    assert record.__getstate__() == plain.__getstate__()
    assert weakref.ref(record)() is record


def test_they_are_described_alike() -> None:
    assert is_dataclass(QUICK)
    assert str(QUICK.__dataclass_params__) == str(PLAIN.__dataclass_params__)
    assert list(map(str, fields(QUICK))) == list(map(str, fields(PLAIN)))
    assert (QUICK.__match_args__, QUICK.__slots__) == (PLAIN.__match_args__, PLAIN.__slots__)
    assert str(inspect.signature(QUICK)) == str(inspect.signature(PLAIN))
    assert get_type_hints(QUICK.__init__) == get_type_hints(PLAIN.__init__)
    for name in ("__init__", "__eq__", "__hash__"):
        assert getattr(QUICK, name).__qualname__ == f"PAIR.{name}"
    assert QUICK(1, "x").e is not QUICK(1, "x").e


def test_they_raise_the_same_errors() -> None:
    for change in (lambda one: setattr(one, "a", 2), lambda one: delattr(one, "a"), lambda one: one.__class__(-1, "x")):
        messages = []
        for record in PAIR:
            with pytest.raises((FrozenInstanceError, ValueError)) as raised:
                change(record(1, "x"))
            messages.append(raised.exconly())
        assert messages[0] == messages[1]
    with pytest.raises(FrozenInstanceError):
        QUICK(1, "x").other = 1
    for wrong in ((1,), (1, "x", 2.0, (), [], 5)):
        with pytest.raises(TypeError, match="__init__"):
            QUICK(*wrong)


def test_pickles_hold_what_dataclasses_would_have_written() -> None:
    built = Built(1, 0, 2, None)
    assert built.__reduce_ex__(4)[2] == [getattr(built, one.name) for one in fields(built)]
    assert pickle.loads(pickle.dumps(built)) == built


def test_what_a_class_defines_itself_stays() -> None:
    @both()
    class Own:  # noqa: PLW1641  # a record has one
        """Its own comparison, and text."""

        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    for record in Own:
        assert record(1) == 2
        assert hash(record(1)) == hash((1,))
        assert repr(record(1)) == "own"


def test_identity_and_silence_can_be_asked_for() -> None:
    @both(eq=False, repr=False)
    class Same:
        """Compared by identity."""

        a: int

    for record in Same:
        assert record(1) != record(1)
        assert repr(record(1)).startswith("<")


def test_a_record_may_hold_itself() -> None:
    plain, quick = (record(1, "x") for record in PAIR)
    for record in (plain, quick):
        record.e.append(record)
    assert repr(quick) == repr(plain)


def test_a_class_that_derives_may_have_attributes_of_its_own() -> None:
    class More(QUICK):  # type: ignore[misc,valid-type]
        pass

    more = More(1, "x")
    more.other = 2
    assert more.other == 2
    with pytest.raises(FrozenInstanceError):
        more.a = 2


def test_all_others_are_left_to_dataclasses() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Derived(QUICK):  # type: ignore[misc,valid-type]
        """One field more, that is not given."""

        f: int = field(init=False, default=7)

    @records.dataclass
    class Open:
        """It can be changed."""

        a: int = 0

    assert Derived(1, "x").f == 7
    with pytest.raises(FrozenInstanceError):
        Derived(1, "x").f = 8
    opened = Open()
    opened.a = 1
    assert opened == Open(1)
