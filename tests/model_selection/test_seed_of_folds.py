"""Folds that are fitted in step take their seed from ``random_state``, whatever kind it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb


@pytest.mark.parametrize("generator", [np.random.RandomState, np.random.default_rng])
def test_generators_of_equal_state_give_equal_folds(regression_data: Any, generator: Any) -> None:
    """The fits draw rows, so that another seed is another model."""

    def folds() -> list[str]:
        model = gb.GradientBoostingRegressor(
            n_estimators=4, max_depth=2, sampling=0.5, n_jobs=1, random_state=generator(3)
        )
        found = gb.cv(model, *regression_data, folds=2, early_stopping_rounds=2, random_state=0)
        return [str(gb.to_dict(fold_model)["trees"]) for fold_model in found.models]

    assert folds() == folds()
