"""The progress of a fit, as a user reads it on a terminal of 80 columns."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from rich.console import Console

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 2))
Y = X[:, 0] + rng.normal(size=300) > 0


def shown(*, terminal: bool, rounds: int, **parameters: object) -> tuple[str, gb.GradientBoostingClassifier]:
    """The last picture of the bar, or all lines, and the model."""
    written = io.StringIO()
    bar = gb.callbacks.ProgressBar(1000, Console(file=written, width=80, force_terminal=terminal, color_system=None))
    model = gb.GradientBoostingClassifier(
        n_estimators=rounds, callbacks=[bar], eval_metric=["logloss", "auc", "accuracy"], n_jobs=1, **parameters
    )
    model.fit(X[:150], Y[:150], eval_set={"young people": (X[:150], Y[:150]), "old people": (X[150:], Y[150:])})
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", written.getvalue())
    return text[max(text.rfind("boosting"), text.rfind("stopped")) :], model


def test_all_metrics_and_the_time_left_fit_on_a_narrow_terminal() -> None:
    text, model = shown(terminal=True, rounds=3)
    assert "…" not in text
    assert "3/3" in text
    assert re.search(r"rounds/s  0:00:00 left", text)
    for name, metrics in model.evals_result_.items():
        line = " ".join(f"{metric} {values[-1]:.5g}" for metric, values in metrics.items())
        assert f"{name} {line}" in text


@pytest.mark.parametrize("terminal", [True, False])
def test_an_early_stop_is_shown(terminal: bool) -> None:
    text, model = shown(terminal=terminal, rounds=1000, early_stopping_rounds=5, learning_rate=0.5)
    rounds = model.fit_report_.rounds
    assert rounds < 1000
    assert re.match(rf"stopped .*after {rounds} of up to 1000 rounds", text) or text.startswith(
        f"stopped after {rounds} of up to 1000 rounds"
    )
    assert " left" not in text
    assert f"{model.evals_result_['old people']['auc'][-1]:.5g}" in text
