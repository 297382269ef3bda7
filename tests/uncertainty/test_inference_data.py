"""``to_inference_data``: Langevin chains read by the real ArviZ."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import gpuboost as gb

SETTINGS: dict[str, Any] = {"n_estimators": 80, "max_depth": 2, "learning_rate": 0.1, "random_state": 0, "n_jobs": 1}


def model(**params: Any) -> Any:
    return gb.GradientBoostingRegressor(**SETTINGS, langevin=gb.Langevin(shrinkage=0.5), **params)


@pytest.fixture(scope="module")
def data() -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    return x, x[:, 0] + 0.5 * rng.normal(size=120)


@pytest.mark.filterwarnings("ignore")  # of ArviZ about its next version
def test_arviz_diagnoses_the_chains_that_we_diagnose(data: Any) -> None:
    arviz = pytest.importorskip("arviz")
    x, y = data
    chains = gb.chains(model(), x, y, n_chains=3)
    found = chains.to_inference_data(x[:4], burn_in=0.25)
    score = found.posterior["score"]
    assert score.dims == ("chain", "draw", "output", "row")
    assert score.draw.to_numpy().tolist() == list(range(21, 81))
    np.testing.assert_array_equal(score.to_numpy(), chains.traces(x[:4])[:, 20:])
    ours = chains.diagnose(x[:4], burn_in=0.25)
    theirs = arviz.rhat(found, method="split")["score"].to_numpy()
    np.testing.assert_allclose(ours.r_hat, theirs, rtol=1e-6)
    assert len(arviz.summary(found, kind="diagnostics")) == 4


@pytest.mark.filterwarnings("ignore")
def test_one_model_is_one_chain_which_begins_where_it_began(data: Any) -> None:
    pytest.importorskip("arviz")
    x, y = data
    first = gb.GradientBoostingRegressor(**SETTINGS | {"n_estimators": 5}).fit(x, y)
    score = model().fit(x, y, init_model=first).to_inference_data(x[:2], burn_in=0.5).posterior["score"]
    assert score.shape == (1, 40, 1, 2)
    assert score.draw.to_numpy()[[0, -1]].tolist() == [46, 85]


def test_what_is_no_chain_is_refused(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data
    with pytest.raises(gb.RecipeError, match="trained without noise"):
        gb.GradientBoostingRegressor(**SETTINGS | {"n_estimators": 2}).fit(x, y).to_inference_data(x)
    fitted = model().fit(x, y)
    with pytest.raises(gb.InputError, match="burn_in: must be a share of the rounds"):
        fitted.to_inference_data(x, burn_in=1.0)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(gb.InputError, match=r"needs ArviZ; .* Install it: pip install 'arviz<1'"):
        fitted.to_inference_data(x)
