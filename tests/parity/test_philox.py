"""Random numbers: Random123's known answers, the definition and the kernel, and draws that are what they claim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.builders import TEAMS
from support.examples import examples

from gpuboost.backends.numerics.random_numbers import uniform_bits
from gpuboost.backends.reference.backend import Reference
from gpuboost.kernels.common import philox as kernels
from gpuboost.keys import Key

LOW = 0xFFFF_FFFF
words = st.integers(0, LOW)

# kat_vectors of Random123 (Salmon, Moraes, Dror, Shaw, SC 2011), philox4x32 of 10 rounds: counter, key, answer.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def as_words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 in Python's integers, from the paper."""
    (a, b, c, d), (k0, k1) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k0, q & LOW, (p >> 32) ^ d ^ k1, p & LOW
        k0, k1 = (k0 + 0x9E3779B9) & LOW, (k1 + 0xBB67AE85) & LOW
    return [a, b, c, d]


def kernel(counter: list[int], key: list[int]) -> list[int]:
    return [int(word) for word in kernels.philox(*(np.uint64(word) for word in counter + key))]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter: str, key: str, answer: str) -> None:
    assert philox(as_words(counter), as_words(key)) == as_words(answer)
    assert kernel(as_words(counter), as_words(key)) == as_words(answer)


def test_the_first_known_answer_is_the_stream_of_the_empty_key() -> None:
    assert uniform_bits(4, Key.root(0)).tolist() == as_words(KNOWN[0][2])


@settings(max_examples=examples(200))
@given(st.lists(words, min_size=4, max_size=4), st.lists(words, min_size=2, max_size=2))
def test_the_kernel_is_philox(counter: list[int], key: list[int]) -> None:
    assert kernel(counter, key) == philox(counter, key)


@settings(max_examples=examples(50))
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**31 - 1), st.text(max_size=5), st.integers(0, 40))
def test_number_i_of_a_stream_is_word_i_mod_4_of_block_i_div_4(seed: int, step: int, name: str, n: int) -> None:
    key = Key.root(seed) / name / step
    drawn = uniform_bits(n, key).tolist()
    assert drawn == [philox([i // 4, 0, step, key.stream], [seed & LOW, seed >> 32])[i % 4] for i in range(n)]


@pytest.mark.parametrize("first", [0, 64, 2**32 - 64, 2**32 - 32, 2**33 + 5])
def test_many_numbers_at_once_are_those_one_by_one(first: int) -> None:
    out, (low, high, step, stream) = np.empty(kernels.NUMBERS, np.uint32), (3, LOW, 7, LOW - 1)
    kernels.numbers(first, low, high, step, stream, out)
    counters = ([at & LOW, at >> 32, step, stream] for at in range(first, first + kernels.NUMBERS // 4))
    assert out.tolist() == [word for counter in counters for word in philox(counter, [low, high])]


@settings(max_examples=examples(60))
@given(st.integers(0, 2**64 - 1), st.integers(0, 3000), st.sampled_from([1e-9, 0.01, 0.3, 0.999, 1.0 - 2.0**-33]))
def test_backends_draw_the_same_rows(seed: int, n: int, rate: float) -> None:
    key = Key.root(seed) / "rows" / 3
    one, other = Reference().sample(rate, n, key), TEAMS[2].sample(rate, n, key)
    for a, b in ((one.rows, other.rows), (one.inverse_probability, other.inverse_probability)):
        assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())
    assert one.rows.dtype == np.int32
    assert np.array_equal(one.rows, np.unique(one.rows))


def test_a_row_is_drawn_iff_its_number_is_below_the_probability() -> None:
    key, n = Key.root(11) / "rows" / 0, 4000
    numbers = uniform_bits(n, key) / 2.0**32
    for rate in (0.1, 0.5, float(numbers[77])):  # the last one: strictly below
        for backend in (Reference(), TEAMS[1]):
            assert backend.sample(rate, n, key).rows.tolist() == np.flatnonzero(numbers < rate).tolist()


# Frequencies, of fixed seeds: each statistic may fail for one seed in 10,000, and is known not to for these.


def test_words_are_uniform_and_independent_of_their_neighbours() -> None:
    n = 1 << 18
    numbers = uniform_bits(n, Key.root(1) / "rows" / 0)
    for shift in (28, 14, 0):
        counts = np.bincount((numbers >> np.uint64(shift)).astype(np.int64) & 15, minlength=16)
        assert stats.chisquare(counts).pvalue > 1e-4
    high = (numbers >> np.uint64(28)).astype(np.int64)
    for lag in (1, 2, 3, 4):
        pairs = np.bincount(16 * high[:-lag:8] + high[lag::8][: len(high[:-lag:8])], minlength=256)
        assert stats.chisquare(pairs).pvalue > 1e-4


@pytest.mark.parametrize("other", [Key.root(2) / "rows" / 0, Key.root(1) / "rows" / 1, Key.root(1) / "trees" / 0])
def test_streams_of_other_seeds_rounds_and_names_are_independent(other: Key) -> None:
    n = 1 << 16
    both = [(uniform_bits(n, key) >> np.uint64(30)).astype(np.int64) for key in (Key.root(1) / "rows" / 0, other)]
    assert stats.chisquare(np.bincount(4 * both[0] + both[1], minlength=16)).pvalue > 1e-4


@pytest.mark.parametrize("rate", [0.01, 0.2, 0.5, 0.9])
def test_as_many_rows_are_drawn_as_the_rate_says(rate: float) -> None:
    """Within four standard deviations, per round and over all rounds."""
    n, rounds = 20_000, 50
    counts = [len(TEAMS[1].sample(rate, n, Key.root(5) / "rows" / step).rows) for step in range(rounds)]
    deviation = np.sqrt(n * rate * (1.0 - rate))
    assert np.abs(np.array(counts) - n * rate).max() < 4.0 * deviation
    assert abs(np.mean(counts) - n * rate) < 4.0 * deviation / np.sqrt(rounds)
    assert len(set(counts)) > rounds // 2
