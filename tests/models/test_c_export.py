"""``gb.export.to_c``: the file compiled, and its scores compared to the last bit."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpuboost as gb

COMPILER = shutil.which("cc") or shutil.which("gcc")
SETTINGS: dict[str, Any] = {"n_estimators": 12, "max_depth": 4, "n_jobs": 1, "random_state": 0}
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def compiled(model: Any, folder: Path, *, standard: Sequence[str] = ("-std=c99",)) -> Any:
    """(n, d) -> (n, k) scores by the compiled file."""
    source, library = folder / "model.c", folder / "model.so"
    assert gb.export.to_c(model, source, function="scores_of") == source.read_text()
    flags = ["-O2", *standard, "-Wall", "-Werror", "-Wno-unknown-pragmas", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *flags, str(source), "-o", str(library), "-lm"], check=True)
    function = ctypes.CDLL(str(library)).scores_of
    k = model.ensemble_.n_outputs

    def scores(x: np.ndarray) -> np.ndarray:
        x = np.ascontiguousarray(x, np.float64)
        out = np.empty((len(x), k))
        kind = ctypes.POINTER(ctypes.c_double)
        for row, answer in zip(x, out, strict=True):
            function(row.ctypes.data_as(kind), answer.ctypes.data_as(kind))
        return out

    return scores


@needs_compiler
def test_scores_have_the_bits_of_the_model(tmp_path: Path, regression_data: Any, multiclass_data: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = regression_data
    frame = pd.DataFrame(x, columns=["a", "b*/", "c", "d", "é"])
    frame["town"] = pd.Categorical(rng.choice(list("uvwxyz"), len(x)))
    frame.loc[::5, "a"] = np.nan
    models = {
        "numbers": (gb.GradientBoostingRegressor(**SETTINGS).fit(x, y), x),
        "categories": (gb.GradientBoostingRegressor(**SETTINGS).fit(frame, y + (frame["town"] == "u")), frame),
        "chain": (gb.GradientBoostingRegressor(**SETTINGS, langevin=gb.Langevin()).fit(x, y), x),
        "classes": (gb.GradientBoostingClassifier(**SETTINGS).fit(*multiclass_data), multiclass_data[0]),
    }
    for name, (model, rows) in models.items():
        folder = tmp_path / name
        folder.mkdir()
        expected = model.predict(rows) if name != "classes" else model.decision_function(rows)
        answers = compiled(model, folder)(model.columns_.encode(rows))
        np.testing.assert_array_equal(np.squeeze(answers), expected)


@needs_compiler
def test_a_compiler_that_fuses_operations_gives_the_same_bits(tmp_path: Path, regression_data: Any) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(**SETTINGS, langevin=gb.Langevin()).fit(x, y)
    scores = compiled(model, tmp_path, standard=["-std=gnu99", "-march=native", "-ffp-contract=fast"])
    np.testing.assert_array_equal(scores(x)[:, 0], model.predict(x))


def test_the_comment_says_how_to_predict(binary_data: Any) -> None:
    model = gb.GradientBoostingClassifier("exponential", n_estimators=1).fit(*binary_data)
    assert "1 / (1 + exp(-2 * score))" in gb.export.to_c(model)
    x, _ = binary_data
    of_mean_and_spread = gb.GradientBoostingRegressor("gaussian_nll", n_estimators=1).fit(x, np.nan_to_num(x[:, 0]))
    assert "scores: 2 number(s)" in gb.export.to_c(of_mean_and_spread)
    assert "The first one is the prediction, the mean." in gb.export.to_c(of_mean_and_spread)
    for name in ("a b", "int", "left"):
        with pytest.raises(gb.InputError, match=f"function: must be a name of C: .* got '{name}'"):
            gb.export.to_c(model, function=name)
    with pytest.raises(gb.InputError, match="model: a fitted gpuboost estimator"):
        gb.export.to_c(3)
