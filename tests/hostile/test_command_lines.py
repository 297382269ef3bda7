"""Command lines on odd files: exit code 2 and one line, and nothing is written or destroyed."""

from __future__ import annotations

import itertools
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.hostile.campaign import Tally, described, many, no_longer_than

import gpuboost as gb
from gpuboost.cli import main

HEAD = "a,b,t\n"
GOOD = HEAD + "".join(f"{i % 7},{i % 3 / 2},{i % 5}\n" for i in range(40))

CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "one byte": b"\n",
    "header only": HEAD.encode(),
    "no header": b"1,2,3\n4,5,6\n",
    "binary": bytes(range(256)) * 8,
    "zeros": b"\0" * 500,
    "not UTF-8": b"a,b,t\n\xff\xfe,1,2\n1,2,3\n",
    "UTF-16": GOOD.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "ragged": GOOD.encode() + b"1,2,3,4,5\n",
    "open quote": GOOD.encode() + b'"1,2,3\n',
    "other separator": GOOD.replace(",", ";").encode(),
    "twice the same name": GOOD.replace("a,b,t", "a,a,t").encode(),
    "no name": GOOD.replace("a,b,t", ",,t").encode(),
    "long name": GOOD.replace("a,b,t", "a" * 100_000 + ",b,t").encode(),
    "many columns": (",".join(f"c{i}" for i in range(3000)) + ",t\n" + "1," * 3000 + "2\n").encode(),
    "one row": (HEAD + "1,2,3\n").encode(),
    "target all missing": (HEAD + "1,2,\n" * 5).encode(),
    "target infinite": (HEAD + "1,2,inf\n" * 5).encode(),
    "features missing": (HEAD + ",,1\n,,2\n" * 5).encode(),
    "huge numbers": (HEAD + "1e999,-1e999,1\n" * 5).encode(),
    "long digits": (HEAD + "1" * 5000 + ",2,3\n1,2,3\n").encode(),
    "null bytes in text": (HEAD + "a\0b,2,3\n" * 5).encode(),
    "carriage returns": GOOD.replace("\n", "\r").encode(),
    "LIBSVM": b"1 1:0.5 2:1\n0 1:2\n" * 10,
    "LIBSVM, letters": b"1 a:0.5\n",
    "LIBSVM, falling": b"1 5:1 2:1\n",
    "LIBSVM, negative": b"1 -3:1\n",
    "LIBSVM, no label": b"1:1 2:2\n",
    "JSON": b'{"a": 1}',
    "model": b"",  # filled in
    "zip": b"PK\x03\x04" + b"\0" * 100,
    "gzip cut": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03abc",
    "Parquet cut": b"PAR1" + b"\0" * 50 + b"PAR1",
}
"""What a file may hold."""

ENDINGS = (".csv", ".tsv", ".svm", ".parquet", ".csv.gz", ".xlsx", "")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the columns a and b."""
    place = tmp_path_factory.mktemp("models") / "model.json"
    frame = pd.DataFrame({"a": np.arange(40) % 7, "b": np.arange(40) % 3 / 2})
    gb.GradientBoostingRegressor(n_estimators=3, n_jobs=1).fit(frame, np.arange(40) % 5).save_model(place)
    return place


def _run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """Exit status and standard error of a command in this process."""
    capsys.readouterr()
    with warnings.catch_warnings(action="ignore"), no_longer_than():
        try:
            status: Any = main(arguments)
        except SystemExit as end:
            status = end.code
    return status, capsys.readouterr().err


def _judge(arguments: list[str], tally: Tally, capsys: pytest.CaptureFixture[str], *, refused: bool = False) -> None:
    """0, or 2 and one line of advice; a usage error of argparse has two."""
    tally.add("commands")
    case = " ".join(arguments)[:300]
    try:
        status, said = _run(arguments, capsys)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        tally.fault(case, described(error) if isinstance(error, Exception) else repr(error))
        return
    tally.add(f"with status {status}")
    lines = said.strip().splitlines()
    advice = len(lines) == 1 and lines[0].startswith("gpuboost ")
    usage = "usage: gpuboost" in said and lines[-1].startswith(("gpuboost ", "gpuboost: error: "))
    if status not in ((2,) if refused else (0, 2)) or (status == 2 and not (advice or usage)) or "Traceback" in said:
        tally.fault(case, f"status {status}, {said[:400]!r}")


def _odd_files(folder: Path, model: Path) -> list[Path]:
    """A file of every content with every ending."""
    paths = []
    for (what, content), ending in itertools.product(CONTENTS.items(), ENDINGS):
        path = folder / f"{what.replace(' ', '_').replace(',', '')}{ending}"
        path.write_bytes(content if what != "model" else model.read_bytes())
        paths.append(path)
    return paths


def test_odd_files(model: Path, tmp_path: Path, tally: Tally, capsys: pytest.CaptureFixture[str]) -> None:
    _odd(model, tmp_path, tally, capsys, 60)


@pytest.mark.thorough
def test_every_odd_file(model: Path, tmp_path: Path, tally: Tally, capsys: pytest.CaptureFixture[str]) -> None:
    _odd(model, tmp_path, tally, capsys, many(3 * len(CONTENTS) * len(ENDINGS)))


def _odd(model: Path, folder: Path, tally: Tally, capsys: pytest.CaptureFixture[str], number: int) -> None:
    few = ["--n-estimators", "2", "--threads", "1", "--max-depth", "2"]
    data, out = folder / "odd", folder / "out"
    data.mkdir()
    out.mkdir()
    good = data / "good.csv"
    good.write_text(GOOD)
    commands: list[list[str]] = []
    for path in _odd_files(data, model):
        commands += [
            ["train", str(path), "--target", "t", "--model", str(out / "model.json"), "--quiet", *few],
            ["predict", str(path), "--model", str(model), "--output", str(out / "p.csv")],
            ["predict", str(good), "--model", str(path)],
        ]
    chosen = np.random.default_rng(4).permutation(len(commands))[:number]
    before = {path: path.read_bytes() for path in data.iterdir()}
    for i in chosen:
        _judge(commands[i], tally, capsys)
    assert {path: path.read_bytes() for path in data.iterdir()} == before
    assert {path.name for path in out.iterdir()} <= {"model.json", "p.csv"}
    tally.check()


def test_odd_places(model: Path, tmp_path: Path, tally: Tally, capsys: pytest.CaptureFixture[str]) -> None:
    """Folders, links, pipes, missing files, and one file as input and output."""
    good = tmp_path / "good.csv"
    good.write_text(GOOD)
    nothing, link, loop = tmp_path / "nothing.csv", tmp_path / "link.csv", tmp_path / "loop.csv"
    link.symlink_to(good)
    loop.symlink_to(loop)
    dangling = tmp_path / "dangling.csv"
    dangling.symlink_to(tmp_path / "away.csv")
    hard = tmp_path / "hard.csv"
    os.link(good, hard)
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    place, text = str(model), str(good)
    train = ["train", text, "--target", "t", "--n-estimators", "1", "--quiet", "--model"]
    predict = ["predict", text, "--model", place, "--output"]
    refused = [
        *(["train", str(path), "--target", "t"] for path in (nothing, loop, dangling, folder)),
        *(["predict", str(path), "--model", place] for path in (nothing, loop, dangling, folder)),
        *(["predict", text, "--model", str(path)] for path in (nothing, loop, dangling, folder, good)),
        *([*train, str(path)] for path in (good, link, hard, folder, tmp_path / "no" / "m.json", loop)),
        *([*predict, str(path)] for path in (good, link, hard, folder, model, tmp_path / "no" / "p.csv", loop)),
        ["train", text, "--target", "no"],
        ["train", text],
        ["train", text, "--target", "t", "--weight", "no"],
        ["train", text, "--target", "t", "--group", "t"],
        ["train", text, "--target", "t", "--categorical", "x"],
        ["train", text, "--target", "t", "--eval", "2"],
        ["train", text, "--target", "t", "--eval", "nan"],
        ["train", text, "--target", "t", "--eval", str(nothing)],
        ["train", text, "--target", "t", "--eval", str(folder)],
        ["train", text, "--target", "t", "--loss", "no"],
        ["train", text, "--target", "t", "--loss", "quantile:x"],
        ["train", text, "--target", "t", "--n-estimators", "-1"],
        ["train", text, "--target", "t", "--max-bins", "65536"],
        ["train", text, "--target", "t", "--learning-rate", "nan"],
        ["train", text, "--target", "t", "--seed", "-1"],
        ["train", text, "--target", "t", "--monotonic", "a=2"],
        ["train", text, "--target", "t", "--monotonic", "a"],
        ["train", text, "--target", "t", "--device", "cuda:99"],
        ["train", text, "--target", "t", "--eval-metric", "no"],
        ["train", text, "--target", "t", "--sampling", "1.5"],
        ["train", text, "--target", "t", "--learners", "-1"],
        ["train", text, "--target", "t", "--temperature", "1"],
        ["train", text, "--target", "t", "--task", "rank"],
        ["predict", text, "--model", place, "--proba"],
        ["predict", text, "--model", place, "--uncertainty"],
        ["predict", text, "--model", place, "--output", str(tmp_path / "p.parquet")],
        ["bench"],
        ["bench", "no"],
        ["bench", "quality", "--case", "no"],
        ["bench", "quality", "--peer", "no"],
        ["no"],
        [],
    ]
    for command in refused:
        _judge(command, tally, capsys, refused=True)
    assert good.read_text() == GOOD
    assert link.is_symlink()
    assert link.read_text() == GOOD
    assert gb.load_model(model).n_iter_ == 3
    tally.check()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null")], ids=["pipe", "device"])
def test_a_device_stays_one(make: Callable[[Path], object], model: Path, tmp_path: Path) -> None:
    """The reader of a pipe is a thread of this process."""
    good, place = tmp_path / "good.csv", tmp_path / "out"
    good.write_text(GOOD)
    make(place)
    kind, read = place.stat().st_mode, []
    reader = threading.Thread(target=lambda: read.append(place.read_text()))
    if place.is_fifo():
        reader.start()
    with no_longer_than():
        assert main(["predict", str(good), "--model", str(model), "--output", str(place)]) == 0
    if place.is_fifo():
        reader.join(60)
        assert read[0].count("\n") == 41
    assert place.stat().st_mode == kind
