"""Files of every released format: later versions read them to the same answers, and earlier ones refuse what is newer.

``tests/data/released`` has a file of each version of each format, and the answers of the gpuboost that wrote it: an
early 0.1.0 for model files of versions 1 and 2, the checkpoint and the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.data.formats import dataset_file
from gpuboost.execution import log
from gpuboost.model import file as model_file
from gpuboost.model_selection import conformal_file

FOLDER = Path(__file__).parents[1] / "data" / "released"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())
MODELS = sorted(FOLDER.glob("model-*.json"))
LOADERS: dict[str, Callable[[Any], Any]] = {
    "model": gb.load_model,
    "checkpoint": gb.load_model,
    "conformal": gb.load_conformal,
    "log": gb.Log.load,
}
FILES = sorted(path for path in FOLDER.glob("*-*.json"))


def array(rows: list[Any]) -> np.ndarray:
    return np.array(rows, dtype=float)  # None is NaN


PROBE, ROWS, TARGET = (array(EXPECTED[name]) for name in ("probe", "rows", "y"))
FEW: dict[str, Any] = {"n_estimators": 4, "max_depth": 2, "n_jobs": 1, "random_state": 0}


def loader(path: Path) -> Callable[[Any], Any]:
    return LOADERS[path.stem.partition("-")[0]]


@pytest.mark.parametrize("path", [*MODELS, FOLDER / "conformal-1.json"], ids=lambda path: path.stem)
def test_a_file_gives_the_answers_that_it_gave(path: Path, tmp_path: Path) -> None:
    expected = EXPECTED["models"][path.stem]
    model = loader(path)(path)
    assert np.array_equal(getattr(model, expected["method"])(PROBE), expected["answer"])
    again = tmp_path / "again.json"
    (model.save if path.stem.startswith("conformal") else model.save_model)(again)
    assert np.array_equal(getattr(loader(path)(again), expected["method"])(PROBE), expected["answer"])


def test_a_checkpoint_is_resumed_to_the_bytes_of_a_whole_fit() -> None:
    resumed = gb.GradientBoostingRegressor(**FEW, sampling=0.7).fit(
        ROWS, TARGET, resume_from=FOLDER / "checkpoint-1.json"
    )
    whole = gb.GradientBoostingRegressor(**FEW, sampling=0.7).fit(ROWS, TARGET)
    assert resumed.predict(ROWS).tobytes() == whole.predict(ROWS).tobytes()


def test_a_log_is_replayed() -> None:
    replay = gb.Replay(FOLDER / "log-1.json")
    model = gb.GradientBoostingRegressor(**FEW, execution=replay).fit(ROWS, TARGET)
    assert np.allclose(model.predict(PROBE), EXPECTED["models"]["log-1"]["answer"], rtol=1e-12)
    assert model.n_iter_ == 4


def test_every_version_of_every_format_has_a_file() -> None:
    newest = {"model": model_file.VERSION, "conformal": conformal_file._VERSION, "log": log.VERSION}
    newest |= {"dataset": dataset_file.VERSION}
    names = [path.name for path in [*FILES, *FOLDER.parent.glob("dataset-*.gbd")]]
    for kind, last in newest.items():
        found = {int(match[1]) for name in names if (match := re.match(rf"{kind}-(\d+)\b", name))}
        assert found == set(range(1, last + 1)), kind


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_newer_versions_and_unknown_entries_are_refused(path: Path, tmp_path: Path) -> None:
    content = json.loads(path.read_text())
    place = tmp_path / "changed.json"
    for change in ({"version": 99}, {"an entry of the future": 1}):
        place.write_text(json.dumps(content | change))
        with pytest.raises(gb.InputError, match=r"version|an entry of the future|log: a log is a record of"):
            loader(path)(place)
