"""``gb.warm_up``: later processes compile nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gpuboost as gb
from gpuboost.cli import main
from gpuboost.kernels.disk_cache import folders

COUNT_COMPILATIONS = """
import numba.core.event as event
seen = []

class Listener(event.Listener):
    def on_start(self, e):
        seen.append(str(e.data["dispatcher"]))
    def on_end(self, e):
        pass

event.register("numba:compile", Listener())
import numpy as np
import gpuboost as gb
rng = np.random.default_rng(1)
X = rng.normal(size=(500, 6))
for y in (X[:, 0], X[:, 0] > 0):
    kind = gb.GradientBoostingClassifier if y.dtype == bool else gb.GradientBoostingRegressor
    kind(n_estimators=5).fit(X, y).predict(X)
print(len(seen), seen)
"""


def test_unknown_kinds_are_refused(capsys):
    with pytest.raises(gb.InputError, match="kinds: unknown: 'nothing'"):
        gb.warm_up(["regression", "nothing"])
    assert main(["warmup", "nothing"]) == 2
    assert "unknown: 'nothing'" in capsys.readouterr().err


def test_a_kind_is_fitted():
    assert list(gb.warm_up("regression", n_jobs=1)) == ["regression"]


@pytest.mark.slow
def test_every_kind_is_fitted():
    assert set(gb.warm_up(n_jobs=1)) >= {"regression", "classification", "ranking", "categories", "sparse"}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    "kept", ["growth_*", pytest.param("nothing", marks=pytest.mark.thorough)]
)  # the kernels of growth take two thirds of the time
def test_a_later_process_compiles_nothing(kept, tmp_path):
    """Nor if some kernels were there before."""
    here, there = Path(folders.usable_folder()), tmp_path / folders.folder_name()
    for group in here.glob(kept):
        shutil.copytree(group, there / group.name, ignore=shutil.ignore_patterns("*.lock", "*.tmp.*"))
    environment = os.environ | {"GPUBOOST_CACHE_DIR": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def run(*command):
        done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert "regression" in run("-c", "from gpuboost.cli import main; main(['warmup', 'regression', 'classification'])")
    assert run("-c", COUNT_COMPILATIONS).startswith("0 ")
