"""Records: frozen dataclasses that are made quickly, as classes and as objects, and those of what policies declare."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields, is_dataclass
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

C = TypeVar("C")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  # so it is exported, for mypy
else:

    def dataclass(record=None, /, **options):
        """``dataclasses.dataclass``, in less than half the time for frozen records with slots.

        ``dataclasses`` writes, compiles and runs the text of six functions for each such class: 0.13 s of the import
        of an estimator, which makes 231 of them. Here only ``__init__`` is text; the others are functions that all
        records share, or closures over the names of fields. What they do, and what is pickled, stays the same.

        Classes that derive from records, and those with fields that are not given by position, are left to
        ``dataclasses``. ``InitVar`` and ``KW_ONLY`` are not supported.
        """

        def made(record):
            quick = options.get("frozen") and options.get("slots") and options.keys() <= _OPTIONS and _is_plain(record)
            return _quickly_made(record, **options) if quick else dataclasses.dataclass(**options)(record)

        return made if record is None else made(record)


_OPTIONS = {"frozen", "slots", "eq", "repr", "weakref_slot"}


def _is_plain(record: type[Any]) -> bool:
    """True for a class with a docstring that derives from no record, and whose fields are all given by position."""
    attributes = vars(record)
    return not (
        attributes.get("__doc__") is None  # then dataclasses writes one, from the signature of its own ``__init__``
        or "__init__" in attributes
        or any(map(is_dataclass, record.__bases__))
        or any(
            isinstance(attribute, Field) and (not attribute.init or attribute.kw_only is True)
            for attribute in attributes.values()
        )
    )


def _quickly_made(record: type[Any], *, eq: bool = True, repr: bool = True, **options: Any) -> Any:
    made = dataclasses.dataclass(init=False, repr=False, eq=False, **options | {"frozen": False})(record)
    facts: Any = made.__dataclass_params__
    facts.init, facts.repr, facts.eq, facts.frozen = True, repr, eq, True
    functions: dict[str, Any] = {
        "__setattr__": _refuse_to_assign,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _state,
        "__setstate__": _set_state,
    }
    if repr:
        functions["__repr__"] = _repr
    if eq:
        functions["__eq__"], functions["__hash__"] = _comparison(made)
    for name, function in functions.items():
        if vars(record).get(name) is None:  # Python gives a class with __eq__ the __hash__ None
            setattr(made, name, function)
    made.__init__ = _init(made)
    return made


def _init(record: type[Any]) -> Callable[..., None]:
    """An ``__init__`` of the signature of ``dataclasses``' own, in half the time.

    Theirs sets each field by name through ``object.__setattr__``, as a frozen record's own refuses. This one calls the
    setters of the slots, which are looked up once: a record of six fields takes 2.0 us, theirs 3.9, one of attrs 2.8,
    and a tree on 1,000 rows is 2 to 6 % faster for it.
    """
    names: dict[str, Any] = {"__factory__": _FACTORY}
    parameters, body, kinds = ["self"], [], {}
    for place, field in enumerate(fields(record)):
        name, value, default = field.name, field.name, field.default
        kinds[name] = field.type
        names[f"__set_{place}__"] = vars(record)[name].__set__
        if field.default_factory is not MISSING:
            names[f"__make_{place}__"], default = field.default_factory, _FACTORY
            value = f"__make_{place}__() if {name} is __factory__ else {name}"
        if default is not MISSING:
            names[f"__default_{place}__"] = default
            parameters.append(f"{name}=__default_{place}__")
        else:
            parameters.append(name)
        body.append(f"  __set_{place}__(self, {value})")
    if hasattr(record, "__post_init__"):
        body.append("  self.__post_init__()")
    text = [f"def make({', '.join(names)}):", f" def __init__({', '.join(parameters)}):", *(body or ["  pass"])]
    local: dict[str, Any] = {}
    exec("\n".join([*text, " return __init__"]), vars(sys.modules[record.__module__]), local)
    init: Callable[..., None] = local["make"](**names)
    init.__qualname__ = f"{record.__qualname__}.__init__"
    init.__annotations__ = kinds | {"return": None}
    return init


class _Factory:
    """The default, in a signature, of a field whose default is made anew for each record."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _comparison(record: type[Any]) -> tuple[Callable[[Any, object], bool], Callable[[Any], int]]:
    """``__eq__`` and ``__hash__`` by the fields."""
    values = _values([field.name for field in fields(record) if field.compare])
    hashed = _values([field.name for field in fields(record) if (field.compare if field.hash is None else field.hash)])

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_value(self: Any) -> int:
        return hash(hashed(self))

    for function, name in (equal, "__eq__"), (hash_value, "__hash__"):
        function.__name__, function.__qualname__ = name, f"{record.__qualname__}.{name}"
    return equal, hash_value


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function of a record: the values of these fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_assign(self: Any, name: str, value: object) -> None:
    if _is_frozen(type(self), name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _is_frozen(type(self), name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(record: type[Any], name: str) -> bool:
    """True for fields; for other attributes except those of a plain class that derives from a record."""
    return "__dataclass_params__" in vars(record) or name in record.__dataclass_fields__


def _state(self: Any) -> list[Any]:
    """The values of the fields, as ``dataclasses`` pickles them."""
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for field, value in zip(fields(self), state, strict=False):
        object.__setattr__(self, field.name, value)


def restored(record: Any, state: Sequence[Any]) -> None:
    """``__setstate__`` of a frozen dataclass with slots; fields that the pickle's version did not have get defaults."""
    for place, field in enumerate(fields(record)):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        object.__setattr__(record, field.name, state[place] if place < len(state) else default)


def declared(traits: type[C], policy: object) -> C:
    """The traits that a policy declares: its attributes of these names, and the defaults of those that it lacks.

    traits: a dataclass with a default for every field.
    """
    return traits(*[getattr(policy, name, default) for name, default in _defaults(traits)])  # type: ignore[arg-type]


@cache  # called in every round
def _defaults(traits: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.default) for field in fields(traits))
