"""Large trees that all threads grow in one call: the bytes of one thread, at three hand-overs a tree."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.examples import THOROUGH

import gpuboost as gb
from gpuboost.backends import devices
from gpuboost.backends.cpu.compilation import background
from gpuboost.backends.cpu.compilation.background import Background
from gpuboost.backends.cpu.trees import large_trees
from gpuboost.backends.cpu.trees.histograms import PACKED_ROWS
from gpuboost.backends.cpu.trees.partition import EVERY_ROW
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.kernels.disk_cache import folders
from gpuboost.kernels.growth import large_trees as kernel
from gpuboost.kernels.growth.team import PAIRS
from gpuboost.training import job
from gpuboost.types import Limits

Rows = tuple[NDArray[np.float32], NDArray[np.float64]]
KINDS: dict[str, dict[str, Any]] = {
    "depth-wise": {},
    "deep": {"max_depth": 30, "max_leaves": 300, "min_child_weight": 5.0},
    "leaf-wise": {"growth": "leafwise", "max_leaves": 70, "max_depth": None},
    "categories": {"categorical_features": [2], "growth": "leafwise", "max_leaves": 12, "max_depth": 4},
    "sampled": {"sampling": gb.MVS(0.97), "learners": 0.6},
    "stumps of a draw": {"max_depth": 1, "sampling": gb.UniformSampling(0.97)},
    "no splits": {"min_split_gain": 1e12},
    "interactions": {"interaction_cst": [[0, 1, 2], [2, 3], [4, 5, 6]], "max_leaves": 300, "max_depth": 9},
    "interactions, leaf-wise": {"interaction_cst": [[0, 1, 2], [3, 4, 5]], "growth": "leafwise", "max_leaves": 40},
    "features by node": {"learners": gb.RandomByNode(3), "max_leaves": 300, "max_depth": 9},
    "features by level": {"learners": gb.RandomByLevel(3)},
    "oblivious": {"growth": "oblivious", "max_leaves": 300, "max_depth": 9},
    "oblivious, categories": {"growth": "oblivious", "categorical_features": [2], "sampling": gb.MVS(0.97)},
    "monotone": {"monotonic_cst": [1, 0, 0, -1, 0, 1, 0], "max_leaves": 300, "max_depth": 9},
    "regularised, leaf-wise": {"growth": "leafwise", "max_leaves": 30, "reg_alpha": 3.0, "max_delta_step": 0.5},
    "monotone, interactions": {"monotonic_cst": [1, 0, 0, -1, 0, 1, 0], "interaction_cst": [[0, 1, 2], [2, 3, 4]]},
    "monotone, categories": {"monotonic_cst": [1, 0, 0, -1, 0, 1, 0], "categorical_features": [2]},
}
OF_OTHER_KERNELS = ("categories", "oblivious", "regularised", "monotone")


def rows(n: int, seed: int = 5) -> Rows:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 7)).astype(np.float32)
    x[:, 2] = random.integers(0, 11, n)
    x[::5, 3] = np.nan
    return x, x[:, 0] * x[:, 1] + x[:, 2] % 3 + random.normal(size=n)


PLAIN, OBLIVIOUS, BOUNDED = Limits(8), Limits(8, growth="oblivious"), Limits(8, reg_alpha=1.0)
MANY, FEW = rows(PACKED_ROWS + 5_000), rows(700)


@pytest.fixture(autouse=True)
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three processors, and a kernel that is compiled."""
    monkeypatch.setattr(devices, "processors", lambda: 3)
    monkeypatch.setattr(job, "processors", lambda: 3)
    monkeypatch.setattr(Background, "request", lambda *_: True)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tree counts as large."""
    monkeypatch.setattr(large_trees, "LEAST_ROWS", 1)
    monkeypatch.setattr(large_trees, "WORK_PER_THREAD", 1)


def model_bytes(folder: Path, data: Rows, n_jobs: int, **settings: Any) -> bytes:
    file = folder / f"{n_jobs}-{threading.get_ident()}.json"
    weight = 1.0 + np.arange(len(data[1])) % 3 if settings.get("max_depth") == 30 else None
    model = gb.GradientBoostingRegressor(n_estimators=2, n_jobs=n_jobs, device="cpu", random_state=1, **settings)
    model.fit(*data, sample_weight=weight).save_model(file)
    return file.read_bytes()


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """First arguments of the calls of a function, from now on."""
    calls: list[Any] = []
    called: Callable[..., Any] = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given: calls.append(given[0]) or called(*given))
    return calls


def marks_of(kind: str) -> Any:
    """The kernels of each kind that is not everyday take some 16 seconds to compile."""
    return THOROUGH if kind.endswith(", categories") else pytest.mark.slow if kind.startswith(OF_OTHER_KERNELS) else ()


EACH = [pytest.param(kind, marks=marks_of(kind)) for kind in KINDS]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("kind", EACH)
def test_bytes_are_those_of_one_thread(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = counted(monkeypatch, kernel, "grow")
    together = model_bytes(tmp_path, MANY, 3, **KINDS[kind])
    assert kernel.LEAD in roles
    assert together == model_bytes(tmp_path, MANY, 1, **KINDS[kind])
    monkeypatch.undo()
    assert len(kernel.grow.signatures) <= 6  # oblivious, bounded or neither, with categories or without


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", EACH)
def test_so_they_are_if_every_level_is_a_call(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_trees, "MOST_WORK", 1)
    monkeypatch.setattr(large_trees, "FEATURES_PER_GROUP", 2)
    assert model_bytes(tmp_path, FEW, 3, **KINDS[kind]) == model_bytes(tmp_path, FEW, 1, **KINDS[kind])
    assert len(kernel.grow.signatures) <= 6


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_leaves_that_lost_their_histograms_are_split_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as few histograms as splits at once need, both children of some leaves are summed: pairs of one node."""
    lone, slots, call = [0], set[int](), large_trees.LargeTree._call

    def spy(tree: Any, leaf_of_row: NDArray[np.int32]) -> int:
        why = call(tree, leaf_of_row)
        pairs = tree._shares.left[: tree._words[PAIRS]]
        lone[0] += int(((pairs[:, 1] < 0) & (pairs[:, 0] > 0)).sum())
        slots.add(len(tree._histograms.of))
        return why

    monkeypatch.setattr(large_trees.LargeTree, "_call", spy)
    monkeypatch.setattr(large_trees, "_most_slots", lambda limits, _: limits.max_leaves // 4)
    monkeypatch.setattr(large_trees, "MOST_WORK", 1)
    settings: dict[str, Any] = {"growth": "leafwise", "max_leaves": 128, "max_depth": None}
    assert model_bytes(tmp_path, FEW, 3, **settings) == model_bytes(tmp_path, FEW, 1, **settings)
    assert lone[0] > 10
    assert slots == {32}


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", ["leaf-wise", "interactions, leaf-wise"])
def test_only_searches_that_see_no_path_do_without_histograms(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, most_slots = [], large_trees._most_slots
    monkeypatch.setattr(large_trees, "_most_slots", lambda *of: found.append(most_slots(*of)) or found[-1])
    model = gb.GradientBoostingRegressor(n_estimators=1, n_jobs=3, device="cpu", random_state=1, **KINDS[kind])
    model.fit(*FEW)
    assert found == [EVERY_ROW if "interactions" in kind else 32]


@pytest.mark.slow
@pytest.mark.parametrize("growth", ["depthwise", "oblivious"])
def test_a_round_takes_three_hand_overs(growth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = counted(monkeypatch, ThreadPool, "run")
    model_bytes(tmp_path, MANY, 3, growth=growth)
    of_two = len(runs)
    model = gb.GradientBoostingRegressor(n_estimators=5, n_jobs=3, device="cpu", random_state=1, growth=growth)
    model.fit(*MANY)
    assert 5 - 2 <= len(runs) - 2 * of_two <= 3 * (5 - 2)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_fits_of_several_python_threads_do_not_meet(tmp_path: Path) -> None:
    kinds = [KINDS["depth-wise"], KINDS["leaf-wise"]]
    expected = [model_bytes(tmp_path, FEW, 1, **settings) for settings in kinds]
    with ThreadPoolExecutor(4) as threads:
        fits = [threads.submit(model_bytes, tmp_path, FEW, 3, **settings) for settings in kinds * 4]
        assert [fit.result() for fit in fits] == expected * 4


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_gradients_that_are_not_finite_are_refused() -> None:
    x, y = FEW
    loss = gb.losses.custom(lambda y, f: 0.0, lambda y, f: (f - y) * 1e300, None, check_derivatives=False)
    with pytest.raises(gb.InputError, match="gradients must be finite"):
        gb.GradientBoostingRegressor(n_estimators=2, n_jobs=3, device="cpu", loss=loss).fit(x, y)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_a_fit(tmp_path: Path) -> None:
    def interrupt(record: object) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        gb.GradientBoostingRegressor(n_estimators=500, n_jobs=3, device="cpu", callbacks=[interrupt]).fit(*FEW)
    assert model_bytes(tmp_path, FEW, 3) == model_bytes(tmp_path, FEW, 1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_from_outside_ends_a_fit_within_two_rounds() -> None:
    """Not the time is held, but the rounds between the signal and the end: one that runs, and the next at most."""
    begun, rounds, sent_after = threading.Event(), [0], [0]

    def count(record: object) -> None:
        rounds[0] += 1
        if rounds[0] == 3:
            begun.set()

    def interrupt() -> None:
        begun.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        sent_after[0] = rounds[0]

    sender = threading.Thread(target=interrupt)
    sender.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            gb.GradientBoostingRegressor(n_estimators=2_000, n_jobs=3, device="cpu", callbacks=[count]).fit(*MANY)
    finally:
        signal.signal(signal.SIGINT, before)
    sender.join()
    assert 3 <= rounds[0] <= sent_after[0] + 2


FORKS = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import gpuboost as gb
from gpuboost.backends import devices
from gpuboost.backends.cpu.trees import large_trees
from gpuboost.backends.cpu.compilation.background import Background
from gpuboost.backends.cpu.compilation.first_fit import FIRST_FITS
from gpuboost.kernels.disk_cache import folders
from gpuboost.kernels.growth import large_trees as kernel
from gpuboost.training import job

FIRST_FITS.end()  # NumPy would have the first one where nothing is compiled
devices.processors = job.processors = lambda: 3
Background.request = lambda *_: True
large_trees.LEAST_ROWS = large_trees.WORK_PER_THREAD = 1
x = np.random.default_rng(0).normal(size=(700, 7)).astype(np.float32)
roles, grow = [], kernel.grow
kernel.grow = lambda *given: roles.append(given[0]) or grow(*given)

def fit():
    model = gb.GradientBoostingRegressor(n_estimators=3, n_jobs=3, device="cpu", random_state=1)
    return model.fit(x, x[:, 0] * x[:, 1]).predict(x)

expected, statuses = fit(), []
assert kernel.LEAD in roles
for _ in range(2):
    child = os.fork()
    if child == 0:
        roles.clear()
        os._exit(0 if np.array_equal(fit(), expected) and kernel.LEAD in roles else 1)
    statuses.append(os.waitpid(child, 0)[1])
sys.exit(0 if statuses == [0, 0] and np.array_equal(fit(), expected) else 1)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_is_forked_after_a_fit_fits_large_trees() -> None:
    """The threads of its parent do not live in it. In a process of its own: later Pythons warn of such forks."""
    done = subprocess.run([sys.executable, "-c", FORKS], timeout=300, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Process:
    """In place of the one that compiles."""

    stdin = None

    def __init__(self) -> None:
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def wait(self) -> None:
        self.code = 0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    """The processes, each of which notes its kernel when it has ended; ``request`` as it is."""
    made: list[Process] = []
    monkeypatch.undo()
    monkeypatch.setattr(background, "start_process", lambda *_, background: made.append(Process()) or made[-1])
    monkeypatch.setattr(background, "is_noted", lambda _: any(process.code == 0 for process in made))
    return made


def test_the_second_tree_starts_the_compilation(started: list[Process]) -> None:
    asked = Background()
    assert not asked.request("numeric")
    assert started == []
    assert not asked.request("numeric")
    assert not asked.request("numeric")
    assert len(started) == 1
    started[0].code = 0
    assert asked.request("numeric")
    assert asked.request("numeric")


@pytest.mark.parametrize("there", [True, False])
def test_kernels_that_another_fit_has_compiled_are_found_at_the_first_call(there: bool, started: list[Process]) -> None:
    asked, looked = Background(), list[bool]()
    assert asked.request("levels-numeric", lambda: looked.append(there) or there) is there
    assert asked.request("levels-numeric", lambda: looked.append(there) or there) is there
    assert looked == [there]
    assert len(started) == (not there)


def test_one_that_fails_is_not_started_again(started: list[Process]) -> None:
    asked = Background()
    for _ in range(3):
        asked.request("numeric")
    started[0].code = 1
    assert not any(asked.request("numeric") for _ in range(4))
    assert len(started) == 1


def test_warm_up_waits_for_it(started: list[Process]) -> None:
    asked = Background()
    asked.request("numeric")
    asked.wait()
    assert asked.request("numeric")
    assert len(started) == 1


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("eager")
def test_the_variants_compiled_in_the_background_are_those_of_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []
    monkeypatch.setattr(background, "note", noted.append)
    kinds = [large_trees.kernel_kind(some, limits) for some in (False, True) for limits in (PLAIN, OBLIVIOUS, BOUNDED)]
    for kind in kinds:
        background.compile_kernel(kind)
    assert noted == [f"team-{kind}" for kind in kinds]
    assert len(set(noted)) == 6
    for settings in ({}, {"categorical_features": [2]}):
        for growth in ("depthwise", "leafwise", "oblivious"):
            model_bytes(tmp_path, FEW, 3, growth=growth, **settings)
        model_bytes(tmp_path, FEW, 3, max_delta_step=0.5, **settings)
    assert len(kernel.grow.signatures) == 6


@pytest.mark.slow
def test_the_process_leaves_a_note(tmp_path: Path) -> None:
    """With the kernels of this machine, if they are there, but not their note."""
    here, kinds = Path(folders.usable_folder()), "team-numeric*"
    shutil.copytree(here, tmp_path / folders.folder_name(), ignore=shutil.ignore_patterns(kinds, "*.lock"))
    program = (
        "from gpuboost.backends.cpu.compilation.background import *; was = is_noted('team-numeric'); "
        "compile_kernel('numeric'); print(was, is_noted('team-numeric'))"
    )
    environment = {"GPUBOOST_CACHE_DIR": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False True"
