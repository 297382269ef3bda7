"""Fixtures for every test: random numbers of a fixed seed, small data, the folder of real data.

Hypothesis draws the same examples in every run, 15 % of those that a test names, and six at least;
``pytest -m hypothesis --hypothesis-profile=thorough`` draws all of them, ``--hypothesis-profile=explore`` others each
time.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before NumPy: threads of other libraries wait asleep, not busily

import numpy as np
import pytest
from hypothesis import settings
from support.kernels_at_once import leave_all_to_kernels
from support.order import long_ones_first

from gpuboost.backends.cpu.compilation import background
from gpuboost.kernels.disk_cache.folders import note, usable_folder

settings.register_profile("steady", max_examples=15, derandomize=True, deadline=None, print_blob=True)
settings.register_profile("thorough", max_examples=100, derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", max_examples=100, derandomize=False, deadline=None, print_blob=True)
settings.load_profile("steady")


def pytest_sessionstart() -> None:
    """Leave fits and predictions to kernels: NumPy would have the first ones, and the kernels would not be tested."""
    leave_all_to_kernels()
    if usable_folder():
        note(background.PREDICTION)


@pytest.hookimpl(trylast=True)  # once those that are not to run are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put ``tests/cuda`` in the middle, where the second of two workers begins, and long tests before all others.

    Those of ``tests/cuda`` compile no kernels of the CPU, but for two files, which come last. So the workers do not
    begin with the same ones, at the same time.
    """
    folder = Path(__file__).parent / "cuda"
    cuda = [item for item in items if folder in item.path.parents]
    cuda.sort(key=lambda item: item.path.name in {"test_growing.py", "test_lock_step.py"})
    others = [item for item in items if folder not in item.path.parents]
    half = len(items) // 2
    of_worker = getattr(config, "workerinput", {"workercount": 1})  # which pytest-xdist gives to its processes
    items[:] = long_ones_first([*others[:half], *cuda, *others[half:]], of_worker["workercount"])


def pytest_collection_finish() -> None:
    """What was imported lives to the end: the garbage collector need not look at it again and again.

    Nor as often as Python sets it: that took 8 % of the time of compilation.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the tests of the hostile campaign counted."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    counted = {report.nodeid: dict(report.user_properties).get("counts") for report in reports if report.when == "call"}
    lines = [f"{name}: {', '.join(f'{n} {what}' for what, n in of.items())}" for name, of in counted.items() if of]
    if lines:
        terminalreporter.section("counts")
        terminalreporter.write_line("\n".join(sorted(lines)))
    for report in reports:
        for what, names in dict(report.user_properties).get("lists", {}).items():
            terminalreporter.section(f"{len(names)} {what}: {report.nodeid.rpartition('::')[2]}")
            terminalreporter.write_line("\n".join(names))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20_240_501)


@pytest.fixture
def regression_data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """300 x 5, float64, one feature of noise only."""
    x = rng.normal(size=(300, 5))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] * (x[:, 2] > 0) + 0.5 * x[:, 3] + 0.1 * rng.normal(size=300)


@pytest.fixture
def binary_data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """300 x 5 with 5 % missing values, labels 0 and 1."""
    x = rng.normal(size=(300, 5))
    y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * rng.normal(size=300) > 0).astype(np.int64)
    x[rng.random(x.shape) < 0.05] = np.nan
    return x, y


@pytest.fixture
def multiclass_data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """300 x 4, three classes named by text."""
    x = rng.normal(size=(300, 4))
    nearest = np.argmax(x[:, :3] + 0.3 * rng.normal(size=(300, 3)), axis=1)
    return x, np.array(["one", "three", "two"])[nearest]


@pytest.fixture
def data_dir() -> Path:
    """The folder of real data sets; the test is skipped where GPUBOOST_DATA does not name one."""
    given = os.environ.get("GPUBOOST_DATA", "")
    if not given or not Path(given).is_dir():
        pytest.skip("GPUBOOST_DATA does not name a folder of data sets")
    return Path(given)
