"""Trees whose rows are listed where their gradients lay: the same models, in 8 bytes a row less."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builders import random_case, structure_bytes

import gpuboost as gb
from gpuboost.backends import devices
from gpuboost.backends.cpu import backend as cpu_backend
from gpuboost.backends.cpu import growth as cpu_growth
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.compilation.background import Background
from gpuboost.backends.cpu.leaves import wide
from gpuboost.backends.cpu.trees import large_trees, partition
from gpuboost.kernels.histograms import histogram
from gpuboost.langevin import Langevin
from gpuboost.learners import Linear, LinearTree
from gpuboost.losses import Logistic, Softmax
from gpuboost.multi_output import OneTree
from gpuboost.recipe import Recipe
from gpuboost.training import job
from gpuboost.types import Candidates, Limits, Target

CASES: dict[str, dict[str, Any]] = {
    "depth-wise": {"max_depth": 3},
    "leaf-wise": {"growth": "leafwise", "max_leaves": 9, "max_depth": None},
    "oblivious": {"growth": "oblivious", "max_depth": 3},
    "stumps": {"max_depth": 1},
    "bounded": {"max_depth": 3, "reg_alpha": 1.0, "max_delta_step": 0.5},
    "path smoothing": {"max_depth": 3, "path_smooth": 5.0},
    "weights": {"max_depth": 3},
    "constant curvature": {"max_depth": 3, "step": "gradient"},
    "line search": {"max_depth": 3, "step": gb.LineSearchStep(per="leaf")},
    "linear leaves": {"base_learner": LinearTree(max_depth=2)},
    "sampled": {"max_depth": 3, "sampling": gb.MVS(0.5)},
    "control variate": {"max_depth": 3, "sampling": gb.ImportanceSampling(0.5, variance_control="previous_leaf")},
    "noise": {"max_depth": 3, "langevin": gb.Langevin()},
    "one tree": {"max_depth": 3, "multi_output": "one_tree"},
}
LARGE = ("depth-wise", "leaf-wise")  # the kernels of others take long to compile


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Few rows count as many. The outputs of the trees whose gradients were lent."""
    monkeypatch.setattr(cpu_backend, "PACKED_ROWS", 1)
    monkeypatch.setattr(cpu_growth, "PACKED_ROWS", 1)
    outputs: list[int] = []

    def lend(target: Target, output: int, workspace: Any) -> None:
        outputs.extend([output] if target.gradients.disposable else [])
        partition.lend_gradients(target, output, workspace)

    monkeypatch.setattr(cpu_growth, "lend_gradients", lend)
    return outputs


def model_bytes(folder: Path, n_jobs: int, settings: dict[str, Any], *, weights: bool) -> bytes:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(900, 4)), rng.integers(0, 3, 900)
    weight = rng.gamma(1.0, size=900) if weights else None
    model = gb.GradientBoostingClassifier(n_estimators=3, device="cpu", n_jobs=n_jobs, random_state=0, **settings)
    model.fit(x, y, sample_weight=weight).save_model(folder / "model")
    return (folder / "model").read_bytes()


@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
@pytest.mark.parametrize("case", CASES)
def test_models_have_the_same_bytes(case: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    given = tmp_path, 1, CASES[case]
    kept = model_bytes(*given, weights=case == "weights")
    lent = request.getfixturevalue("lent")
    assert model_bytes(*given, weights=case == "weights") == kept
    plain = list(CASES).index(case) < list(CASES).index("constant curvature")
    assert lent == ([] if not plain or case == "stumps" else [0, 1, 2] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE)
def test_so_they_have_if_threads_grow_them_together(
    case: str, tmp_path: Path, lent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = model_bytes(tmp_path, 1, CASES[case], weights=False)
    monkeypatch.setattr(devices, "processors", lambda: 3)
    monkeypatch.setattr(job, "processors", lambda: 3)
    monkeypatch.setattr(Background, "request", lambda *_: True)
    monkeypatch.setattr(large_trees, "LEAST_ROWS", 1)
    monkeypatch.setattr(large_trees, "WORK_PER_THREAD", 1)
    lent.clear()
    assert model_bytes(tmp_path, 3, CASES[case], weights=False) == alone
    assert lent == [0, 1, 2] * 3


@pytest.mark.usefixtures("lent")
def test_the_leaf_of_a_row_lies_where_its_gradient_lay() -> None:
    n = histogram.TILE + 1  # fewer leaves have an array of their own
    case, limits = random_case(3, n, 4, target="3"), Limits(8, 3)
    candidates, found = Candidates(np.arange(4, dtype=np.int32)), []
    for disposable in (False, True):
        made = Cpu().gradients(Softmax(3), np.zeros((3, n)), case.data, None)
        assert made.disposable
        gradients = made if disposable else replace(made, disposable=False)
        for output in range(3):
            structure = Cpu().grow(case.data, Target(0, None, gradients), output, candidates, limits)
            assert structure.leaf_of_row is not None
            lies_there = [np.shares_memory(structure.leaf_of_row, g) for g in gradients.g]
            assert lies_there == [disposable and c == output for c in range(3)]
            found.append(structure_bytes(replace(structure, leaf_of_row=wide(structure.leaf_of_row))))
    assert found[:3] == found[3:]


def test_a_ranking_of_many_rows(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rng = np.random.default_rng(0)
    x, y, group = rng.normal(size=(900, 4)), rng.integers(0, 3, 900), [30] * 30
    found = []
    for fixtures in ((), ("lent",)):
        lent = [request.getfixturevalue(name) for name in fixtures]
        model = gb.GradientBoostingRanker(n_estimators=3, max_depth=3, device="cpu", n_jobs=1, random_state=0)
        model.fit(x, y, group=group).save_model(tmp_path / "model")
        found.append((tmp_path / "model").read_bytes())
    assert lent == [[0, 0, 0]]
    assert found[0] == found[1]


def test_few_rows_and_a_curvature_of_all_rounds_are_kept() -> None:
    case = random_case(3, 500, 4, target="binary")
    assert not Cpu().gradients(Logistic(), np.zeros((1, 500)), case.data, None).disposable
    case = random_case(3, cpu_backend.PACKED_ROWS + 1, 1, target="binary")
    scores = np.zeros((1, case.data.n_rows))
    assert Cpu().gradients(Logistic(), scores, case.data, None).disposable
    assert not Cpu().gradients(Logistic(), scores, case.data, 1.0).disposable


@pytest.mark.parametrize(
    "pieces",
    [
        {"sampling": gb.MVS(0.5)},
        {"langevin": Langevin(allow_unproven=True)},
        {"multi_output": OneTree()},
        {"execution": gb.Asynchronous(2)},
        {"base_learner": Linear()},
    ],
)
def test_pieces_that_read_gradients_later_keep_them(pieces: dict[str, Any]) -> None:
    assert Recipe(Softmax(3), **pieces).rereads_gradients
    assert not Recipe(Softmax(3)).rereads_gradients
