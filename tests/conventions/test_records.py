"""Records that are made in half the time are what they were."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from gpuboost.records import fast_dataclass
from gpuboost.types import Built


@dataclass(frozen=True, slots=True)
class Plain:
    """Some fields, some with a default."""

    a: int
    b: str
    c: float = 0.5
    d: tuple[int, ...] = ()


@fast_dataclass
@dataclass(frozen=True, slots=True)
class Swift:
    """The same, by way of another ``__init__``."""

    a: int
    b: str
    c: float = 0.5
    d: tuple[int, ...] = ()


@pytest.mark.parametrize("given", [((1, "x"), {}), ((1, "x", 2.0), {"d": (3,)}), ((), {"b": "x", "a": 1})])
def test_they_hold_what_they_are_given(given: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    record, plain = Swift(*given[0], **given[1]), Plain(*given[0], **given[1])
    assert (record.a, record.b, record.c, record.d) == (plain.a, plain.b, plain.c, plain.d)
    assert repr(record) == repr(plain).replace("Plain", "Swift")
    assert record == Swift(*given[0], **given[1])
    assert hash(record) == hash(Swift(*given[0], **given[1]))


def test_they_are_frozen() -> None:
    record = Swift(1, "x")
    for change in (lambda: setattr(record, "a", 2), lambda: delattr(record, "a")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert replace(record, a=2) == Swift(2, "x")
    assert pickle.loads(pickle.dumps(record)) == record
    built = Built(1, 0, 2, None)
    assert pickle.loads(pickle.dumps(built)) == built


def test_they_have_the_signature_of_the_dataclass() -> None:
    assert str(inspect.signature(Swift)) == str(inspect.signature(Plain))
    assert Swift.__init__.__qualname__ == "Swift.__init__"
    for wrong in ((1,), (1, "x", 2.0, (), 5)):
        with pytest.raises(TypeError, match="__init__"):
            Swift(*wrong)  # type: ignore[arg-type]


def test_what_asks_for_more_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Counted:
        seen: list[int] = field(default_factory=list)

    @dataclass(frozen=True, slots=True)
    class Named:
        name: str = field(kw_only=True)

    @dataclass(frozen=True, slots=True)
    class Derived:
        name: str = field(init=False)

    @dataclass(frozen=True, slots=True)
    class Checked:
        name: str

        def __post_init__(self) -> None:
            """There is something to check."""

    @dataclass(frozen=True)
    class Open:
        name: str

    for record in (Counted, Named, Derived, Checked, Open):
        with pytest.raises(TypeError, match="only slots that are given"):
            fast_dataclass(record)
    with pytest.raises(TypeError, match="dataclass"):
        fast_dataclass(int)
