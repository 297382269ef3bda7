"""Changes to a JSON text: of its bytes, as a broken disk makes them, and of its values, as an enemy makes them."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuboost.storage import UNSEALED, sealed
from gpuboost.training import files

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    7,
    255,
    256,
    2**31,
    -(2**31),
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    10**400,
    0.5,
    -0.0,
    1e-320,
    1e17,
    1e308,
    -1e308,
    "",
    "x",
    "a\u0000",
    "nan",
    "\ud800",
    "ü" * 50,
    [],
    [0],
    [[]],
    {},
    {"a": 1},
    [1e308] * 3,
    {"policy": "Langevin"},
    {"loss": {"name": "quantile", "alpha": 2}},
    {"pairs": [[0, 1]]},
    {"policy": []},
)
"""Values to put in the place of others."""

RAW = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"1" * 5000,
    b"[" * 2000 + b"]" * 2000,
    b'{"a":' * 500,
    b"01",
    b"'a'",
)
"""Text that is no JSON, or JSON that few expect."""


def mutants(text: str, number: int, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """``number`` changed texts, with the seed's description of each."""
    for i in range(number):
        kind = _BYTES[i % len(_BYTES)] if rng.random() < 0.35 else None
        yield (kind.__name__, kind(text.encode(), rng)) if kind else change_value(json.loads(text), rng)


def change_bytes(content: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """One change of the bytes, with its description."""
    kind = _BYTES[rng.integers(len(_BYTES))]
    return kind.__name__, kind(content, rng)


def resealed(content: bytes) -> bytes:
    """The same with the right checksum, if it is a checkpoint: what is behind the checksum is looked at too."""
    pattern = re.escape(files.CHECKSUM) + "[0-9a-f]{8}"
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError:
        return content
    unsealed = re.sub(
        pattern, files.CHECKSUM + UNSEALED, text.replace('"run": {"checksum": "', files.CHECKSUM), count=1
    )
    return sealed(unsealed, files.CHECKSUM).encode() if files.CHECKSUM + UNSEALED in unsealed else content


def change_value(document: Any, rng: np.random.Generator) -> tuple[str, bytes]:
    """One or two changes of the values of a JSON document, which is written to, with their description."""
    names = []
    for _ in range(1 + int(rng.random() < 0.2)):
        change = _VALUES[rng.integers(len(_VALUES))]
        holder, key = _place(document, rng)
        change(holder, key, rng)
        names.append(f"{change.__name__} at {key!r}")
    return ", ".join(names), json.dumps(document).encode("utf-8", "surrogatepass")


def _place(document: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """A random entry: deeper ones less often than their number asks for, so that every kind of place is met."""
    holder: Any = document
    key: Any = list(document)[rng.integers(len(document))]
    while isinstance(holder[key], (dict, list)) and len(holder[key]) and rng.random() < 0.85:
        holder = holder[key]
        key = list(holder)[rng.integers(len(holder))] if isinstance(holder, dict) else int(rng.integers(len(holder)))
    return holder, key


def replace_value(holder: Any, key: Any, rng: np.random.Generator) -> None:
    holder[key] = copy.deepcopy(ODD[rng.integers(len(ODD))])


def move_number(holder: Any, key: Any, rng: np.random.Generator) -> None:
    value = holder[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return replace_value(holder, key, rng)
    steps = (value + 1, value - 1, -value, value * 2, value * 1e10, float(value) + 0.5, str(value), [value])
    holder[key] = steps[rng.integers(len(steps))]
    return None


def remove_entry(holder: Any, key: Any, rng: np.random.Generator) -> None:
    del holder[key]


def add_entry(holder: Any, key: Any, rng: np.random.Generator) -> None:
    if isinstance(holder, dict):
        holder[str(rng.integers(9))] = copy.deepcopy(holder[key])
    else:
        holder.insert(key, copy.deepcopy(holder[key]))


def exchange(holder: Any, key: Any, rng: np.random.Generator) -> None:
    other = list(holder)[rng.integers(len(holder))] if isinstance(holder, dict) else int(rng.integers(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]


def lengthen(holder: Any, key: Any, rng: np.random.Generator) -> None:
    if isinstance(holder[key], list):
        holder[key] = holder[key] * int(rng.integers(2, 5))
    else:
        holder[key] = [holder[key]] * 300


_VALUES = (
    replace_value,
    replace_value,
    replace_value,
    move_number,
    move_number,
    remove_entry,
    add_entry,
    exchange,
    lengthen,
)


def flip_bit(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    changed[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut_end(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(len(data))]


def remove_piece(data: bytes, rng: np.random.Generator) -> bytes:
    start = int(rng.integers(len(data)))
    return data[:start] + data[start + int(rng.integers(1, 40)) :]


def repeat_piece(data: bytes, rng: np.random.Generator) -> bytes:
    start, size = int(rng.integers(len(data))), int(rng.integers(1, 60))
    return data[: start + size] + data[start:]


def insert_text(data: bytes, rng: np.random.Generator) -> bytes:
    start = int(rng.integers(len(data)))
    return data[:start] + RAW[rng.integers(len(RAW))] + data[start:]


def replace_number(data: bytes, rng: np.random.Generator) -> bytes:
    digits = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
    start = digits[rng.integers(len(digits))]
    return data[:start] + RAW[rng.integers(len(RAW))] + data[start + 1 :]


def other_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    start = int(rng.integers(len(data)))
    return data[:start] + rng.bytes(int(rng.integers(1, 20))) + data[start + 5 :]


_BYTES = (flip_bit, cut_end, remove_piece, repeat_piece, insert_text, replace_number, other_bytes)
