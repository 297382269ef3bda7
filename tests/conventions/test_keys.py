"""Names of random streams."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuboost
from gpuboost.keys import Key, Stream

steps = st.lists(st.one_of(st.integers(0, 2**31 - 1), st.text(max_size=8)), max_size=4)


def walk(key: Key, path: list[int | str]) -> Key:
    for step in path:
        key = key / step
    return key


@given(st.integers(-(2**70), 2**70), steps)
def test_words_are_four_numbers_of_32_bits(seed: int, path: list[int | str]) -> None:
    words = walk(Key.root(seed), path).words
    assert len(words) == 4
    assert all(isinstance(word, int) and 0 <= word < 2**32 for word in words)


@given(st.integers(0, 2**64 - 1))
def test_a_seed_keeps_its_64_bits(seed: int) -> None:
    low, high, iteration, stream = Key.root(seed).words
    assert (low + (high << 32), iteration, stream) == (seed, 0, 0)
    assert Key.root(seed + 2**64) == Key.root(seed)
    assert Key.root(seed - 2**64) == Key.root(seed)


def test_the_first_number_is_the_iteration_and_names_are_the_stream() -> None:
    key = Key.root(7) / "rows" / 12
    assert key.words == (7, 0, 12, (Key.root(7) / "rows").stream)
    again = key / 3
    assert again.iteration == 12
    assert again.stream != key.stream


def test_every_step_of_a_path_makes_another_stream() -> None:
    root = Key.root(1)
    paths: list[list[int | str]] = [[], ["rows"], ["trees"], ["rows", 0, "a"], ["rows", 0, "b"], ["a", "rows", 0]]
    paths += [["rows", i] for i in range(1, 50)] + [["rows", 0, "a", i] for i in range(50)] + [["ab"], ["a", "b"]]
    keys = [walk(root, path).words for path in paths]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint64])
def test_numbers_of_numpy_are_numbers(kind: type) -> None:
    assert Key.root(kind(5)) == Key.root(5)
    assert Key.root(1) / "rows" / kind(12) / kind(3) == Key.root(1) / "rows" / 12 / 3
    assert all(type(word) is int for word in (Key.root(kind(5)) / kind(1)).words)


def test_equal_paths_are_equal_keys_and_dividing_leaves_the_key_as_it_was() -> None:
    root = Key.root(3)
    assert root / "rows" / 4 == root / "rows" / 4
    assert hash(root / "rows") == hash(root / "rows")
    assert root == Key.root(3)
    with pytest.raises(AttributeError):
        root.seed = 4


def test_a_stream_without_a_number_is_that_of_number_zero() -> None:
    root = Key.root(9)
    assert (root / "cuts").words == (root / "cuts" / 0).words


def test_names_do_not_collide_among_a_thousand() -> None:
    streams = sorted((Key.root(0) / f"feature {i}").stream for i in range(1000))
    assert all(a < b for a, b in pairwise(streams))


STREAMS = {
    "cuts": 2084905450,
    "permutations": 3315200925,
    "rows": 2927387765,
    "learners": 3838923315,
    "random strength": 3279454917,
    "structure noise": 1890657886,
    "leaf noise": 1808553744,
    "score noise": 3295073983,
    "random structure": 202545744,
    "base learner": 2838895681,
    "node": 562591889,
    "sets": 813356293,
    "fails": 2509434953,
    "how far it came": 2651909791,
    "network there": 729685173,
    "network back": 2378066803,
    "build": 1018827654,
    "server": 1328996958,
    "usual": 1700309923,
    "straggles": 421504107,
    "level": 468725070,
    "extra trees": 4005864212,
    "sketch": 2507454859,
}


def test_names_of_streams_keep_their_values() -> None:
    """Models are made of them: another value is another model for the same seed."""
    assert {name.value: (Key.root(0) / name).stream for name in Stream} == STREAMS


@pytest.mark.parametrize("name", Stream)
def test_a_name_is_its_text(name: Stream) -> None:
    assert Key.root(3) / name / 5 == Key.root(3) / str(name.value) / 5
    assert Key.root(3) / 5 / name == Key.root(3) / 5 / str(name.value)


def test_no_stream_is_named_by_a_literal() -> None:
    package = Path(gpuboost.__file__).parent
    texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    divisions = [
        (path.relative_to(package), node.lineno)
        for path, text in texts.items()
        if "gpuboost.keys" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        if isinstance(node.right, ast.JoinedStr) or isinstance(getattr(node.right, "value", None), str)
    ]
    assert divisions == []
