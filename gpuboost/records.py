"""Records: those of which every round makes a dozen, with a quick ``__init__``, and those of what policies declare."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

C = TypeVar("C")


def swift(record: type[C]) -> type[C]:
    """The same class, a dataclass that is frozen and has slots, with another ``__init__`` of the same signature.

    A frozen dataclass looks each of its fields up by name as it sets it, through ``object.__setattr__``, since its own
    is there to refuse. This one calls the slots' setters, which are found once. As dataclasses do, it writes a function
    down and has Python read it.

    Raises:
        TypeError: if there are fields or a ``__post_init__`` that ask for more than to be set.
    """
    names: dict[str, Any] = {}
    given, body = [], []
    for one in fields(record):  # type: ignore[arg-type]  # whether it is a dataclass is found out here
        plain = one.init and not one.kw_only and one.default_factory is MISSING
        if not plain or hasattr(record, "__post_init__") or one.name not in record.__dict__:
            raise TypeError(f"{record.__name__}.{one.name}: only slots that are given, or have a default, can be set.")
        names[f"set_{one.name}"] = record.__dict__[one.name].__set__
        names[f"default_{one.name}"] = one.default
        given.append(one.name if one.default is MISSING else f"{one.name}=default_{one.name}")
        body.append(f"    set_{one.name}(self, {one.name})")
    exec("\n".join([f"def __init__(self, {', '.join(given)}):", *body]), names)
    made, before = names["__init__"], vars(record)["__init__"]
    made.__qualname__, made.__module__ = before.__qualname__, before.__module__
    made.__annotations__ = before.__annotations__
    record.__init__ = made  # type: ignore[method-assign]  # that is what it is for
    return record


def declared(traits: type[C], policy: object) -> C:
    """The traits that a policy declares: its attributes of these names, and the defaults of those that it lacks.

    traits: a dataclass with a default for every field.
    """
    return traits(**{one.name: getattr(policy, one.name, one.default) for one in fields(traits)})  # type: ignore[arg-type]
