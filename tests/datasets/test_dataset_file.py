"""``Dataset.save`` and ``Dataset.load``: the same models from a file that is mapped into memory."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import gpuboost as gb
from gpuboost.data.formats.dataset_file import DatasetParts

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 4))
X[RNG.random(X.shape) < 0.05] = np.nan
Y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2
WORDS = RNG.choice(["low", "middle", "hößlich"], 300)
FRAME = pd.DataFrame({"a": X[:, 0], "word": pd.Categorical(WORDS), "size": RNG.choice([1.5, 2.0, 3.0], 300)})
MANY = pd.DataFrame({"a": X[:, 0], "town": pd.Categorical(RNG.integers(0, 90, 300).astype(str))})
SPARSE = sp.random(300, 30, 0.05, format="csr", random_state=0)
QUERIES = np.repeat([f"query {i}" for i in range(30)], 10)
GRADES = RNG.integers(0, 3, 300)

Make = Callable[..., Any]
REGRESSOR, CLASSIFIER, RANKER = (
    gb.GradientBoostingRegressor,
    gb.GradientBoostingClassifier,
    gb.GradientBoostingRanker,
)

CASES: dict[str, tuple[Callable[[], gb.Dataset], Make, dict[str, Any]]] = {
    "numbers": (lambda: gb.Dataset(X, Y), REGRESSOR, {}),
    "float32 by columns": (lambda: gb.Dataset(np.asfortranarray(X.astype(np.float32)), Y), REGRESSOR, {}),
    "rows of weight 0": (lambda: gb.Dataset(X, Y, weight=np.arange(300) % 3), REGRESSOR, {}),
    "weights": (lambda: gb.Dataset(X, Y, weight=np.linspace(0.1, 2.0, 300)), REGRESSOR, {}),
    "categories": (lambda: gb.Dataset(FRAME, Y, categorical_features=["word", "size"]), REGRESSOR, {}),
    "more categories than bins": (lambda: gb.Dataset(MANY, Y, max_bins=20), REGRESSOR, {"max_bins": 20}),
    "cuts": (lambda: gb.Dataset(X, Y, cuts={0: [-1.0, 0.0], 2: []}), REGRESSOR, {}),
    "sparse": (lambda: gb.Dataset(SPARSE, Y), REGRESSOR, {}),
    "text labels": (lambda: gb.Dataset(X, WORDS), CLASSIFIER, {}),
    "labels as objects": (lambda: gb.Dataset(X, WORDS.astype(object)), CLASSIFIER, {}),
    "labels of truth": (lambda: gb.Dataset(X, Y > 0), CLASSIFIER, {}),
    "queries": (lambda: gb.Dataset(X, GRADES, group=QUERIES), RANKER, {}),
    "unbinned features": (lambda: gb.Dataset(X, Y), REGRESSOR, {"base_learner": gb.learners.Spline()}),
    "shards": (lambda: gb.Dataset(X, Y), REGRESSOR, {"execution": gb.DataParallel(2)}),
}


def _model(make: Make, params: dict[str, Any]) -> Any:
    return make(n_estimators=3, n_jobs=1, random_state=0, **params)


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_dataset_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    dataset, make, params = CASES[name]
    place, data = tmp_path / "data.gbd", dataset()
    data.save(place, n_jobs=1)
    written = place.read_bytes()
    loaded = gb.Dataset.load(place)
    assert repr(loaded) == repr(data)
    assert (len(loaded), loaded.n_values) == (300, data.n_values)
    model, again = _model(make, params).fit(data), _model(make, params).fit(loaded)
    assert gb.dumps(again) == gb.dumps(model)
    assert np.array_equal(model.predict(loaded), model.predict(data))
    assert gb.dumps(_model(make, params).fit(pickle.loads(pickle.dumps(loaded)))) == gb.dumps(model)
    loaded.save(place, n_jobs=1)
    assert place.read_bytes() == written


def test_rows_in_parquet_files_stay_there(tmp_path: Path) -> None:
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(t=Y)
    frame.to_parquet(tmp_path / "rows.parquet")
    data = gb.Dataset.from_parquet(tmp_path / "rows.parquet", "t")
    data.save(tmp_path / "data.gbd")
    loaded = gb.Dataset.load(tmp_path / "data.gbd")
    assert loaded.in_files
    assert gb.dumps(_model(REGRESSOR, {}).fit(loaded)) == gb.dumps(_model(REGRESSOR, {}).fit(data))
    frame[:200].to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(gb.InputError, match=r"data\.gbd.*rows\.parquet.*other rows now"):
        gb.Dataset.load(tmp_path / "data.gbd")
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises(gb.InputError, match=r"data\.gbd.*rows\.parquet"):
        gb.Dataset.load(tmp_path / "data.gbd")


def test_a_loaded_dataset_is_an_eval_set_and_is_cut_into_folds(tmp_path: Path) -> None:
    data = gb.Dataset(X, Y)
    data.save(tmp_path / "data.gbd")
    loaded = gb.Dataset.load(tmp_path / "data.gbd")
    watched = [_model(REGRESSOR, {}).fit(X, Y, eval_set=eval_set).evals_result_ for eval_set in (data, loaded)]
    assert watched[0] == watched[1]
    curves = [
        gb.cv(_model(REGRESSOR, {}), some, folds=2).mean for some in (data, gb.Dataset.load(tmp_path / "data.gbd"))
    ]
    assert np.array_equal(*curves)


def test_nothing_is_read_before_it_is_used(tmp_path: Path) -> None:
    """Damage of the features is no matter to a fit that reads their bins only, and is seen by one that reads them."""
    place = tmp_path / "data.gbd"
    data = gb.Dataset(X, Y)
    data.save(place)
    content = bytearray(place.read_bytes())
    first = np.float64(X[~np.isnan(X[:, 0])][0, 0]).tobytes()
    content[content.index(first)] ^= 1
    place.write_bytes(content)
    loaded = gb.Dataset.load(place)
    assert gb.dumps(_model(REGRESSOR, {}).fit(loaded)) == gb.dumps(_model(REGRESSOR, {}).fit(data))
    for use in (
        lambda: _model(REGRESSOR, {"base_learner": gb.learners.Linear()}).fit(loaded),
        lambda: _model(REGRESSOR, {}).fit(data).predict(loaded),
        lambda: loaded.take(np.arange(3)),
        lambda: loaded.save(tmp_path / "other.gbd"),
    ):
        with pytest.raises(gb.InputError, match=r"dataset file '.*data\.gbd': the bytes of 'x' .* damaged"):
            use()
    assert not (tmp_path / "other.gbd").exists()


def test_damaged_bins_are_refused_by_the_fit(tmp_path: Path) -> None:
    place = tmp_path / "data.gbd"
    data = gb.Dataset(X, Y)
    data.save(place)
    bins = data._bins["host"].columns.tobytes()  # type: ignore[union-attr]
    content = bytearray(place.read_bytes())
    content[content.index(bins) + 7] ^= 128
    place.write_bytes(content)
    with pytest.raises(gb.InputError, match=r"data\.gbd': the bytes of 'bins.columns' .* damaged"):
        _model(REGRESSOR, {}).fit(gb.Dataset.load(place))


def test_other_files_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "data.gbd"
    gb.Dataset(X, Y).save(place)
    whole = place.read_bytes()
    for content in (
        b"",
        b"a,b\n1,2\n",
        whole[:30],
        whole[:-1],
        whole + b"\0",
        whole.replace(b'"max_bins":255', b'"max_bins":254'),
    ):
        place.write_bytes(content)
        with pytest.raises(gb.InputError, match=r"dataset file '.*data\.gbd': "):
            gb.Dataset.load(place)
    with pytest.raises(FileNotFoundError):
        gb.Dataset.load(tmp_path / "nothing.gbd")
    with pytest.raises(IsADirectoryError):
        gb.Dataset.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    opened = os.open(tmp_path / "pipe", os.O_RDWR)
    with pytest.raises(gb.InputError, match="no regular file"):
        gb.Dataset.load(tmp_path / "pipe")
    os.close(opened)


def test_a_newer_file_is_refused_as_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.data.formats.dataset_file.VERSION", 2)
    gb.Dataset(X, Y).save(tmp_path / "data.gbd")
    monkeypatch.undo()
    with pytest.raises(gb.InputError, match="version 2 was made by a newer gpuboost; this one reads up to 1"):
        gb.Dataset.load(tmp_path / "data.gbd")


def test_a_model_file_is_not_a_dataset_file_and_the_reverse(tmp_path: Path) -> None:
    place = tmp_path / "file"
    gb.Dataset(X, Y).save(place)
    with pytest.raises(gb.InputError, match="model file"):
        gb.load_model(place)
    _model(REGRESSOR, {}).fit(X, Y).save_model(place)
    with pytest.raises(gb.InputError, match="dataset file"):
        gb.Dataset.load(place)


def test_targets_that_no_file_can_hold(tmp_path: Path) -> None:
    data = gb.Dataset(X, np.array([(1, 2)] * 300 + [None], dtype=object)[:-1])
    with pytest.raises(gb.InputError, match="y: a file holds text and numbers; row 0 holds a tuple"):
        data.save(tmp_path / "data.gbd")
    assert not list(tmp_path.iterdir())


def test_a_file_of_an_earlier_day_has_the_same_bytes(tmp_path: Path) -> None:
    """The format: magic, header with its checksum, and arrays at multiples of 64 bytes."""
    gb.Dataset(np.arange(6.0)[:, None], np.arange(6.0)).save(tmp_path / "data.gbd", n_jobs=1)
    written = (tmp_path / "data.gbd").read_bytes()
    assert written == (Path(__file__).parents[1] / "data" / "dataset-1.gbd").read_bytes()


def test_a_second_process_maps_the_file(tmp_path: Path) -> None:
    """No copy of the rows is made: the arrays lie in the mapped file."""
    gb.Dataset(X, Y).save(tmp_path / "data.gbd")
    code = (
        "import sys, mmap, numpy as np, gpuboost as gb\n"
        "data = gb.Dataset.load(sys.argv[1])\n"
        "assert 'numba' not in sys.modules\n"
        "array = data.x\n"
        "while isinstance(array.base, np.ndarray): array = array.base\n"
        "assert isinstance(getattr(array.base, 'obj', array.base), mmap.mmap), type(array.base)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "data.gbd")], check=True)


def test_the_file_has_everything_that_a_dataset_has() -> None:
    """A new field of Dataset that is not written would be lost in silence."""
    derived = {"_bins": "bins", "_x": "x"}
    assert {derived.get(name, name) for name in gb.Dataset.__slots__} == {field.name for field in fields(DatasetParts)}
