"""Wrong arguments of every public function: each is refused by an error that names it, before any work starts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from support.hostile.campaign import Tally, described, is_refusal, many, outcome
from support.hostile.parameters import Call, calls

import gpuboost as gb


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    """Files go to a folder of the test, pictures to memory."""
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("agg")
    with warnings.catch_warnings(action="ignore"):
        yield
    pyplot.close("all")


def shown(value: object) -> str:
    return f"{type(value).__name__} {str(value)[:60]!r}"


def _try(call: Call, argument: str, value: Any, tally: Tally, *, must_refuse: bool) -> None:
    tally.add("wrong arguments" if must_refuse else "odd arguments")
    error = outcome(lambda: call.call(**{**call.valid, argument: value}))
    pyplot.close("all")
    case = f"{call.name}({argument}={shown(value)})"
    if error is None:
        tally.add("accepted")
        if must_refuse:
            tally.fault(case, "accepted")
    elif not is_refusal(error, *call.names_of(argument)):
        tally.fault(case, described(error))


def _sample(pairs: list[tuple[Call, str, Any]], number: int, seed: int) -> list[tuple[Call, str, Any]]:
    chosen = np.random.default_rng(seed).permutation(len(pairs))[:number]
    return [pairs[i] for i in chosen]


def test_wrong_arguments_are_refused(tally: Tally) -> None:
    _wrong(tally, 250)


@pytest.mark.thorough
def test_all_wrong_arguments_are_refused(tally: Tally) -> None:
    _wrong(tally, many(10_000))


def _wrong(tally: Tally, number: int) -> None:
    pairs = [(call, argument, value) for call in calls() for argument, value in call.wrong()]
    for call, argument, value in _sample(pairs, number, 1):
        _try(call, argument, value, tally, must_refuse=True)
    tally.check()


def test_odd_arguments_are_accepted_or_refused(tally: Tally) -> None:
    _odd(tally, 250)


@pytest.mark.thorough
def test_many_odd_arguments_are_accepted_or_refused(tally: Tally) -> None:
    _odd(tally, many(6_000))


def _odd(tally: Tally, number: int) -> None:
    pairs = [(call, argument, value) for call in calls() for argument, value in call.odd()]
    for call, argument, value in _sample(pairs, number, 2):
        _try(call, argument, value, tally, must_refuse=False)
    tally.check()


def _is_complete(call: Call) -> bool:
    """True if the table has every argument that the function needs; a file to read, for one, it does not."""
    try:
        inspect.signature(call.call).bind(**call.valid)
    except TypeError:
        return False
    return True


def test_every_valid_call_works(tally: Tally) -> None:
    for call in filter(_is_complete, calls()):
        error = outcome(lambda call=call: call.call(**call.valid))
        tally.add("calls")
        if error is not None:
            tally.fault(call.name, described(error))
    assert tally.counts["calls"] > 150
    tally.check()


def test_a_fit_that_is_refused_leaves_the_estimator_as_it_was() -> None:
    x, y = np.arange(20.0)[:, None], np.arange(20.0)
    model = gb.GradientBoostingRegressor(n_estimators=3).fit(x, y)
    before = model.predict(x)
    for wrong in ((x, np.full(20, np.nan)), (np.full((20, 1), np.inf), y), (x[:3], y)):
        with pytest.raises(ValueError, match=r"X|y"):
            model.fit(*wrong)
        assert np.array_equal(model.predict(x), before)
