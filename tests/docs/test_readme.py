"""README.md: its example prints what it says, and its figures are those of the recorded benchmarks."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "benchmarks" / "results"
XEON = RESULTS / "cpu-intel-xeon-processor-2-cores"
CPU_ROWS = {
    "1,000,000 x 28, two classes, 100 trees of depth 6": "higgs",
    "the same rows, 50 trees of 255 leaves": "leafwise",
    "400,000 x 90, regression, 100 trees of depth 6": "year",
    "50,000 x 20,000 sparse, 50 trees of depth 6": "text",
    "32,561 x 123 sparse, 200 trees of depth 6": "one-hot",
    "ranking: 345,000 x 136, 100 trees of depth 6": "letor",
    "prediction: 1,000,000 x 28, 100 trees of depth 6": "predict",
}
GPU_ROWS = {
    "11,000,000 x 28, depth 8": "higgs-11m",
    "1,000,000 x 28, depth 6": "higgs-1m",
    "10,000 x 20, depth 6": "small",
    "400,000 x 2,000, depth 8": "wide",
}


def recorded(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def cells(label: str) -> list[str]:
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip(" *") for cell in line.strip("|").split("|")][1:]


def shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 1.0 else f"{value:.1f}"


def fit_or_predict(run: Any) -> float:
    phases = run["phases"]
    if run["case"] == "predict":
        return float(phases["predict"]["seconds"])
    return float(phases["bin"]["seconds"] + phases["train"]["seconds"])


def test_the_example_prints_what_stands_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = re.findall(r"^```(?:python|text)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)[:2]
    assert len(code.splitlines()) <= 14
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "page"})
    assert printed.getvalue() == output


@pytest.mark.parametrize("label", CPU_ROWS)
def test_seconds_on_a_cpu_are_recorded(label: str) -> None:
    runs = [run for suite in ("cpu_speed", "ranking") for run in recorded(XEON / f"{suite}.json")["runs"]]
    of_case = [run for run in runs if run["case"] == CPU_ROWS[label]]
    expected = []
    for peer in ("gpuboost", "xgboost", "lightgbm", "lightgbm-quantised", "catboost", "sklearn"):
        seconds = [fit_or_predict(run) for run in of_case if run["peer"] == peer]
        expected.append(shown(median(seconds) if seconds else None))
    assert cells(label) == expected
    dates = {run["date"] for run in of_case}
    assert dates == {"2026-11-21" if label.startswith("ranking") else "2026-11-23"}
    versions = {run["peer"]: run["version"] for run in of_case}
    for peer, name in (("xgboost", "XGBoost"), ("lightgbm", "LightGBM"), ("catboost", "CatBoost")):
        assert f"{name} {versions[peer]}" in TEXT


def test_the_time_of_the_first_fit_is_recorded() -> None:
    runs = [run for run in recorded(XEON / "cpu_speed.json")["runs"] if run["case"] == "start-cold"]
    assert f"takes {median(map(fit_or_predict, runs)):.1f} s on this machine" in " ".join(TEXT.split())


def test_losses_of_sampled_fits_are_recorded() -> None:
    rows = recorded(XEON / "sampling.json")["parts"]["long"]["rows"]
    change = {row[0]: float(row[-1].rstrip("%")) for row in rows}
    assert round(change["gpuboost: uniform"], 1) == round(change["gpuboost: mvs"], 1) == -0.2
    others = [change[name] for name in change if name.startswith(("xgboost", "lightgbm")) and "all rows" not in name]
    assert (round(min(others)), round(max(others))) == (2, 4)
    assert round(change["catboost: mvs"], 1) == 0.3
    assert "0.2 % *lower*" in TEXT
    assert "it is 2 to 4 % higher than that of their own fits to all rows, with CatBoost's 0.3 % higher" in " ".join(
        TEXT.split()
    )


@pytest.mark.parametrize("label", GPU_ROWS)
def test_milliseconds_on_gpus_are_recorded(label: str) -> None:
    values = []
    for folder, date, names in (
        ("cpu-intel-xeon-processor-16-cores-h200", "2026-11-26", ("gpuboost", "xgboost")),
        ("cpu-intel-xeon-processor-16-cores", "2026-11-23", ("gpuboost", "xgboost", "catboost", "py-boost")),
    ):
        part = recorded(RESULTS / folder / "gpu_speed.json")["parts"].get(GPU_ROWS[label], {"rows": [], "date": date})
        of_library = {row[0]: row[1] for row in part["rows"]}
        values += [of_library.get(name) for name in names]
        assert part["date"] == date
    assert cells(label) == [shown(float(value)) if value else "" for value in values]


def test_other_times_on_a_gpu_are_recorded() -> None:
    parts = recorded(RESULTS / "cpu-intel-xeon-processor-16-cores-h200" / "gpu_speed.json")["parts"]
    many = {row[0]: float(row[2]) for row in parts["prediction"]["rows"] if row[1] == "11,000,000"}
    amazon = {row[0]: float(row[2]) for row in parts["categories"]["rows"]}
    words = (
        f"11,000,000 rows in {many['gpuboost']:.0f} ms (XGBoost {many['xgboost']:.0f}), and a whole fit of amazon takes"
    )
    assert f"{words} {amazon['gpuboost']:.2f} s (CatBoost {amazon['catboost']:.1f})" in " ".join(TEXT.split())


def test_places_by_held_out_loss_are_recorded() -> None:
    places: list[int] = []
    cases: dict[str, dict[str, float]] = {}
    for run in recorded(XEON / "quality.json")["runs"]:
        score = next(name for name in ("logloss", "rmse", "deviance") if name in run["scores"])
        cases.setdefault(run["case"], {})[run["peer"]] = run["scores"][score]
    assert len(cases) == 13
    assert max(cases.pop("agaricus").values()) < 0.001
    for losses in cases.values():
        places.append(sorted(losses, key=losses.__getitem__).index("gpuboost") + 1)
    prose = " ".join(TEXT.split())
    assert f"best loss of the five libraries on {places.count(1)} and the second best on {places.count(2)};" in prose
    assert places.count(1) + places.count(2) == len(places)
    runs = recorded(RESULTS / "cpu-amd-epyc-2-cores" / "categories.json")["runs"]
    amazon = {run["peer"]: run["scores"]["logloss"] for run in runs if run["case"] == "amazon"}
    assert f"log loss there is {amazon['gpuboost']:.3f} and CatBoost's {amazon['catboost']:.3f}" in prose


def picture() -> Path:
    (path,) = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", TEXT)
    return ROOT / path


def test_the_picture_is_small() -> None:
    assert picture().stat().st_size < 150_000


@pytest.mark.slow
@pytest.mark.thorough
def test_the_picture_can_be_drawn_again(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    copy = tmp_path / picture().with_suffix(".py").name
    copy.write_bytes(picture().with_suffix(".py").read_bytes())
    runpy.run_path(str(copy), run_name="__main__")
    assert 0.5 < (tmp_path / picture().name).stat().st_size / picture().stat().st_size < 2.0
