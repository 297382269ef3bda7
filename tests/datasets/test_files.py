"""Tables from files of every kind, and what is said of damaged ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpuboost.data.formats import files
from gpuboost.data.formats.files import read_table
from gpuboost.errors import InputError

CSV = "age,town,w,q,y\n30,Bern,1.5,1,no\n41,,0.5,1,yes\n25,Basel,2,2,no\n"
LIBSVM = "1 qid:1 1:0.5 3:2\n0 qid:1 2:1  # a comment\n1 qid:2\n"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.xz", ".csv.bz2", ".tsv", ".TSV.gz", ".parquet"])
def test_tables_with_names(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"v1.2-data{ending}"
    if ending == ".parquet":
        pd.read_csv(pd.io.common.StringIO(CSV)).to_parquet(path)
    else:
        text = CSV.replace(",", "\t") if "tsv" in ending.lower() else CSV
        openers = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
        with openers.get(path.suffix, open)(path, "wt") as file:
            file.write(text)
    x, y, weight, group = read_table(path, "y", weight="w", group="q")
    assert list(x.columns) == ["age", "town"]
    assert x["age"].tolist() == [30, 41, 25]
    assert x["town"].dropna().tolist() == ["Bern", "Basel"]
    assert x["town"].isna().tolist() == [False, True, False]
    assert y.tolist() == ["no", "yes", "no"]
    assert (weight.tolist(), weight.dtype) == ([1.5, 0.5, 2.0], np.float64)
    assert group.tolist() == [1, 1, 2]


def test_columns_are_features_unless_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    x, y, weight, group = read_table(str(path), None, categorical=["q", "town"])
    assert list(x.columns) == ["age", "town", "w", "q", "y"]
    assert [str(kind) for kind in x.dtypes[:4]] == ["int64", "category", "float64", "category"]
    assert x["y"].tolist() == ["no", "yes", "no"]
    assert x["q"].cat.categories.tolist() == [1, 2]
    assert (y, weight, group) == (None, None, None)


def test_a_column_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    with pytest.raises(InputError, match="target: 'y' is also the column of weight"):
        read_table(path, "y", weight="y")
    with pytest.raises(InputError, match="categorical: 'y' is also the column of target"):
        read_table(path, "y", categorical=["town", "y"])


def test_parquet_without_rows(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0], "y": [2.0]})[:0].to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="no rows"):
        read_table(tmp_path / "a.parquet", "y")


@pytest.mark.parametrize("ending", [".libsvm", ".svm", ".txt", ".svm.xz"])
def test_libsvm(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    with (lzma.open if ending.endswith("xz") else open)(path, "wt") as file:
        file.write(LIBSVM)
    x, y, weight, group = read_table(path, None)
    assert x.toarray().tolist() == [[0, 0.5, 0, 2], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert (y.tolist(), weight, group.tolist()) == ([1, 0, 1], None, [1, 1, 2])
    assert read_table(path, None, n_features=7)[0].shape == (3, 7)


def test_libsvm_without_queries(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("-1 5:1\n+1 2:3\n")
    x, y, _, group = read_table(path, "ignored")
    assert (x.shape, y.tolist(), group) == ((2, 6), [-1, 1], None)


def test_real_files(data_dir: Path) -> None:
    x, y, *_ = read_table(data_dir / "california" / "housing.csv.xz", "median_house_value")
    assert x.shape == (20_640, 9)
    assert x["total_bedrooms"].isna().sum() == 207
    assert x["ocean_proximity"].nunique() == 5
    assert y.dtype == np.float64


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "a,y\n1,2\n1,2,3\n", "2; line 3 has 3"),
        ("a.csv", "a,y\n1,2,3\n1,2,3\n", "2; line 2 has 3"),
        ("a.csv", "a,b,y\n1,2,3\n1,2\n", "3; line 3 has 2"),
        ("a.csv", 'a,y\n"1,2\n', "cannot be read"),
        ("a.csv", "", "is empty"),
        ("a.csv", "a,y\n", "no rows"),
        ("a.csv", "a,target\n1,2\n", "no column 'y'; it has a, target"),
        ("a.csv", "a,yy\n1,2\n", "no column 'y'; close to it: 'yy'"),
        ("a.csv", "a, y\n1,2\n", "no column 'y'; close to it: ' y'"),
        (
            "a.csv",
            "7,0.5,x\n8,1.5,z\n",
            "no column 'y'; its first line, which must hold the column names, is 7, 0.5, x",
        ),
        ("a.csv", "y\n1\n", "no feature is left"),
        ("a.csv", b"a,y\n\xff\xfe,1\n", r"cannot be read as text in UTF-8; .*\. Save it in UTF-8\."),
        ("a.csv.gz", "a,y\n1,2\n", "cannot be read"),
        ("a.csv.xz", "a,y\n1,2\n", "cannot be read"),
        ("a.parquet", "a,y\n1,2\n", "as Parquet"),
        ("a.xlsx", "", "cannot tell what kind"),
        ("a", "", "cannot tell what kind"),
        ("a.svm", "1 1:2\n0 1:2 x\n", "line 2:"),
        ("a.svm", "1 1:2\n0 3:2 1:4\n", "line 2:"),
        ("a.svm", "1,2,3\n", "line 1:"),
        ("a.svm", "1 -1:2\n", "line 1:"),
        ("a.svm", "1 qid:1 1:2\n0 1:2\n", "qid"),
        ("a.svm", "", "is empty"),
    ],
)
def test_damaged_files(name: str, content: str | bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=words) as caught:
        read_table(path, "y")
    assert name in str(caught.value)


def test_what_a_call_can_get_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,w,y\n1,x,2\n")
    (tmp_path / "a.svm").write_text("1 5:2\n")
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "b.csv", "y")
    with pytest.raises(InputError, match="not a file"):
        read_table(tmp_path, "y")
    with pytest.raises(InputError, match="weight: column 'w'"):
        read_table(tmp_path / "a.csv", "y", weight="w")
    with pytest.raises(InputError, match=r"categorical: .* has no column 'b'"):
        read_table(tmp_path / "a.csv", "y", categorical=["b"])
    with pytest.raises(InputError, match="no column names"):
        read_table(tmp_path / "a.svm", None, weight="w")
    with pytest.raises(InputError, match="below 5 features; got 5"):
        read_table(tmp_path / "a.svm", None, n_features=5)


def test_a_file_of_other_separators_is_recognised(tmp_path: Path) -> None:
    for mark in ";\t|":
        (tmp_path / "rows.csv").write_text(f"a{mark}y\n1{mark}2\n3{mark}4\n")
        with pytest.raises(InputError, match=re.escape(f": fields seem to be separated by {mark!r}, and are expected")):
            read_table(tmp_path / "rows.csv", "y")


@pytest.mark.parametrize("without", [False, True])
def test_decimal_commas_and_equal_names_are_refused(
    without: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if without:
        monkeypatch.setattr(files, "find_spec", lambda name: None)
    path = tmp_path / "rows.csv"
    path.write_text("\ufeffa;y\n1,5;2\n2,5;3\n")
    with pytest.raises(InputError, match=r"as the first, 1; line 2 has 2: fields seem to be separated by ';'.* --sep"):
        read_table(path, "y")
    path.write_text("\ufeffa,a,y\n1,2,3\n")
    with pytest.raises(InputError, match="every column needs a name of its own; 2 are called 'a'"):
        read_table(path, "y")


def test_a_missing_last_value_is_not_a_ragged_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('y,note\n1,"a, b"\n2,\n\n3,"two\nlines"\n')
    x, y, *_ = read_table(path, "y")
    assert y.tolist() == [1, 2, 3]
    assert x["note"].isna().tolist() == [False, True, False]
