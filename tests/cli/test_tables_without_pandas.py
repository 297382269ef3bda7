"""CSV without pandas, LETOR's indices, ``--format`` and ``--cv``."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import gpuboost as gb
from gpuboost.cli import main
from gpuboost.data.formats import files
from gpuboost.data.formats.files import read_table
from gpuboost.data.tables import as_table

pd = pytest.importorskip("pandas")
QUICK = ["--n-estimators", "4", "--max-depth", "3", "--seed", "1", "--quiet"]
rng = np.random.default_rng(0)
N = 120
FLATS = pd.DataFrame(
    {
        "size": np.round(rng.normal(50, 10, N), 2),
        "floor": rng.integers(0, 9, N),
        "lift": rng.random(N) > 0.5,
        "town": rng.choice(["x", "y", "NA", "z, w"], N),
        "kind": rng.integers(0, 4, N),
        "weight": rng.integers(1, 3, N),
    }
)
FLATS.loc[::7, "size"] = np.nan
FLATS["rent"] = np.round(FLATS["size"].fillna(50) + 5 * (FLATS["town"] == "x") + rng.normal(size=N), 2)


def test_csv_needs_no_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, texts = tmp_path / "flats.csv", []
    FLATS.to_csv(path, index=False)
    options = ["--target", "rent", "--weight", "weight", "--categorical", "kind", *QUICK, "--eval", "0.2"]
    for without in (False, True):
        with monkeypatch.context() as patch:
            if without:
                patch.setattr(files, "find_spec", lambda name: None)
            model, out = tmp_path / f"{without}.json", tmp_path / f"{without}.csv"
            assert main(["train", str(path), *options, "--model", str(model)]) == 0
            assert main(["predict", str(path), "--model", str(model), "--output", str(out)]) == 0
        texts.append((model.read_text(), out.read_text()))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("without", [False, True])
def test_text_stays_text_in_a_file_where_it_looks_like_numbers(
    without: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if without:
        monkeypatch.setattr(files, "find_spec", lambda name: None)
    train, new, model = tmp_path / "train.csv", tmp_path / "new.csv", str(tmp_path / "m.json")
    codes = [["x", "07", "7", "True", "z"][i % 5] for i in range(50)]
    lines = [f"{i % 3},{(5.0 if code == '07' else 1.0)},{code},{code}" for i, code in enumerate(codes)]
    train.write_text("\n".join(["a,y,k,label", *lines]))
    options = ["--target", "y", "--task", "regression", "--model", model, "--categorical", "k", *QUICK]
    for code, same in (("07", True), ("7", False), ("True", False)):
        new.write_text(f"a,y,k,label\n1,2,{code},{code}\n0,2,,{code}\n")
        assert main(["train", str(train), *options, "--eval", str(new)]) == 0
        assert main(["predict", str(new), "--model", model]) == 0
        predicted = float(capsys.readouterr().out.split()[1])
        frame = pd.DataFrame({"a": [1], "k": [code], "label": [code]})
        assert predicted == gb.load_model(model).predict(frame)[0]
        assert (predicted > 2.0) == same
    assert main(["train", str(train), "--target", "label", "--eval", str(new), *QUICK[:-1]]) == 0


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("a,b\nTrue,1\n,2\nfalse,3\n", "a", [1.0, np.nan, 0.0]),
        (f"a,b\n{2**63},1\n{2**63 + 1},2\n", "a", [2**63, 2**63 + 1]),
        (f"a,b\n{10**25},1\n{10**25 + 1},2\n", "a", [10**25, 10**25 + 1]),
        ("a,b,\n1,2,3\n", "Unnamed: 2", [3]),
        (",a,b\n7,1,2\n", "Unnamed: 0", [7]),
        ("a,b\n1,2,\n3,4,\n", "b", [2, 4]),
        ("a,b\n1,,\n3,4,\n", "b", [np.nan, 4]),
    ],
)
def test_columns_are_those_of_pandas(
    text: str, name: str, expected: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    for without in (False, True):
        if without:
            monkeypatch.setattr(files, "find_spec", lambda name: None)
        table = as_table(read_table(path, None)[0])
        column = table.column((table.names or ()).index(name))
        values = column.values if column.is_numeric else np.array([np.nan if v is None else v for v in column.values])
        np.testing.assert_array_equal(values, expected)
        assert len(set(values.tolist())) == len(expected)  # as floats the large ones are one


def test_another_separator_is_named_by_predict_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, new, model = tmp_path / "train.csv", tmp_path / "new.csv", str(tmp_path / "m.json")
    train.write_text("a,b,y\n" + "".join(f"{i % 3},{i % 5},{i}.5\n" for i in range(20)))
    new.write_text("a;b\n1;2\n")
    assert main(["train", str(train), "--target", "y", "--model", model, *QUICK]) == 0
    assert main(["predict", str(new), "--model", model]) == 2
    assert re.search("lacks 2 .*: a, b: fields seem to be separated by ';'.*--sep", capsys.readouterr().err)


@pytest.mark.parametrize("without", [False, True])
@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1.5", "-2", "?", "30"], "'a' must hold numbers or be declared categorical; .* '?1.5'? beside '\\?'"),
        (['"1,5"', '"2,75"'], "with decimal commas.*--decimal , of the command line"),
        (['"1.001,5"', '"2.000,75"'], r"with decimal commas.*\(--decimal , --thousands \. of the command line\)"),
        (["such a nice small flat {}", "and a large one for {}"], "'a' must hold numbers or categories; .* free text"),
    ],
)
def test_numbers_written_as_text_and_free_text_are_refused_unless_named(
    values: list[str],
    words: str,
    without: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if without:
        monkeypatch.setattr(files, "find_spec", lambda name: None)
    path, model = tmp_path / "a.csv", str(tmp_path / "m.json")
    lines = [f"{values[i % len(values)].format(i)},{i % 7}.5" for i in range(40)]
    path.write_text("\n".join(["a,y", *lines]))
    command = ["train", str(path), "--target", "y", "--model", model, *QUICK]
    assert main(command) == 2
    assert re.search(words, capsys.readouterr().err)
    assert main([*command, "--categorical-features", "a"]) == 0
    assert gb.load_model(model).columns_.categories[0] is not None


@pytest.mark.parametrize("without", [False, True])
def test_decimal_commas(
    without: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if without:
        monkeypatch.setattr(files, "find_spec", lambda name: None)
    path, model, out = tmp_path / "flats.csv", str(tmp_path / "m.json"), tmp_path / "out.csv"
    FLATS.to_csv(path, index=False, sep=";", decimal=",")
    command = ["train", str(path), "--target", "rent", "--model", model, "--sep", ";", *QUICK]
    assert main(command) == 2  # the target
    assert "--decimal ','" in capsys.readouterr().err
    form = ["--sep", ";", "--decimal", ","]
    assert main([*command, *form, "--eval", str(path)]) == 0
    assert main(["predict", str(path), "--model", model, "--output", str(out), *form]) == 0
    expected = gb.GradientBoostingRegressor(n_estimators=4, max_depth=3, random_state=1)
    rows = FLATS.drop(columns="rent").replace({"town": {"NA": None}})
    assert np.array_equal(np.loadtxt(out, skiprows=1), expected.fit(rows, FLATS["rent"]).predict(rows))


@pytest.mark.parametrize("without", [False, True])
@pytest.mark.parametrize(("mark", "point"), [(".", ","), (",", "."), ("'", "."), ("_", ".")])
def test_thousands(mark: str, point: str, without: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if without:
        monkeypatch.setattr(files, "find_spec", lambda name: None)
    path = tmp_path / "a.csv"

    def written(value: float) -> str:
        return f"{value:,.2f}".replace(".", "?").replace(",", mark).replace("?", point)

    values = [1234567.25, -1000.0, 12.5]
    lines = [f"{written(value)};{int(value):,};12{mark}34;{written(value)}".replace(",", mark) if point == "." else
             f"{written(value)};{int(value)};12{mark}34;{written(value)}" for value in values]  # fmt: skip
    path.write_text("\n".join(["a;whole;no;y", *lines, f";1{mark}000;x;0{point}5"]))
    x, y, _, _ = files.read_table(path, "y", separator=";", decimal=point, thousands=mark)
    table = as_table(x)
    assert y.tolist() == [*values, 0.5]
    assert np.array_equal(table.column(0).values, [*values, np.nan], equal_nan=True)
    assert table.column(1).values.dtype == np.int64
    assert table.column(1).values.tolist() == [1234567, -1000, 12, 1000]
    assert not table.column(2).is_numeric  # pandas' ``thousands`` makes 1234 of 12.34


def test_thousands_that_cannot_be_set_apart_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1,2\n")
    for form, words in (
        (["--thousands", ","], "thousands: ',' separates the fields"),
        (["--thousands", "."], "thousands: '.' is the decimal point"),
        (["--format", "libsvm", "--thousands", "."], "thousands: is of CSV and TSV"),
    ):
        assert main(["train", str(path), "--target", "y", *form]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("without", [False, True])
def test_an_underscore_is_no_mark_of_thousands_unless_named(
    without: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if without:
        monkeypatch.setattr(files, "find_spec", lambda name: None)
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1_000,2\n2_000,3\n")
    assert not as_table(files.read_table(path, "y")[0]).column(0).is_numeric


def test_decimal_commas_that_separate_fields_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1,2\n")
    assert main(["train", str(path), "--target", "y", "--decimal", ","]) == 2
    assert "decimal: ',' separates the fields" in capsys.readouterr().err
    assert main(["train", str(path), "--format", "libsvm", "--decimal", ","]) == 2
    assert "decimal: is of CSV and TSV" in capsys.readouterr().err


@pytest.mark.parametrize("without", [False, True])
def test_a_point_is_no_number_where_decimal_points_are_commas(
    without: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if without:
        monkeypatch.setattr(files, "find_spec", lambda name: None)
    path = tmp_path / "a.csv"
    path.write_text("a;b\n1,5;1.5\n2;2.5\n")
    x = as_table(read_table(path, None, separator=";", decimal=",")[0])
    assert x.column(0).values.tolist() == [1.5, 2.0]
    assert x.column(1).values.tolist() == ["1.5", "2.5"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n1\n", "line 3 has 1"),
        ("a,a\n1,2\n", "2 are called 'a'"),
        ("a,b\n1,2\n", "target: .* has no column 'rent'"),
    ],
)
def test_csv_that_cannot_be_read_without_pandas(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "flats.csv"
    path.write_text(text)
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(gb.InputError, match=words):
        read_table(path, "rent")


def test_letor_files_have_as_many_features_as_they_number(tmp_path: Path) -> None:
    x, y, group = rng.normal(size=(80, 6)), rng.integers(0, 3, 80), np.repeat(np.arange(10), 8)
    path, short, out = tmp_path / "ranks.txt", tmp_path / "short.txt", tmp_path / "out.csv"
    dump_svmlight_file(x, y, str(path), query_id=group, zero_based=False)
    model = tmp_path / "model.json"
    assert main(["train", str(path), "--eval", str(path), "--model", str(model), *QUICK]) == 0
    ranker = gb.load_model(model)
    assert ranker.feature_names_in_.tolist() == list("123456")
    dump_svmlight_file(x[:, :3], y, str(short), query_id=group, zero_based=False)  # the last features are all 0
    assert main(["predict", str(short), "--model", str(model), "--output", str(out)]) == 0
    expected = ranker.predict(pd.DataFrame(np.hstack([x[:, :3], np.zeros((80, 3))]), columns=list("123456")))
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], expected)
    assert read_table(path, None, kind="libsvm")[0].shape == (80, 7)
    dump_svmlight_file(x, y, str(path), zero_based=False)
    assert read_table(path, None)[0].shape == (80, 7)  # without queries it is no LETOR file
    assert read_table(path, None, kind="letor")[0].shape == (80, 6)
    dump_svmlight_file(x, y, str(path), query_id=group, zero_based=True)
    assert read_table(path, None)[0].shape == (80, 6)
    with pytest.raises(gb.InputError, match="indices of LETOR files start at 1"):
        read_table(path, None, kind="letor")


def test_the_format_may_be_said(tmp_path: Path) -> None:
    path, model = tmp_path / "flats.data", tmp_path / "model.json"
    FLATS.to_csv(path, index=False)
    options = ["--target", "rent", "--model", str(model), *QUICK]
    assert main(["train", str(path), *options]) == 2
    assert main(["train", str(path), *options, "--format", "csv"]) == 0


def test_cross_validation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "flats.csv", tmp_path / "model.json"
    FLATS.drop(columns=["town", "kind"]).to_csv(path, index=False)
    options = ["--target", "rent", "--n-estimators", "30", "--cv", "3", "--early-stopping-rounds", "3", "--seed", "1"]
    assert main(["train", str(path), *options, "--eval-metric", "mae,rmse", "--model", str(model)]) == 0
    said = capsys.readouterr().out
    assert "3 folds, the best round is" in said
    assert "mae" in said
    assert "rmse" in said
    assert f"the best round is {gb.load_model(model).n_iter_}" in said
    assert main(["train", str(path), *options, "--eval", "0.2"]) == 2
    assert "--cv: every row is held out once" in capsys.readouterr().err
