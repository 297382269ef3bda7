"""``gpuboost bench gpu-speed``: its arithmetic, its tables without a GPU, small runs on an emulated one."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from emulator import emulated_gpu
from support.cuda_compiler import ptx

from gpuboost.backends.cuda.device.gpus import use
from gpuboost.backends.cuda.device.runtime import source
from gpuboost.benchmarks.gpu import budget as gpu_model
from gpuboost.benchmarks.gpu import counted as gpu_counted
from gpuboost.benchmarks.gpu import host as gpu_host
from gpuboost.benchmarks.gpu import kernels as gpu_kernels
from gpuboost.benchmarks.gpu import lock_step as gpu_lock_step
from gpuboost.benchmarks.gpu import micro as gpu_micro
from gpuboost.benchmarks.gpu import peers as gpu_peers
from gpuboost.benchmarks.gpu import threshold as gpu_threshold
from gpuboost.benchmarks.gpu import workers as gpu_workers
from gpuboost.benchmarks.harness.experiments import Options, drawn
from gpuboost.benchmarks.suites import gpu_speed
from gpuboost.cli import main

QUIET = Options(small=False, peers=(), threads=1, repeats=1, tell=lambda line: None)


def no_gpu():
    calls = SimpleNamespace(driverGetVersion=lambda: 13_000, runtimeGetVersion=lambda: 13_000)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=calls, is_available=lambda: False))


def test_the_budget_is_the_designs():
    assert gpu_model.bytes_per_row(28, 8) == pytest.approx(353, abs=0.5)
    assert gpu_model.bytes_per_row(28, 6) == pytest.approx(271, abs=0.5)
    assert gpu_model.bytes_per_row(13, 8) < gpu_model.bytes_per_row(17, 8)


def test_without_a_gpu_every_part_that_needs_one_says_why(tmp_path, capsys):
    parts = [name for name in gpu_speed.EXPERIMENT.parts if not name.startswith(("counted", "host"))]
    named = [word for name in parts for word in ("--case", name)]
    with use(no_gpu()):
        assert main(["bench", "gpu-speed", *named, "--json", str(tmp_path / "g.json")]) == 0
    assert capsys.readouterr().out.count("skipped") == len(parts)
    kept = json.loads((tmp_path / "g.json").read_text())["parts"]
    assert list(kept) == parts
    assert all("the driver lists no GPU" in part["numbers"]["skipped"] for part in kept.values())


def test_the_hosts_time_is_measured_without_a_gpu(monkeypatch):
    seconds = gpu_host._seconds
    monkeypatch.setattr(
        gpu_host, "_seconds", lambda recipe, n, count: 0.0 * seconds(recipe, 3, count) + 0.5 + 1e-4 * n * count
    )
    finding = gpu_host.host(replace(QUIET, small=True))
    assert set(finding.numbers["us"]) == {
        *gpu_host.RECIPES,
        *(f"{name}, 16 trainings in lock-step" for name in gpu_host.IN_LOCK_STEP),
    }
    assert all(micros == pytest.approx(100.0) for micros in finding.numbers["us"].values()), "without what a fit costs"


def test_time_per_tree_is_a_difference(monkeypatch):
    seconds = {"a tree": lambda trees: 1e-3 * trees, "the first": lambda trees: 1e-2 / trees}  # no clock is read
    monkeypatch.setattr(gpu_speed, "_seconds", lambda fit, trees: seconds[fit(trees)](trees))
    library = gpu_speed._measured(lambda x, y: lambda trees: "a tree", None, None, 30, 1)
    assert set(library) == {"ms", "first", "few", "many", "trees"}
    assert library["ms"] == pytest.approx(1.0)

    def broken(x, y):
        raise RuntimeError("no CUDA in this build")

    assert gpu_speed._measured(broken, None, None, 30, 1) == {"error": "RuntimeError: no CUDA in this build"}
    busy = gpu_speed._measured(lambda x, y: lambda trees: "the first", None, None, 30, 1)
    assert "the machine was busy" in busy["error"]


def test_a_library_that_hangs_or_dies_costs_no_other_its_figures():
    assert gpu_peers.apart(dict, (("ms", 2.0),), seconds=60.0) == {"ms": 2.0}
    assert gpu_peers.apart(time.sleep, 600.0, seconds=0.5) == {"error": "not done after 0 s"}
    assert gpu_peers.apart(os._exit, 3, seconds=60.0) == {"error": "its process ended with status 3"}


@pytest.mark.slow
def test_another_library_is_timed_in_a_process_of_its_own(monkeypatch):
    """On the machine's own terms: without a GPU it says why it cannot."""
    monkeypatch.setattr(gpu_micro, "HBM_BYTES", 1 << 16)
    shape = gpu_speed.Shape("tiny", 400, 4, 2, gpu_speed.plain, trees=14)
    asked = Options(small=False, peers=("xgboost",), threads=1, repeats=1, tell=lambda line: None)
    with emulated_gpu():
        rows = gpu_speed.timed(shape, asked).rows
    assert [row[0] for row in rows] == ["gpuboost", "xgboost"]
    assert rows[1][-1]  # the library's own words, or that it is built without CUDA


def test_a_small_training_is_timed(monkeypatch):
    monkeypatch.setattr(gpu_micro, "HBM_BYTES", 1 << 16)
    monkeypatch.setattr(gpu_speed, "_seconds", lambda fit, trees: 1e-3 * len(fit(trees).ensemble_.trees))
    shape = gpu_speed.Shape("tiny", 400, 4, 2, gpu_speed.plain, trees=14, target=1e-9)
    with emulated_gpu():
        found = gpu_speed.timed(shape, QUIET)
        assert drawn(found).row_count == 1
        assert found.rows[0][:3] == ("gpuboost", "1.000", "1.0")
        assert "missed" in found.notes[-1]
        assert found.numbers["bytes"] == 400 * gpu_model.bytes_per_row(4, 2)
    with emulated_gpu(capacity=1 << 20):
        assert "GiB are needed" in gpu_speed.timed(gpu_speed.SHAPES["airline"], QUIET).rows[0][-1]


def test_fits_that_compile_are_not_in_the_threshold(monkeypatch):
    """Of each shape: on the CPU two, after which nothing is compiled in the background, and one on the GPU."""
    compiling = {"cpu": 2, "cuda": 1}
    fits = []

    def seconds(x, y, trees, device, threads):
        fits.append((len(x), device))
        return 9.0 if fits.count(fits[-1]) <= compiling[device] else 1.0

    waited = []
    monkeypatch.setattr(gpu_threshold, "_seconds", seconds)
    monkeypatch.setattr(gpu_threshold.BACKGROUND, "wait", lambda: waited.append(fits[-1]))
    with emulated_gpu():
        found = gpu_threshold.threshold(Options(small=True, peers=(), threads=1, repeats=1, tell=lambda line: None))
    assert [row[2:] for row in found.rows] == 2 * [("1.00", "1.00", "9.00")]
    assert waited == [(300, "cpu"), (300, "cpu"), (1_000, "cpu"), (1_000, "cpu")]


@pytest.mark.slow
def test_streams_are_timed_against_one_tree_at_a_time():
    small = Options(small=True, peers=(), threads=1, repeats=1, tell=lambda line: None)
    with emulated_gpu():
        found = gpu_workers.workers(small)
    assert [row[1] for row in found.rows] == ["none", "1", "2", "4"]
    assert found.rows[0][3] == "1.00"
    runs = found.numbers["runs"]
    assert all(one["rate"] > 0 for one in runs)
    assert runs[0]["bytes"] < runs[1]["bytes"] < runs[2]["bytes"] < runs[3]["bytes"]
    with emulated_gpu():
        load = gpu_workers.LOADS[0]
        x = np.zeros((2_000, 28), np.float32)
        found = gpu_workers.measured(load, x, x[:, 0], 3, 8, small, 0)
        assert [one["note"] for one in found] == ["does not fit"] * 4


@pytest.mark.slow
@pytest.mark.long
def test_trainings_in_lock_step_are_timed_and_counted():
    small = Options(small=True, peers=(), threads=1, repeats=1, tell=lambda line: None)
    with emulated_gpu():
        found = gpu_lock_step.lock_step(small)
    assert [row[:2] for row in found.rows] == [("1", "1"), ("3", "1"), ("1", "3"), ("1", "1")]
    assert [row[2] for row in found.rows] == [*3 * ["levels"], "a cluster"]
    assert all(run["ms"] > 0 for run in found.numbers["runs"])
    counted = gpu_lock_step.counted_lock_step(small)
    nodes = [run["nodes"] for run in counted.numbers["runs"]]
    assert 0 < nodes[0] <= nodes[1] <= nodes[0] + 1  # next_round, in graphs of several rounds
    assert nodes[2] < 1.5 * nodes[0]
    assert nodes[3] < 0.3 * nodes[0]  # trees by a cluster


@pytest.mark.slow
def test_whole_fits_are_timed_on_both_devices():
    small = Options(small=True, peers=(), threads=1, repeats=1, tell=lambda line: None)
    with emulated_gpu():
        found = gpu_threshold.threshold(small)
    runs = found.numbers["runs"]
    assert [run["values"] for run in runs] == [8_400, 28_000]
    assert all(min(run["cpu"], run["cuda"], run["first"]) > 0 for run in runs)
    sooner = [run["values"] for run in runs if run["cuda"] <= run["cpu"]]
    assert found.numbers["faster"] == (sooner[0] if sooner else None)


@pytest.mark.slow
def test_what_a_device_can_do_is_measured():
    with emulated_gpu():
        gpu, _ = gpu_model.gpu_or_reason()
        found = gpu_micro.measured(gpu, "emulated", 1e-6, QUIET.tell)
        assert all(value > 0 for what, value in found.numbers.items() if what != "gpu")
        bench, x = gpu_micro.Bench(gpu, 1e-6), np.arange(4 * 50, dtype=np.uint64)
        out = gpu.zeros(1, np.uint64)
        rows = np.array([0, 3, 49], np.uint32)
        bench.kernel("gather")((2,), (512,), (gpu.upload(x), gpu.upload(rows), np.int64(3), out))
        assert gpu.download(out)[0] == x.reshape(50, 4)[rows].sum()
        for pattern in range(3):
            sums = gpu.zeros(2, np.uint32)
            arguments = np.int32(5), np.int32(pattern), sums
            bench.kernel("adds", gpu_micro.PLANES)((3,), (512,), arguments, shared_mem=gpu_micro.PLANES)
            assert gpu.download(sums).tolist() == [3 * 512 * 5, 2 * 3 * 512 * 5]


def test_kernels_are_timed_one_by_one(rng):
    x = rng.normal(size=(300, 4))
    with emulated_gpu() as cupy:
        cupy.cuda.Event = lambda **_: SimpleNamespace(record=lambda stream: None, synchronize=lambda: None)
        cupy.cuda.get_elapsed_time = lambda begin, end: 0.002
        gpu, _ = gpu_model.gpu_or_reason()
        each = gpu_kernels.microseconds(gpu, x, (x[:, 0] > 0).astype(np.float64), depth=3, trees=4)
    assert each["route"] == (2.0, pytest.approx(4.0))  # the last level goes with the values of the leaves
    assert each["route_and_add"] == (1.0, pytest.approx(2.0))
    assert each["root_histogram"] == (1.0, pytest.approx(2.0))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    "count",
    [  # tests/cuda/budgets count the first two, too
        pytest.param(gpu_counted.counted, marks=pytest.mark.thorough),
        pytest.param(gpu_counted.counted_sample, marks=pytest.mark.thorough),
        gpu_counted.counted_noise,
    ],
)
def test_a_tree_is_within_its_budget(count, monkeypatch):
    monkeypatch.setattr(gpu_counted, "FEW", 2_000)  # as in tests/cuda/budgets/test_sampling.py
    monkeypatch.setattr(gpu_counted, "MANY", 6_000)
    monkeypatch.setattr(gpu_counted, "ROUNDS", 3)
    with emulated_gpu():
        pass  # skips where nothing can be compiled
    found = count(QUIET)
    assert sum(found.numbers["bytes per row and tree"].values()) <= found.numbers["budget"]
    assert 0 < found.numbers["graphs per tree"] <= 1  # below 1 where one graph has several trees
    assert found.numbers["waits per tree"] == 0


def test_what_is_measured_is_what_the_device_compiles():
    """The adds are native ones that return nothing, and reads are not optimised away."""
    made = ptx(source("common/common.cuh") + gpu_micro.TEXT)
    adds = made.split("adds(")[1].split(".entry")[0]
    assert len(re.findall(r"\b(?:atom|red)\.shared\.add\.u32", adds)) >= 2
    assert "ld.global" in made.split("read_all(")[1].split(".entry")[0]
