"""The suite of several outputs, and the stand-in for CuPy that runs Py-Boost in it where there is no GPU."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuboost.benchmarks.harness import cupy_on_cpu, experiments
from gpuboost.benchmarks.harness.experiments import Options
from gpuboost.benchmarks.suites import outputs
from gpuboost.cli import main

cp = cupy_on_cpu.module()
compiled = pytest.mark.skipif(shutil.which("g++") is None, reason="kernels are compiled by g++")


@pytest.mark.slow
def test_a_small_run_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "ROUNDS", 5)
    path = tmp_path / "found.json"
    cases = [part for case in ("labels", "digits", "growing") for part in ("--case", case)]
    assert main(["bench", "outputs", *cases, "--size", "small", "--threads", "1", "--json", str(path)]) == 0
    parts = json.loads(path.read_text())["parts"]
    assert [row[0] for row in parts["labels"]["rows"]] == list(parts["labels"]["numbers"])
    assert len(parts["labels"]["rows"]) == 5
    assert len(parts["digits"]["rows"]) == 2
    assert list(parts["growing"]["numbers"]) == ["5", "10"]
    losses = [one["loss"] for part in ("labels", "digits") for one in parts[part]["numbers"].values()]
    assert all(0.0 < loss < np.log(10.0) for loss in losses)


def test_losses_by_hand() -> None:
    x, y = np.zeros((2, 1)), np.array([[0.0, 1.0], [2.0, 3.0]])
    rows = outputs.Rows("numbers", x, y, x, y)
    assert outputs.judged(rows, _Model(y + 1.0)) == 1.0
    rows = outputs.Rows("labels", x, y, x, np.array([[0, 1], [1, 1]]))
    assert outputs.judged(rows, _Model(np.full((2, 2), 0.25))) == pytest.approx(
        -(np.log(0.75) + 3.0 * np.log(0.25)) / 4.0
    )


def test_models_that_draw_have_several_seeds_and_failures_their_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(rows: outputs.Rows, threads: int, seeds: Sequence[int]) -> dict[str, Any]:
        return {**outputs._of_losses([0.1 + seed for seed in seeds]), "seconds": 2.0}

    asked = []

    def apart(work: Any, sketch: Any, rows: outputs.Rows, seeds: Sequence[int], seconds: float) -> dict[str, Any]:
        asked.append((sketch, len(seeds)))
        if sketch == "topk":
            return {"error": "ImportError: none"}
        return {**outputs._of_losses([0.2, 0.4][: len(seeds)]), "seconds": None, "on_a_gpu": False}

    monkeypatch.setattr(experiments, "installed", lambda name: True)
    monkeypatch.setattr(outputs, "_timed", lambda fit, *arguments: run(*arguments))
    monkeypatch.setattr(outputs, "apart", apart)
    rows = outputs.labels(small=True)
    found = outputs.compared(Options(True, ("py-boost",), 1, 2, lambda _: None), "labels", rows)
    assert asked == [(None, 1), ("topk", 1), ("rand", 2), ("proj", 2)]
    assert found.rows[2:5] == (
        ("gpuboost: one tree, TopOutputs(k=5)", "0.1000", "2.0"),
        ("gpuboost: one tree, RandomOutputs(k=5)", "0.6000 ± 0.7071", "2.0"),
        ("gpuboost: one tree, RandomProjection(k=5)", "0.6000 ± 0.7071", "2.0"),
    )
    assert found.rows[5:] == (
        ("Py-Boost: one tree", "0.2000", ""),
        ("Py-Boost: one tree, topk of 5", "", ""),
        ("Py-Boost: one tree, rand of 5", "0.3000 ± 0.1414", ""),
        ("Py-Boost: one tree, proj of 5", "0.3000 ± 0.1414", ""),
    )
    assert found.notes[1:] == (
        "±: standard deviation over 2 seeds",
        "Py-Boost: losses only, computed on the CPU by a stand-in for CuPy",
        "Py-Boost: one tree, topk of 5: ImportError: none",
    )


class _Model:
    """Predictions that are known."""

    def __init__(self, answer: np.ndarray) -> None:
        self.answer = answer

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.answer

    predict_proba = predict


@compiled
def test_inputs_are_broadcast_and_letters_stand_for_types() -> None:
    kernel = cp.ElementwiseKernel(
        "T x, float32 scale, raw S table, uint64 length",
        "T sum, bool late",
        "late = i >= 4; sum = x; if (x < 0) { return; } sum = x * scale + table[i % length];",
    )
    x = cp.asarray(np.array([[1.0], [-2.0], [3.0]]))
    scale = cp.asarray(np.array([10.0, 100.0], np.float32))
    table = cp.asarray(np.arange(20, dtype=np.int32))[::5]
    total, late = kernel(x, scale, table, 4)
    assert type(total) is cp.ndarray
    assert (total.dtype, late.dtype) == (np.float64, np.bool_)
    assert total.get().tolist() == [[10.0, 105.0], [-2.0, -2.0], [30.0, 305.0]]
    assert late.get().ravel().tolist() == [False] * 4 + [True] * 2


@compiled
def test_raw_outputs_are_added_to_in_place() -> None:
    kernel = cp.ElementwiseKernel(
        "uint64 row, raw int32 leaf", "raw float32 sums", "atomicAdd(&sums[leaf[row]], 1.5f);"
    )
    sums = cp.zeros(3, dtype=cp.float32)
    kernel(cp.arange(4, dtype=cp.uint64), cp.asarray(np.array([0, 2, 2, 2], np.int32)), sums)
    assert sums.get().tolist() == [1.5, 0.0, 4.5]
    with pytest.raises(TypeError, match="sums must be a contiguous array of float32"):
        kernel(cp.arange(4, dtype=cp.uint64), cp.zeros(4, dtype=cp.int32), cp.zeros(3))


@compiled
def test_threads_of_a_raw_kernel() -> None:
    text = """
    extern "C" __global__ void twice(const float4* at, const int n, double* out) {
        int k = blockIdx.x * blockDim.x + threadIdx.x;
        if (k < n) out[k] = 2.0 * at[k].w;
    }"""
    out = cp.zeros(3)
    cp.RawKernel(text, "twice")((2,), (2,), (cp.arange(12, dtype=cp.float32), 3, out))
    assert out.get().tolist() == [6.0, 14.0, 22.0]


@compiled
def test_what_the_compiler_refuses() -> None:
    with pytest.raises(RuntimeError, match=r"g\+\+: [\s\S]*nothing"):
        cp.ElementwiseKernel("float32 x", "float32 y", "y = nothing;")(cp.ones(2, dtype=cp.float32))


def test_indices_begin_anew_beyond_an_axis_as_in_cupy() -> None:
    x = cp.asarray(np.arange(6).reshape(3, 2))
    assert x[:, cp.arange(3)].get().tolist() == [[0, 1, 0], [2, 3, 2], [4, 5, 4]]
    assert x[..., cp.asarray(np.array([-1, 5]))].get().tolist() == [[1, 1], [3, 3], [5, 5]]
    assert x[cp.asarray(np.array([True, False, True])), 1].get().tolist() == [1, 5]
    x.scatter_add(cp.asarray(np.array([4, 1])), 10)
    assert x.get().tolist() == [[0, 1], [22, 23], [4, 5]]
