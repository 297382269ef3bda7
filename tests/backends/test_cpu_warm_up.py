"""The process that helps to compile: when there is one, what it is told, and that nothing depends on it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from support.examples import THOROUGH

from gpuboost.backends.cpu.compilation import warm_up as cpu_first_fit
from gpuboost.backends.cpu.compilation.warm_up import Helper
from gpuboost.backends.cpu.compilation.warm_up_tree import is_usual
from gpuboost.backends.cpu.trees.histograms import PACKED_ROWS
from gpuboost.backends.cpu.trees.layout import SortedColumns
from gpuboost.kernels.disk_cache import folders
from gpuboost.kernels.gradients import pointwise
from gpuboost.types import Candidates, Limits

ECHO = "import os, pathlib, sys; pathlib.Path(sys.argv[2] + '-told').write_bytes(os.read(0, 1) or b'nothing')"
"""Writes what it is told into the folder it runs in: a file by the name of what is wanted."""


class Steps:
    """In place of the dummy tree."""

    taken: ClassVar[list[str]] = []
    failing = False

    def __init__(self, **_: bool) -> None: ...

    def search(self) -> None:
        self.taken.append("search")
        if self.failing:
            raise KeyboardInterrupt

    def settle(self) -> None:
        self.taken.append("settle")

    def pack(self) -> None:
        self.taken.append("pack")

    def sum(self) -> None:
        self.taken.append("sum")

    def split(self) -> None:
        self.taken.append("split")

    def levels(self) -> None:
        self.taken.append("levels")


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Helper]:
    """One whose process only writes down what it is told; nothing is on disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cpu_first_fit, "_RUN", ECHO)
    monkeypatch.setattr(cpu_first_fit, "DummyTree", Steps)
    monkeypatch.setattr(folders.numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Steps, "taken", [])
    made = Helper()
    yield made
    made.wait()


def told(kind: str = "small") -> str:
    return Path(f"{kind}-told").read_text()


def started(helper: Helper) -> bool:
    return helper._process is not None


def test_it_goes_on_once_this_process_has_compiled_its_share(helper: Helper) -> None:
    helper.start(1_000, 2, categorical=False)
    helper.join(usual=True)
    helper.join(usual=True)  # the next tree
    helper.wait()
    assert Steps.taken == ["search", "settle"]
    assert told() == "+"
    assert not started(helper)


def test_for_a_tree_of_another_kind_it_stops(helper: Helper) -> None:
    helper.start(PACKED_ROWS + 1, 2, categorical=True)
    helper.join(usual=False)
    helper.wait()
    assert Steps.taken == ["settle"]
    assert told("large") == "-"


def test_an_interrupt_stops_it(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Steps, "failing", True)
    helper.start(1_000, 2, categorical=False)
    with pytest.raises(KeyboardInterrupt):
        helper.join(usual=True)
    helper.wait()
    assert told() == "-"


def test_where_no_tree_is_met_it_is_stopped_by_the_first_wait(helper: Helper) -> None:
    helper.start(1_000, 2, categorical=False)
    helper.wait()
    assert told() == "-"


def test_one_at_a_time_and_once_for_each_kind_of_data(helper: Helper) -> None:
    helper.start(1_000, 2, categorical=False)
    first = helper._process
    helper.start(1_000, 2, categorical=True)  # while the first is busy
    assert helper._process is first
    helper.wait()
    helper.start(2_000, 2, categorical=False)
    assert not started(helper)
    helper.start(1_000, 2, categorical=True)
    assert started(helper)


def test_one_that_came_to_an_end_early_is_replaced_and_not_met(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_first_fit, "_RUN", "raise SystemExit(1)")
    for kind in (False, True):
        helper.start(1_000, 2, categorical=kind)
        process = helper._process
        assert process is not None
        process.wait(60)
        helper.join(usual=True)
    assert Steps.taken == []


def test_a_hung_one_is_killed(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_first_fit, "_RUN", "import time; time.sleep(600)")
    monkeypatch.setattr(cpu_first_fit, "TIMEOUT", 0.1)
    helper.start(1_000, 2, categorical=False)
    process = helper._process
    assert process is not None
    helper.wait()
    assert process.returncode != 0


def test_one_thread_means_one_process(helper: Helper) -> None:
    helper.start(1_000, 1, categorical=False)
    assert not started(helper)


@pytest.mark.skipif(not hasattr(os, "nice"), reason="Windows has priorities of another kind")
@pytest.mark.usefixtures("helper")
@pytest.mark.parametrize("background", [False, True])
def test_what_compiles_in_the_background_has_a_lower_priority(background: bool) -> None:
    program = "import os, pathlib; pathlib.Path('priority').write_text(str(os.nice(0)))"
    process = cpu_first_fit.start_process("kernels", program, background=background)
    assert process is not None
    with process:
        assert process.wait(60) == 0
    assert (int(Path("priority").read_text()) > os.nice(0)) == background


def test_there_is_none_where_the_kernels_are_on_disk(helper: Helper) -> None:
    folders.note("small-numeric")
    helper.start(1_000, 2, categorical=False)
    assert not started(helper)
    helper.start(1_000, 2, categorical=True)
    assert started(helper)


@pytest.mark.parametrize("executable", ["", None, "/usr/bin/blender", "/opt/uwsgi"])
def test_there_is_none_where_python_is_not_the_program(
    helper: Helper, monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    helper.start(1_000, 2, categorical=False)
    assert not started(helper)


def test_there_is_none_in_a_frozen_program(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    helper.start(1_000, 2, categorical=False)
    assert not started(helper)


def test_there_is_none_where_nothing_can_be_kept(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_first_fit, "usable_folder", lambda: "")
    helper.start(1_000, 2, categorical=False)
    assert not started(helper)


def test_there_is_none_where_processes_are_not_allowed(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no processes here")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    helper.start(1_000, 2, categorical=False)
    assert not started(helper)
    helper.join(usual=True)
    helper.wait()
    assert Steps.taken == []


@pytest.mark.parametrize(("word", "last"), [(b"+", ["levels"]), (b"-", []), (b"", [])])
def test_it_does_its_share_and_notes_it_whatever_it_is_told(
    helper: Helper, monkeypatch: pytest.MonkeyPatch, word: bytes, last: list[str]
) -> None:
    monkeypatch.setattr(os, "read", lambda *_: word)
    cpu_first_fit.compile_share("small", "numeric")
    assert Steps.taken == ["pack", "sum", "split", *last]
    helper.start(1_000, 2, categorical=False)
    assert not started(helper)


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_collected_again_once_numba_is_loaded(monkeypatch: pytest.MonkeyPatch, collecting: bool) -> None:
    seen: list[bool] = []

    def kernel(*_: object) -> None:
        seen.append(gc.isenabled())
        raise KeyboardInterrupt

    monkeypatch.setattr(pointwise, "add_leaves", kernel)
    cpu_first_fit.load_numba.cache_clear()
    was = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        with pytest.raises(KeyboardInterrupt):
            cpu_first_fit.load_numba()
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if was else gc.disable)()
    assert seen == [False]


def test_whether_a_tree_is_of_the_usual_kind() -> None:
    every = Candidates(np.arange(3, dtype=np.int32))
    columns = SortedColumns(*(np.empty(0, np.int64),) * 4)
    usual = Limits(max_leaves=8)
    assert is_usual(usual, every, None, 1_000)
    assert not is_usual(Limits(max_leaves=8, min_samples_leaf=5), every, None, 1_000)
    assert is_usual(Limits(max_leaves=8, min_samples_leaf=5), every, None, PACKED_ROWS + 1)
    assert not is_usual(Limits(max_leaves=8, growth="oblivious"), every, None, PACKED_ROWS + 1)
    assert not is_usual(Limits(max_leaves=8, directions=(1, 0, 0)), every, None, 1_000)
    assert not is_usual(usual, every, columns, 1_000)
    assert not is_usual(usual, Candidates(every.features, np.zeros((3, 8), np.uint32)), None, 1_000)


FIT = """
import sys
import numpy as np
import gpuboost as gb
from gpuboost.backends.cpu.compilation.first_fit import FIRST_FITS
from gpuboost.backends.cpu.compilation.warm_up import HELPER
from gpuboost.kernels.common import fixed_point
from gpuboost.kernels.growth import finished, partition, small_trees as levels
from gpuboost.kernels.histograms import histogram
from gpuboost.kernels.splits import split

FIRST_FITS.end()  # or NumPy fits
n, categorical = int(sys.argv[1]), sys.argv[2] == "categorical"
random = np.random.default_rng(0)
x = random.integers(0, 50, (n, 5)).astype(np.float32)
y = x[:, 0] + random.normal(size=n)
some = [1] if categorical else None
gb.GradientBoostingRegressor(n_estimators=2, n_jobs=2, device="cpu", categorical_features=some).fit(x, y)
HELPER.wait()
kernels = (
    levels.grow, split.search, split.pick, histogram.build, fixed_point.scale, fixed_point.extents, fixed_point.pack,
    fixed_point.scale_and_pack, finished.finish,
    partition.choose, partition.count_above, partition.rows_in, partition.split_alone, partition.add_children,
    partition.sort_stretches, partition.copy_stretches, partition.settle_rows, partition.to_settle,
    partition.bound_last_level, finished.take_apart,
)
for kernel in kernels:
    print(kernel.py_func.__name__, sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""

OWN = {"search", "pick", "settle_rows", "to_settle", "bound_last_level", "take_apart", "finish"}
"""What the first process compiles itself."""


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        pytest.param(500, "categorical", marks=THOROUGH),
        pytest.param(80_000, "numeric", marks=THOROUGH),
        pytest.param(500, "numeric", marks=THOROUGH),
        pytest.param(80_000, "categorical", marks=THOROUGH),
    ],
)
def test_the_other_process_compiles_what_a_fit_asks_for(tmp_path: Path, rows: int, kind: str) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": ""}
    done = subprocess.run(
        [sys.executable, "-c", FIT, str(rows), kind], env=environment, capture_output=True, text=True, check=True
    )
    found = {name: (int(hits), int(misses)) for name, hits, misses in map(str.split, done.stdout.splitlines())}
    assert {name for name, (_, misses) in found.items() if misses} <= OWN, found
    assert all(hits + misses <= 1 for hits, misses in found.values()), found  # one signature each
    from_disk = {"build", "pack", "split_alone", "choose"} if rows > PACKED_ROWS else {"grow", "scale_and_pack"}
    assert all(found[name][0] == 1 for name in from_disk), found
    assert [path.name.rsplit("-", 1)[0] for path in tmp_path.glob("*-*-*")] == [
        f"{'large' if rows > PACKED_ROWS else 'small'}-{kind}"
    ]
