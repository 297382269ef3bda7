"""Fits that share the processors: the models are those of fits alone, and an error or an interrupt ends them all."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.errors import RecipeError
from gpuboost.model_selection import in_threads, lock_step, side_by_side
from gpuboost.model_selection.in_threads import fit_in_threads
from gpuboost.training.placement.at_once import Share

Data = tuple[np.ndarray, np.ndarray]


class Fits:
    """The threads and shares of the fits of a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads, self.shares = list[bool](), list[int]()

        def fit(share: Share, *given: Any, **named: Any) -> Any:
            self.threads.append(threading.current_thread() is not threading.main_thread())
            self.shares.append(share.n_jobs)
            return in_threads.fit_with(share, *given, **named)

        monkeypatch.setattr(lock_step, "fit_with", fit)
        monkeypatch.setattr(side_by_side, "fit_with", fit)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Fits:
    return Fits(monkeypatch)


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(
        **{"n_estimators": 33, "max_depth": 3, "random_state": 0, "device": "cpu"} | params
    )


def file_of(model: Any, path: Path) -> bytes:
    model.save_model(path)
    return path.read_bytes()


def test_folds_are_the_models_of_one_thread(
    regression_data: Data, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fits: Fits
) -> None:
    monkeypatch.setattr(in_threads, "LEAST_CELLS", 0)
    for early in (None, 4):
        alone = gb.cv(regressor(n_jobs=1), *regression_data, folds=4, early_stopping_rounds=early)
        assert not any(fits.threads)
        fits.threads.clear(), fits.shares.clear()
        found = gb.cv(regressor(n_jobs=6), *regression_data, folds=4, early_stopping_rounds=early)
        assert all(fits.threads)
        assert set(fits.shares) == {1}  # 6 threads, 4 fits
        fits.threads.clear(), fits.shares.clear()
        np.testing.assert_array_equal(found.predictions, alone.predictions)
        assert found.mean == alone.mean
        for one, other in zip(found.models, alone.models, strict=True):
            assert file_of(one, tmp_path / "a.json") == file_of(other, tmp_path / "b.json")
            assert (one.n_jobs, one.callbacks) == (6, ())


def test_chains_are_those_of_one_thread(
    regression_data: Data, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fits: Fits
) -> None:
    monkeypatch.setattr(in_threads, "LEAST_CELLS", 0)
    every = [
        gb.chains(regressor(n_jobs=n, n_estimators=5, langevin=gb.Langevin()), *regression_data, n_chains=3).models
        for n in (1, 3)
    ]
    assert fits.threads == [False] * 3 + [True] * 3
    for one, other in zip(*every, strict=True):
        assert file_of(one, tmp_path / "a.json") == file_of(other, tmp_path / "b.json")


@pytest.mark.parametrize(
    ("params", "after_the_first"),
    [
        ({}, True),  # its rounds are repeated by a kernel
        ({"sampling": gb.MVS(0.5), "learners": 0.5}, True),
        ({"random_strength": 1.0}, True),
        ({"n_estimators": 20}, False),  # too few to be repeated
        ({"callbacks": [print]}, False),
        ({"verbose": 1}, False),
    ],
)
def test_small_fits_take_turns_unless_a_kernel_repeats_their_rounds(
    params: dict[str, Any], after_the_first: bool, regression_data: Data, fits: Fits
) -> None:
    gb.cv(regressor(n_jobs=2, **params), *regression_data, folds=4)
    assert fits.threads == [False, *[after_the_first] * 3]


def test_large_fits_take_turns(regression_data: Data, monkeypatch: pytest.MonkeyPatch, fits: Fits) -> None:
    monkeypatch.setattr(in_threads, "MOST_ROWS", 299)
    gb.cv(regressor(n_jobs=2), *regression_data, folds=3)
    assert (fits.threads, fits.shares) == ([False] * 3, [2] * 3)


@pytest.mark.parametrize("error", [RecipeError("bad"), KeyboardInterrupt()])
def test_an_error_stops_the_others(error: BaseException, regression_data: Data) -> None:
    """Long before their last round."""
    others: list[Any] = []
    running = threading.Event()

    def long(share: Share) -> Any:
        def fit(model: Any) -> Any:
            running.set()
            others.append(model.fit(*regression_data))
            return others[-1]

        return in_threads.fit_with(share, regressor(n_estimators=200_000), fit)

    def bad(share: Share) -> Any:
        running.wait(60)
        raise error

    with pytest.raises(type(error)):
        fit_in_threads([long, bad], [regressor(n_jobs=2)], 200_000, 300, in_threads.LEAST_CELLS)
    assert len(others) == 1
    assert 0 < others[0].n_iter_ < 200_000


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, which workers of pytest-xdist ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_stops_them_all(regression_data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """The main thread waits for the folds, and hears it; none of them goes on."""
    monkeypatch.setattr(in_threads, "LEAST_CELLS", 0)
    main = threading.main_thread()
    assert main.ident is not None
    threading.Timer(0.3, signal.pthread_kill, (main.ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        gb.cv(regressor(n_jobs=2, n_estimators=50_000), *regression_data, folds=3)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gpuboost-fit")]
