"""Separators, weights of classes, and exports on the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.cli import main
from gpuboost.data.formats.files import read_table

pd = pytest.importorskip("pandas")
QUICK = ["--n-estimators", "8", "--max-depth", "3", "--seed", "1", "--quiet"]
rng = np.random.default_rng(0)
SHOPS = pd.DataFrame({"size": rng.normal(size=200), "rent": rng.normal(size=200)})
OPEN = np.where(SHOPS["size"] + rng.normal(size=200) > 0.7, "yes", "no")


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    path = tmp_path / "shops.csv"
    SHOPS.assign(open=OPEN).to_csv(path, index=False)
    return path


def trained(path: Path, *options: str) -> Any:
    model = path.with_suffix(".json")
    assert main(["train", str(path), "--target", "open", "--model", str(model), *QUICK, *options]) == 0
    return gb.load_model(model)


@pytest.mark.parametrize(
    ("separator", "said", "name"), [(";", ";", "a.csv"), ("\t", "tab", "a.txt"), ("|", "|", "a.dat")]
)
def test_other_separators(separator: str, said: str, name: str, shops: Path, tmp_path: Path) -> None:
    other, out = tmp_path / name, tmp_path / "out.csv"
    SHOPS.assign(open=OPEN).to_csv(other, index=False, sep=separator)
    model = trained(other, "--sep", said)
    assert (model.predict(SHOPS) == trained(shops).predict(SHOPS)).all()
    command = ["predict", str(other), "--sep", said, "--model", str(other.with_suffix(".json")), "--output", str(out)]
    assert main(command) == 0
    assert out.read_text().split()[1:] == model.predict(SHOPS).tolist()


def test_a_separator_of_two_characters_is_refused(shops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(shops), "--target", "open", "--sep", "::"]) == 2
    assert "separator: must be one character" in capsys.readouterr().err


@pytest.mark.parametrize(("said", "weights"), [("balanced", "balanced"), ("yes=5,no=1", {"yes": 5.0, "no": 1.0})])
def test_weights_of_classes(said: str, weights: Any, shops: Path) -> None:
    same = gb.GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=1, class_weight=weights)
    expected = same.fit(SHOPS, OPEN).predict_proba(SHOPS)
    assert (trained(shops, "--class-weight", said).predict_proba(SHOPS) == expected).all()


def test_classes_that_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    SHOPS.assign(open=(OPEN == "yes").astype(int)).to_csv(path, index=False)
    same = gb.GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=1, class_weight={0: 1.0, 1: 4.0})
    expected = same.fit(SHOPS, (OPEN == "yes").astype(int)).predict_proba(SHOPS)
    assert (trained(path, "--class-weight", "0=1,1=4").predict_proba(SHOPS) == expected).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--target", "open", "--class-weight", "maybe=2"],
            "--class-weight: the target has no class 'maybe'; it has no",
        ),
        (["--target", "rent", "--class-weight", "balanced"], "--class-weight: weights are of classes"),
    ],
)
def test_weights_that_do_not_fit(
    options: list[str], words: str, shops: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(shops), *options]) == 2
    assert words in capsys.readouterr().err


def exported(shops: Path, kind: str, name: str) -> tuple[Any, Path]:
    model, path = trained(shops), shops.with_name(name)
    assert main(["export", "--model", str(shops.with_suffix(".json")), "--format", kind, "--output", str(path)]) == 0
    return model.predict_proba(SHOPS)[:, 1], path


def test_export_to_onnx(shops: Path) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    expected, path = exported(shops, "onnx", "m.onnx")
    session = runtime.InferenceSession(str(path))
    answers = session.run(None, {session.get_inputs()[0].name: SHOPS.to_numpy(np.float32)})
    np.testing.assert_allclose(np.asarray(answers[-1])[:, 1], expected, atol=1e-5)


def test_export_to_xgboost(shops: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    expected, path = exported(shops, "xgboost", "x.json")
    found = xgboost.Booster(model_file=str(path)).predict(xgboost.DMatrix(SHOPS))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_export_to_treelite(shops: Path) -> None:
    treelite = pytest.importorskip("treelite")
    expected, path = exported(shops, "treelite", "m.tl")
    found = treelite.gtil.predict(treelite.Model.deserialize(str(path)), SHOPS.to_numpy(np.float32))
    np.testing.assert_allclose(found.reshape(200, -1)[:, -1], expected, atol=1e-5)


def test_export_to_c(shops: Path) -> None:
    _, path = exported(shops, "c", "m.c")
    assert path.read_text() == gb.export.to_c(gb.load_model(shops.with_suffix(".json")))


def test_an_export_does_not_destroy_its_model(shops: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(shops)
    model = str(shops.with_suffix(".json"))
    assert main(["export", "--model", model, "--format", "xgboost", "--output", model]) == 2
    assert "--output:" in capsys.readouterr().err
    assert main(["export", "--model", model, "--format", "xgboost", "--output", str(shops.with_name("x.bin"))]) == 2
    assert "must end with '.json'" in capsys.readouterr().err


@pytest.mark.parametrize("labels", [[1.5, None], ["yes", None], [True, None]])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_rows_without_a_target_are_counted(
    labels: list[Any], ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"a{ending}"
    frame = pd.DataFrame({"a": np.arange(40.0), "y": labels * 20})
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
    assert main(["train", str(path), "--target", "y"]) == 2
    assert f"--target: row 1 of {path} has no value (20 such rows). Leave them out." in capsys.readouterr().err


def test_rows_are_left_to_train_on(shops: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(shops), "--target", "open", "--eval", "0.999"]) == 2
    assert "--eval: with 0.999 of 200 rows held out, none is left to train on" in capsys.readouterr().err
    one = tmp_path / "one.csv"
    one.write_text("a,y\n1,2.5\n")
    assert main(["train", str(one), "--target", "y"]) == 2
    assert "--eval: with 0.2 of 1 rows held out" in capsys.readouterr().err
    queries = tmp_path / "queries.csv"
    queries.write_text("q,a,y\n" + "".join(f"{i // 4},{i},{i % 2}\n" for i in range(16)))
    assert main(["train", str(queries), "--target", "y", "--group", "q", "--eval", "0.9"]) == 2
    assert "--eval: with 0.9 of 4 queries held out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"k": [[1.0, 2.0]] * 60}, "X: column 'k' must hold numbers"),
        ({"k": [{"u": 1}] * 60}, "X: column 'k' must hold numbers"),
        ({"y": np.datetime64("2020-01-01") + np.arange(60)}, "y: labels are text or numbers .* got datetime64"),
    ],
    ids=["lists", "structs", "dates to learn"],
)
def test_columns_of_parquet_that_hold_no_numbers_end_in_one_line(
    column: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": np.arange(60) % 7, "y": np.arange(60) + 0.5}).assign(**column)
    frame.to_parquet(tmp_path / "rows.parquet")
    assert main(["train", str(tmp_path / "rows.parquet"), "--target", "y", "--n-estimators", "2"]) == 2
    assert re.search(f"^gpuboost train: {words}.*\n$", capsys.readouterr().err)


def test_integers_of_nullable_columns_stay_integers(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    ids = pd.array(np.repeat([2**60, 2**60 + 1], 30), dtype="Int64")  # as floats they are one
    frame = pd.DataFrame({"a": np.arange(60.0), "y": pd.array([0, 2] * 30, dtype="Int64"), "q": ids})
    frame.to_parquet(tmp_path / "rows.parquet")
    _, y, _, group = read_table(tmp_path / "rows.parquet", "y", group="q")
    assert y is not None
    assert group is not None
    assert y.tolist() == [0, 2] * 30
    assert y.dtype.kind == group.dtype.kind == "i"
    assert len(np.unique(group)) == 2
