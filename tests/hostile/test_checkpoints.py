"""Checkpoints on a disk that loses bits: a file is refused, or the fit goes on to the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.hostile.campaign import Tally, described, is_refusal, many, outcome
from support.hostile.corpus import FEW, rows

import gpuboost as gb
from gpuboost.storage import UNSEALED
from gpuboost.training.files import CHECKSUM

X, Y = rows()


def _model(**more: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**FEW | {"n_estimators": 6}, sampling=0.7, **more)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A checkpoint after three of six rounds."""
    place = tmp_path_factory.mktemp("checkpoints") / "run.json"

    def stop(record: Any) -> bool:
        return bool(record.round == 2)

    _model(callbacks=[gb.callbacks.Checkpoint(place, every=1), stop]).fit(X, Y)
    return place.read_bytes()


def _flips(checkpoint: bytes, number: int, tally: Tally, place: Path) -> None:
    expected = _model().fit(X, Y).predict(X)
    rng = np.random.default_rng(0)
    for bit in rng.permutation(8 * len(checkpoint))[:number].tolist():
        changed = bytearray(checkpoint)
        changed[bit // 8] ^= 1 << bit % 8
        place.write_bytes(bytes(changed))
        tally.add("flips")
        made: list[Any] = []
        error = outcome(lambda made=made: made.append(_model().fit(X, Y, resume_from=place)))
        if error is not None:
            tally.add("refused")
            if not is_refusal(error):
                tally.fault(f"bit {bit}", described(error))
        elif np.array_equal(made[0].predict(X), expected):
            tally.add("resumed right")
        else:
            tally.fault(f"bit {bit}", "resumed to another model")
    tally.check()


def test_single_bits(checkpoint: bytes, tally: Tally, tmp_path: Path) -> None:
    _flips(checkpoint, 150, tally, tmp_path / "run.json")


@pytest.mark.thorough
def test_many_single_bits(checkpoint: bytes, tally: Tally, tmp_path: Path) -> None:
    _flips(checkpoint, many(5_000), tally, tmp_path / "run.json")


def test_a_changed_leaf_value_is_refused(checkpoint: bytes, tmp_path: Path) -> None:
    place = tmp_path / "run.json"
    document = json.loads(checkpoint)
    text = checkpoint.decode().replace('"learning_rate":0.1', '"learning_rate":0.2', 1)
    assert document["extra"]["run"]["checksum"] in text
    place.write_text(text)
    for load in (gb.load_model, lambda path: _model(learning_rate=0.2).fit(X, Y, resume_from=path)):
        with pytest.raises(gb.InputError, match=r"extra\.run\.checksum: .* damaged"):
            load(place)


def test_a_checkpoint_of_0_1_0_which_has_no_checksum_is_resumed(checkpoint: bytes, tmp_path: Path) -> None:
    place = tmp_path / "run.json"
    document = json.loads(checkpoint)
    checksum = document["extra"]["run"]["checksum"]
    assert checksum != UNSEALED
    place.write_text(checkpoint.decode().replace(f'{CHECKSUM}{checksum}",', '"run":{', 1))
    assert "checksum" not in json.loads(place.read_text())["extra"]["run"]
    resumed = _model().fit(X, Y, resume_from=place)
    assert np.array_equal(resumed.predict(X), _model().fit(X, Y).predict(X))


def test_equal_fits_write_equal_checkpoints(checkpoint: bytes, tmp_path: Path) -> None:
    loaded = tmp_path / "run.json"
    loaded.write_bytes(checkpoint)
    model = gb.load_model(loaded)
    model.save_model(tmp_path / "model.json")
    assert b"checksum" not in (tmp_path / "model.json").read_bytes()
    assert np.array_equal(gb.load_model(tmp_path / "model.json").predict(X), model.predict(X))
