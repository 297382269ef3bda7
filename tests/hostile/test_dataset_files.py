"""Mutants of dataset files: refused by an error that names the file, or every later call works."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from support.hostile.campaign import Tally, described, is_refusal, many, no_longer_than, outcome
from support.hostile.mutants import change_bytes, change_value

import gpuboost as gb

HEAD = 24
FEW: dict[str, Any] = {"n_estimators": 2, "max_depth": 2, "n_jobs": 1}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Kind -> content of its file."""
    folder = tmp_path_factory.mktemp("datasets")
    rng = np.random.default_rng(6)
    x, words = rng.normal(size=(40, 3)), rng.choice(["a", "b", "c"], 40)
    y, group = x[:, 0] + x[:, 1], np.repeat(np.arange(8), 5)
    x[rng.random(x.shape) < 0.1] = np.nan
    frame = pd.DataFrame({"n": x[:, 0], "w": pd.Categorical(words), "m": pd.Categorical(rng.integers(0, 30, 40))})
    frame[["n"]].assign(t=y).to_parquet(folder / "rows.parquet")
    datasets = {
        "numbers": gb.Dataset(x, y, weight=rng.integers(1, 4, 40)),
        "float32": gb.Dataset(np.asfortranarray(x.astype(np.float32)), y > 0),
        "categories": gb.Dataset(frame, y, max_bins=10),
        "sparse": gb.Dataset(sp.random(40, 30, 0.05, format="csr", random_state=0), y),
        "queries": gb.Dataset(x, rng.integers(0, 3, 40), group=group.astype(str).astype(object)),
        "labels": gb.Dataset(x, words),
        "parquet": gb.Dataset.from_parquet(folder / "rows.parquet", "t"),
    }
    contents = {}
    for kind, data in datasets.items():
        data.save(folder / "data.gbd", n_jobs=1)
        contents[kind] = (folder / "data.gbd").read_bytes()
    return contents


def mutant(content: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Bytes changed as a broken disk changes them, or content changed by someone who knows how to write checksums."""
    if rng.random() < 0.35:
        return change_bytes(content, rng)
    header = json.loads(content[HEAD : HEAD + int.from_bytes(content[16:HEAD], "little")])
    if rng.random() < 0.5:
        what, changed = change_value(header, rng)
        return what, with_header(content, changed)
    name = list(header["arrays"])[rng.integers(len(header["arrays"]))]
    entry = header["arrays"][name]
    size = int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize
    array = bytearray(content[entry["offset"] : entry["offset"] + size])
    for _ in range(int(rng.integers(1, 4)) if size else 0):
        array[rng.integers(size)] = rng.integers(256)
    entry["crc32"] = crc32(array)
    changed = content[: entry["offset"]] + array + content[entry["offset"] + size :]
    return f"bytes of {name}", with_header(changed, json.dumps(header).encode())


def with_header(content: bytes, header: bytes) -> bytes:
    """The content with another header of the same length, if it fits there, and its checksum."""
    length = int.from_bytes(content[16:HEAD], "little")
    compact = header.replace(b", ", b",").replace(b": ", b":").ljust(length)
    if len(compact) > length:  # arrays are elsewhere then; the rest of the header is looked at all the same
        content = content[:HEAD] + bytes(len(compact)) + content[HEAD + length :]
    checksum = crc32(compact).to_bytes(4, "little")
    size = len(compact).to_bytes(8, "little")
    return content[:8] + checksum + bytes(4) + size + compact + content[HEAD + len(compact) :]


def _try(files: dict[str, bytes], tally: Tally, folder: Path, each: int) -> None:
    place = folder / "data.gbd"
    for number, (kind, content) in enumerate(files.items()):
        rng = np.random.default_rng([4, number])
        for _ in range(each):
            what, changed = mutant(content, rng)
            place.write_bytes(changed)
            tally.add("mutants")
            _judge(f"{kind}: {what}", place, tally)
    tally.check()


def _judge(case: str, place: Path, tally: Tally) -> None:
    loaded: list[gb.Dataset] = []
    error = outcome(lambda: loaded.append(gb.Dataset.load(place)))
    if error is None:
        tally.add("loaded")
        error = outcome(lambda: _use(loaded[0]))
        if error is not None and not is_refusal(error):
            tally.fault(case, f"after loading: {described(error)}")
        return
    tally.add("refused")
    if not isinstance(error, gb.InputError) or str(place) not in str(error):
        tally.fault(case, described(error))


def _use(data: gb.Dataset) -> None:
    """The calls that take a Dataset."""
    assert repr(data)
    if len(data) > 1000 or data.y is None:
        return
    number = data.y.dtype.kind in "iuf" and data.group is None
    kind = gb.GradientBoostingRegressor if number else gb.GradientBoostingClassifier
    kind = kind if data.group is None else gb.GradientBoostingRanker
    model = kind(**FEW).fit(data)
    assert len(model.predict(data)) == len(data)
    if data.group is None and not data.in_files:
        gb.cv(model, data, folds=2)
        kind(n_estimators=1, base_learner=gb.learners.Linear()).fit(data)


def test_mutants_of_dataset_files(files: dict[str, bytes], tally: Tally, tmp_path: Path) -> None:
    _try(files, tally, tmp_path, 16)


@pytest.mark.thorough
def test_many_mutants_of_dataset_files(files: dict[str, bytes], tally: Tally, tmp_path: Path) -> None:
    _try(files, tally, tmp_path, many(400))


def test_unchanged_files_load(files: dict[str, bytes], tmp_path: Path) -> None:
    for kind, content in files.items():
        header = content[HEAD : HEAD + int.from_bytes(content[16:HEAD], "little")]
        assert with_header(content, header) == content, kind
        (tmp_path / "data.gbd").write_bytes(content)
        with warnings.catch_warnings(action="ignore"), no_longer_than():
            _use(gb.Dataset.load(tmp_path / "data.gbd"))
