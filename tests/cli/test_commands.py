"""The command line from end to end, on files a user could have."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import gpuboost as gb
from gpuboost.cli import main, predict
from gpuboost.cli.tables import InputTable, task_of
from gpuboost.errors import InputError
from gpuboost.losses.registry import NAMES, get

pd = pytest.importorskip("pandas")

QUICK = ["--n-estimators", "10", "--max-depth", "3", "--seed", "1", "--quiet"]


@pytest.fixture
def houses(rng: np.random.Generator, tmp_path: Path) -> Path:
    """240 rows: two numbers, a text column, a weight, a price that depends on all but the weight."""
    area, age = rng.uniform(20, 200, 240), rng.integers(0, 90, 240)
    town = rng.choice(["Ashford", "Bath", "Crewe"], 240)
    price = 3.5 * area - age + 100.0 * (town == "Bath") + rng.normal(0, 5, 240)
    frame = pd.DataFrame({"area": area, "age": age, "town": town, "weight": rng.integers(1, 4, 240), "price": price})
    frame.loc[3, "area"] = np.nan
    path = tmp_path / "houses.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def flowers(multiclass_data: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> Path:
    x, y = multiclass_data
    path = tmp_path / "flowers.csv"
    pd.DataFrame(x, columns=list("abcd")).assign(kind=y).to_csv(path, index=False)
    return path


def read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def test_train_then_predict_a_regression(houses: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    given = ["--target", "price", "--weight", "weight", "--categorical", "age", "--model", str(model)]
    assert main(["train", str(houses), *given, *QUICK]) == 0
    assert main(["predict", "--model", str(model), str(houses), "--output", str(out)]) == 0
    header, rows = read_csv(out)
    loaded: Any = gb.load_model(model)
    assert isinstance(loaded, gb.GradientBoostingRegressor)
    assert header == ["prediction"]
    frame = pd.read_csv(houses)
    predicted = np.array([float(value) for (value,) in rows])
    assert np.corrcoef(predicted, frame["price"])[0, 1] > 0.9
    own = frame[list(loaded.feature_names_in_)].astype({"town": "category", "age": "category"})
    np.testing.assert_array_equal(predicted, loaded.predict(own))  # the text of a float brings back its bits


@pytest.mark.parametrize("form", [{}, {"index_label": "index"}, {"index_label": "t", "sorted": True}])
def test_a_column_that_numbers_the_rows_is_warned_of(houses: Path, tmp_path: Path, form: dict[str, Any]) -> None:
    frame, path = pd.read_csv(houses), tmp_path / "numbered.csv"
    label = form.get("index_label")
    (frame if form.get("sorted") else frame[::-1]).to_csv(path, index_label=label)
    given = ["--target", "price", "--model", str(tmp_path / "model.json"), *QUICK]
    with pytest.warns(UserWarning, match=f"numbered.csv: column '{label or 'Unnamed: 0'}' seems to number the rows"):
        assert main(["train", str(path), *given]) == 0


@pytest.mark.slow
def test_growth_is_an_option(houses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.json"
    given = ["train", str(houses), "--target", "price", "--model", str(model), *QUICK]
    assert main([*given, "--growth", "oblivious"]) == 0
    nodes = gb.load_model(model).ensemble_.trees[0].nodes
    assert len(set(nodes.feature[nodes.left[:1]]) | set(nodes.feature[nodes.right[:1]])) == 1
    assert main([*given, "--growth", "upwards"]) == 2
    assert "'depthwise', 'leafwise', 'oblivious'" in capsys.readouterr().err


def test_the_same_command_writes_the_same_bytes_on_any_number_of_threads(houses: Path, tmp_path: Path) -> None:
    models = [tmp_path / f"{threads}.json" for threads in ("1", "2")]
    for path in models:
        given = ["--target", "price", "--model", str(path), "--threads", path.stem, "--sampling", "0.5"]
        assert main(["train", str(houses), *given, *QUICK]) == 0
    assert models[0].read_bytes() == models[1].read_bytes()


def test_text_labels_are_classes_and_proba_has_a_column_for_each(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "model.json")
    assert main(["train", str(flowers), "--target", "kind", "--model", model, *QUICK]) == 0
    assert main(["predict", "--model", model, str(flowers), "--proba"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "p(one),p(three),p(two)"
    shares = np.array([[float(value) for value in row.split(",")] for row in rows])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert main(["predict", "--model", model, str(flowers)]) == 0
    labels = capsys.readouterr().out.splitlines()[1:]
    assert labels == [["one", "three", "two"][i] for i in shares.argmax(axis=1)]


@pytest.mark.parametrize(
    ("cell", "row", "seen"), [("unknown", 7, "'unknown'"), (None, 0, "'0,5'")], ids=["word", "commas"]
)
def test_a_column_of_numbers_with_text_in_it_is_not_taken_for_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cell: str | None, row: int, seen: str
) -> None:
    prices = [f"{i}.5" if cell else f"{i},5" for i in range(40)]
    prices[7] = cell or prices[7]
    path = tmp_path / "prices.csv"
    path.write_text("size;price\n" + "".join(f"{i};{price}\n" for i, price in enumerate(prices)))
    assert main(["train", str(path), "--sep", ";", "--target", "price"]) == 2
    advice = "Correct such rows" if cell else "Name the decimal point with --decimal ','"
    assert f"most are numbers, but row {row} holds {seen}. {advice}" in capsys.readouterr().err


NOISY = ["--langevin", "--temperature", "2", "--shrinkage", "0.1", "--random-from", "5", "--posterior-samples", "4"]


@pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")
def test_a_model_with_noise_says_how_sure_it_is(houses: Path, flowers: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "model.json", tmp_path / "out.csv"
    for data, target, columns in ((houses, "price", ["mean"]), (flowers, "kind", None)):
        assert main(["train", str(data), "--target", target, "--model", str(model), *NOISY, *QUICK]) == 0
        loaded: Any = gb.load_model(model)
        assert loaded.langevin == gb.Langevin(temperature=2.0, shrinkage=0.1, random_from=5)
        assert main(["predict", "--model", str(model), str(data), "--uncertainty", "--output", str(out)]) == 0
        header, rows = read_csv(out)
        assert header == [*(columns or [f"p({label})" for label in loaded.classes_]), "total", "data", "knowledge"]
        numbers = np.array(rows, float)
        np.testing.assert_allclose(numbers[:, -3], numbers[:, -2] + numbers[:, -1], rtol=1e-9)
        found = loaded.predict_uncertainty(pd.read_csv(data)[list(loaded.feature_names_in_)])
        assert numbers[:, -1].tobytes() == found.knowledge.tobytes()


@pytest.mark.parametrize("option", [["--temperature", "1"], ["--shrinkage", "0.1"], ["--posterior-samples", "4"]])
def test_options_of_noise_need_noise(
    option: list[str], houses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--target", "price", "--model", str(tmp_path / "m.json"), *option]
    assert main(["train", str(houses), *given, *QUICK]) == 2
    assert f"{option[0]}: is of Langevin boosting; add --langevin." in capsys.readouterr().err
    assert main(["train", str(houses), *given[:4], *QUICK]) == 0
    assert main(["predict", "--model", str(tmp_path / "m.json"), str(houses), "--uncertainty"]) == 2
    assert "langevin: uncertainty is that of draws from a posterior" in capsys.readouterr().err


def test_columns_may_have_a_direction(houses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["train", str(houses), "--target", "price", "--model", str(tmp_path / "m.json")]
    assert main([*given, "--monotonic", "area=1, age=-1", *QUICK]) == 0
    model: Any = gb.load_model(tmp_path / "m.json")
    assert model.monotonic_cst == {"area": 1, "age": -1}
    rows = pd.DataFrame({"area": np.arange(20, 200), "age": 40, "town": "Bath", "weight": 1})
    assert np.diff(model.predict(rows)).min() >= 0.0 < np.ptp(model.predict(rows))
    assert main([*given, "--monotonic", "town=1", *QUICK]) == 2
    assert "monotonic_cst: categories have no order" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*given, "--monotonic", "area", *QUICK])
    assert "invalid list of columns with 1 or -1 value: 'area'" in capsys.readouterr().err


def test_a_loss_may_have_its_parameter(houses: Path, tmp_path: Path) -> None:
    shares = []
    for alpha in ("0.1", "0.9"):
        where = ["--model", str(tmp_path / "model.json"), "--output", str(tmp_path / "out.csv")]
        given = ["--target", "price", "--loss", f"quantile:{alpha}", *where[:2]]
        assert main(["train", str(houses), *given, "--n-estimators", "50", "--quiet"]) == 0
        assert main(["predict", str(houses), *where]) == 0
        predicted = np.array([float(value) for (value,) in read_csv(tmp_path / "out.csv")[1]])
        shares.append(np.mean(pd.read_csv(houses)["price"] <= predicted))
    assert shares[0] < 0.25
    assert shares[1] > 0.75


def test_a_fifth_is_held_out_where_no_model_is_saved(houses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--n-estimators", "10", "--early-stopping-rounds", "5"]
    assert main(["train", str(houses), "--target", "price", *given]) == 0
    shown = capsys.readouterr().out
    assert "192 rows" in shown
    assert "48 held-out rows" in shown


@pytest.mark.parametrize("held_out", ["0.25", "file"])
def test_held_out_scores_stand_beside_those_of_a_baseline(
    held_out: str, flowers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = str(flowers) if held_out == "file" else held_out
    options = ["--target", "kind", "--eval", rows, "--n-estimators", "10", "--early-stopping-rounds", "5"]
    assert main(["train", str(flowers), *options]) == 0
    shown = capsys.readouterr()
    assert ("75 held-out rows", "300 held-out rows")[held_out == "file"] in shown.out
    line = next(line for line in shown.out.splitlines() if "accuracy" in line)
    ours, baseline = (float(word) for word in line.replace("│", " ").split()[1:])
    assert ours > 0.75 > baseline
    assert "10" in shown.err  # progress goes to standard error


@pytest.mark.parametrize("suffix", [".parquet", ".libsvm"])
def test_other_files_give_the_same_model_as_csv(suffix: str, tmp_path: Path, rng: np.random.Generator) -> None:
    x = rng.integers(0, 4, (120, 3)).astype(np.float64)
    y = x[:, 0] - x[:, 1] * x[:, 2] + 0.5
    frame = pd.DataFrame(x, columns=list("abc")).assign(y=y)
    table, other = tmp_path / "rows.csv", tmp_path / f"rows{suffix}"
    frame.to_csv(table, index=False)
    if suffix == ".parquet":
        frame.to_parquet(other)
        target = ["--target", "y"]
    else:
        dump_svmlight_file(x, y, str(other), zero_based=False)
        target = []
    for path, given in ((table, ["--target", "y"]), (other, target)):
        where = ["--model", f"{path}.json"]
        assert main(["train", str(path), "--task", "regression", *given, *where, *QUICK]) == 0
        assert main(["predict", "--model", f"{path}.json", str(path), "--output", f"{path}.out"]) == 0
    assert Path(f"{table}.out").read_text() == Path(f"{other}.out").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "nowhere.csv", "--target", "price", "--model", "m.json"], "nowhere.csv"),
        (["train", "HOUSES", "--target", "prize", "--model", "m.json"], "prize"),
        (["train", "HOUSES", "--target", "price", "--quiet"], "--quiet: nothing would be left of this training"),
        (["train", "HOUSES", "--model", "m.json"], "has area, age, town, weight, price. Add --target."),
        (["train", "HOUSES", "--target", "price", "--model", "no/m.json"], "--model: the folder"),
        (["train", "HOUSES", "--target", "price", "--model", "."], "--model: a file is written, and . is a folder"),
        (["train", "HOUSES", "--target", "price", "--model", "no/"], "--model: a file is written, and no/ is a folder"),
        (["train", "HOUSES", "--target", "price", "--task", "classification"], "y: Unknown label type: continuous"),
        (["train", "HOUSES", "--target", "price", "--seed", "-3"], "--seed: must be an integer of at least 0; got -3."),
        (["train", "HOUSES", "--target", "price", "--loss", "huber:-1"], "needs a positive number; got -1.0.\n"),
        (["predict", "--model", "MODEL", "HOUSES", "--output", "no/p.csv"], "--output: the folder"),
        (["train", "HOUSES", "--target", "price", "--eval", "1.5"], "--eval: a share"),
        (["train", "HOUSES", "--target", "price", "--eval", "gone.csv"], "gone.csv"),
        (["train", "HOUSES", "--target", "price", "--model", "m.json", "--early-stopping-rounds", "5"], "--eval 0.2"),
        (["train", "HOUSES", "--target", "price", "--model", "m.json", "--max-bins", "1"], "max_bins"),
        (["train", "HOUSES", "--target", "price", "--model", "m.json", "--device", "cuda"], "device"),
        (
            ["train", "HOUSES", "--target", "price", "--model", "m.json", "--loss", "huber:wide"],
            "--loss: the parameter",
        ),
        (["train", "HOUSES", "--target", "price", "--model", "m.json", "--loss", "poisson:2"], "poisson has no param"),
        (["train", "HOUSES", "--target", "price", "--model", "m.json", "--loss", "hubert"], "hubert"),
        (["predict", "--model", "HOUSES", "HOUSES"], "houses.csv': line 1, column 1: this is not JSON"),
        (["predict", "--model", "nowhere.json", "HOUSES"], "nowhere.json"),
        (
            ["predict", "--model", "MODEL", "HOUSES", "--output", "p.parquet"],
            "--output: predictions are written as CSV",
        ),
    ],
)
def test_wrong_input_is_one_line_and_status_2(
    arguments: list[str],
    words: str,
    houses: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if "MODEL" in arguments:
        gb.GradientBoostingRegressor(n_estimators=0).fit([[1.0]], [1.0]).save_model("MODEL")
    assert main([str(houses) if word == "HOUSES" else word for word in arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1
    assert "Traceback" not in told


def test_predict_names_the_columns_that_are_missing(
    houses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, narrow = str(tmp_path / "model.json"), tmp_path / "narrow.csv"
    assert main(["train", str(houses), "--target", "price", "--model", model, *QUICK]) == 0
    pd.read_csv(houses).drop(columns=["age", "area"]).to_csv(narrow, index=False)
    assert main(["predict", "--model", model, str(narrow)]) == 2
    assert "lacks 2 of the model's columns: area, age" in capsys.readouterr().err


def test_proba_of_a_regression_is_refused(houses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "model.json")
    assert main(["train", str(houses), "--target", "price", "--model", model, *QUICK]) == 0
    assert main(["predict", "--model", model, str(houses), "--proba"]) == 2
    assert "regression model" in capsys.readouterr().err


def test_no_command_writes_over_a_file_that_it_reads(
    houses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, model = houses.read_bytes(), str(tmp_path / "m.json")
    assert main(["train", str(houses), "--target", "price", "--model", str(houses), *QUICK]) == 2
    assert main(["train", str(houses), "--target", "price", "--model", model, *QUICK]) == 0
    saved = Path(model).read_bytes()
    (tmp_path / "link.csv").symlink_to(houses)
    for output in (str(houses), str(tmp_path / "link.csv"), model):
        assert main(["predict", "--model", model, str(houses), "--output", output]) == 2
        assert "is also read by this command, and would be destroyed" in capsys.readouterr().err
    assert houses.read_bytes() == before
    assert Path(model).read_bytes() == saved


def test_predictions_that_fail_halfway_leave_the_earlier_file(
    houses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, output = str(tmp_path / "m.json"), tmp_path / "p.csv"
    assert main(["train", str(houses), "--target", "price", "--model", model, *QUICK]) == 0
    output.write_text("earlier")

    def full(out: Any, header: Any, lines: Any) -> None:
        out.write("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(predict, "_write", full)
    assert main(["predict", "--model", model, str(houses), "--output", str(output)]) == 2
    assert f"{output}: No space left on device" in capsys.readouterr().err
    assert output.read_text() == "earlier"
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_traceback_raises() -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv"):
        main(["train", "nowhere.csv", "--target", "y", "--model", "m.json", "--traceback"])


def test_interrupted_is_status_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(predict, "run", interrupt)
    assert main(["predict", "--model", "m.json", "rows.csv"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_losses_of_the_help_are_those_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    assert ", ".join(NAMES) in " ".join(capsys.readouterr().out.split())


def test_help_imports_no_loss() -> None:
    code = "import sys; from gpuboost.cli.parser import build_parser; build_parser(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_decides_the_task(name: str) -> None:
    rows = InputTable(x=None, y=np.array([0.5, 2.5]), group=np.array([0, 0]))
    tasks = {"binary": "classification", "multiclass": "classification", "regression": "regression", "ranking": "rank"}
    assert task_of("auto", name, rows) == tasks[get(name, n_classes=3).task]


@pytest.mark.parametrize("command", ["train", "predict", "info", "demo", "bench"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert "--traceback" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["fly"], ["train", "x.csv", "--n-estimators", "many"]])
def test_a_wrong_command_line_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: gpuboost" in capsys.readouterr().err


def test_info_names_the_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    shown = capsys.readouterr().out
    assert gb.__version__ in shown
    assert "numba" in shown
    assert "cpu" in shown


@pytest.mark.slow
def test_demo_trains_compares_and_reloads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "the same bits" in shown
    for line in shown.splitlines():
        if "log loss" in line or "RMSE" in line:
            ours, sklearn, baseline = (float(word) for word in line.replace("│", " ").split()[-4:-1])
            assert ours < baseline
            assert ours < 1.25 * sklearn
