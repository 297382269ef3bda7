"""``gpuboost train`` and ``predict`` with several targets, one tree for all, and weights and costs of columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.cli import main
from gpuboost.errors import OutsideTheoryWarning

pd = pytest.importorskip("pandas")

QUICK = ["--n-estimators", "3", "--max-depth", "3", "--threads", "1", "--seed", "0"]


@pytest.fixture
def rows(tmp_path: Path, rng: np.random.Generator) -> Path:
    """150 rows: three columns, two numbers and two labels to learn, a text."""
    x = rng.normal(size=(150, 3)).round(3)
    numbers = np.column_stack([x[:, 0] * x[:, 1], x[:, 1] - x[:, 2]]).round(3)
    lines = [
        ",".join([*map(str, features), *map(str, pair), *(str(int(value > 0.0)) for value in pair), "word"])
        for features, pair in zip(x.tolist(), numbers.tolist(), strict=True)
    ]
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,u,v,s,t,word\n" + "\n".join(lines) + "\n")
    return path


def features_of(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)[list("abc")]


def train(path: Path, model: Path, *options: str) -> int:
    return main(["train", str(path), "--model", str(model), *QUICK, *options])


def test_several_numbers_are_learnt_together(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, model, out = tmp_path / "u.csv", tmp_path / "model.json", tmp_path / "out.csv"
    lines = [line.split(",")[:5] for line in rows.read_text().splitlines()]
    text.write_text("\n".join(map(",".join, lines)))
    given = ("--targets", "u,v", "--multi-output", "one_tree", "--sketch", "random_projection:1", "--eval", "0.2")
    assert train(text, model, *given) == 0
    shown = capsys.readouterr().out
    assert "RMSE" in shown
    assert "baseline" in shown
    found = gb.load_model(model)
    assert (found.multi_output, found.sketch) == ("one_tree", gb.RandomProjection(1))
    assert main(["predict", str(text), "--model", str(model), "--output", str(out)]) == 0
    assert out.read_text().splitlines()[0] == "prediction(0),prediction(1)"
    np.testing.assert_array_equal(np.loadtxt(out, delimiter=",", skiprows=1), found.predict(features_of(rows)))


def test_several_labels_are_learnt_together(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, model = tmp_path / "s.csv", tmp_path / "model.json"
    lines = [line.split(",") for line in rows.read_text().splitlines()]
    text.write_text("\n".join(",".join([*line[:3], *line[5:7]]) for line in lines))
    assert train(text, model, "--targets", "t,s", "--eval", "0.2") == 0
    words = capsys.readouterr().out.split()
    assert {"log", "accuracy", "AUC"} <= set(words)
    auc = words.index("AUC")  # | AUC | gpuboost | baseline |
    gpuboost, baseline = (float(word) for word in words[auc + 1 : auc + 6] if word[0].isdigit())
    assert gpuboost > baseline == 0.5
    found = gb.load_model(model)
    assert isinstance(found, gb.GradientBoostingClassifier)
    assert main(["predict", str(text), "--model", str(model), "--proba"]) == 0
    header, *shares = capsys.readouterr().out.splitlines()
    assert header == "p(0),p(1)"
    expected = found.predict_proba(features_of(rows))
    np.testing.assert_array_equal(np.array([line.split(",") for line in shares], float), expected)


def test_uncertainty_of_each_target(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, model = tmp_path / "u.csv", tmp_path / "model.json"
    text.write_text("\n".join(",".join(line.split(",")[:5]) for line in rows.read_text().splitlines()))
    chain = ("--langevin", "--random-from", "2", "--posterior-samples", "2", "--shrinkage", "1", "--n-estimators", "4")
    with pytest.warns(OutsideTheoryWarning):
        assert train(text, model, "--targets", "u,v", "--quiet", *chain) == 0
    with pytest.warns(OutsideTheoryWarning):
        assert main(["predict", str(text), "--model", str(model), "--uncertainty"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "mean(0),mean(1),total(0),total(1),data(0),data(1),knowledge(0),knowledge(1)"
    with pytest.warns(OutsideTheoryWarning):
        found = gb.load_model(model).predict_uncertainty(features_of(rows))
    np.testing.assert_array_equal(np.array([line.split(",")[-1] for line in lines], float), found.knowledge[:, 1])


def test_columns_have_weights_and_costs(rows: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    given = ("--target", "u", "--learners", "0.5", "--feature-weights", "a=2,b=0,v=0,s=0,t=0,word=0", "--quiet")
    assert train(rows, model, *given) == 0
    found = gb.load_model(model)
    assert found.feature_weights["a"] == 2.0
    used = {int(f) for tree in found.ensemble_.trees for f in tree.nodes.feature if f >= 0}
    assert used <= {0, 2}  # those of a weight above 0
    given = ("--target", "u", "--quiet", "--feature-costs", "s=1e9,t=1e9,v=1e9", "--split-cost", "0.001")
    assert train(rows, model, *given, "--cost-tradeoff", "2") == 0
    found = gb.load_model(model)
    assert found.feature_costs == gb.FeatureCosts({"s": 1e9, "t": 1e9, "v": 1e9}, 0.001, 2.0)
    used = {int(f) for tree in found.ensemble_.trees for f in tree.nodes.feature if f >= 0}
    assert used <= {0, 1, 2}
    assert used
    assert train(rows, model, "--target", "u", "--quiet", "--feature-costs", "1e9") == 0
    assert all((tree.nodes.feature < 0).all() for tree in gb.load_model(model).ensemble_.trees)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "u", "--targets", "u,v"], "--targets: names every column to learn; leave --target out"),
        (["--targets", "u,word"], "--targets: column 'word' of"),
        (["--targets", "word,u"], "--targets: the first column of"),
        (["--targets", "u,w"], "has no column 'w'"),
        (["--targets", "u,u"], "has no column 'u' beside"),
        (["--targets", "u,v", "--class-weight", "balanced", "--task", "classification"], "--class-weight: weights"),
        (["--targets", "u,v", "--task", "classification"], "y: of several columns each says with 0 or 1"),
        (["--target", "u", "--sketch", "top:5"], "--sketch: must be top_outputs:K"),
        (["--target", "u", "--sketch", "top_outputs"], "--sketch: must be top_outputs:K"),
        (["--target", "u", "--sketch", "top_outputs:0"], "sketch: "),
        (["--targets", "u,v", "--multi-output", "two_trees"], "multi_output: "),
        (["--target", "s", "--group", "t", "--multi-output", "one_tree"], "--multi-output: a ranking has one output"),
        (["--target", "u", "--feature-weights", "d=1", "--learners", "0.5"], "feature_weights: X has no column 'd'"),
        (["--target", "u", "--feature-weights", "a=-1", "--learners", "0.5"], "feature_weights: must be"),
        (["--target", "u", "--feature-costs", "a=-1"], "feature_costs: feature['a'] must be"),
        (["--target", "u", "--feature-costs", "a=1", "--device", "cuda"], "device: trees with feature costs are grown"),
        (["--target", "u", "--cost-tradeoff", "2"], "--cost-tradeoff: is a factor of costs"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_line(
    options: list[str], words: str, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(rows, tmp_path / "model.json", *options) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not (tmp_path / "model.json").exists()


def test_numbers_of_columns_are_checked_by_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "rows.csv", "--target", "u", "--feature-weights", "a"])
    assert "invalid list of columns with numbers value: 'a'" in capsys.readouterr().err
