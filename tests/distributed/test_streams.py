"""Workers on streams of an emulated GPU: the bytes of the same schedule on the CPU, in whatever order streams run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from emulator import FakeCupy, Schedule, require_compiler
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import model_bytes, random_case
from support.examples import THOROUGH, examples

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.recorder import Recorder
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.cuda.streams import CudaSlot
from gpuboost.backends.protocol import Backend
from gpuboost.boosting import boost
from gpuboost.errors import DeviceError, InputError
from gpuboost.execution import Asynchronous, Execution, Log, Replay, Serial, SimulatedWorkers, log_of, times
from gpuboost.growth import DepthWise, LeafWise, Oblivious, SignStump
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomByNode, RandomGroups
from gpuboost.multi_output import OneTree, RandomProjection
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, ImportanceSampling, UniformSampling
from gpuboost.steps import GradientStep, LineSearchStep, automatic
from gpuboost.types import Candidates, Ensemble, Limits, Progress, TrainingSet

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")]

ORDERS: dict[str, Callable[[int], bool] | bool] = {
    "as late as possible": True,
    "at once": False,
    "the server at once": lambda number: number != 1,
    "the workers at once": lambda number: number == 1,
    "every other worker at once": lambda number: number % 2 == 0,
}
"""Whether a stream puts its work off: 0 is the legacy stream, 1 the server's, and then come the workers'."""


def device_and_cupy(order: str = "as late as possible", **given: Any) -> tuple[Cuda, FakeCupy]:
    require_compiler()
    cupy = FakeCupy(Schedule(), deferred=ORDERS[order], **given)
    return Cuda(CupyRuntime(cupy, name="emulated")), cupy


def device(order: str = "as late as possible", **given: Any) -> Cuda:
    return device_and_cupy(order, **given)[0]


def logged(
    recipe: Recipe, data: TrainingSet, backend: Backend, resume: Ensemble | None = None, log: Log | None = None
) -> tuple[list[bytes], Log]:
    """The model, the scores and the loss after every round; and the log."""
    lines, seen = [] if log is None else list(log.lines), []

    def watch(progress: Progress) -> bool:
        lines.extend(progress.log)
        seen.append(backend.to_host(progress.scores).tobytes())
        return False

    done = () if log is None else log.lines
    ensemble = boost(recipe, data, backend, seed=3, watch=watch, resume=resume, log=done)
    return [model_bytes(ensemble), *seen], log_of(recipe.execution, 3, tuple(lines))


def by(execution: Execution, loss: Any = None, **pieces: Any) -> Recipe:
    loss = losses.SquaredError() if loss is None else loss
    usual = {
        "rounds": 9,
        "learning_rate": 0.3,
        "growth": DepthWise(Limits(8, 3)),
        "sampling": UniformSampling(0.6),
        "step": automatic(loss),
    }
    return Recipe(**(usual | {"loss": loss, "execution": execution} | pieces))


def assert_same_on_the_cpu(recipe: Recipe, data: TrainingSet, order: str = "as late as possible") -> Log:
    """Run on streams, replayed on the CPU and on streams; and run on the CPU's threads, replayed on streams."""
    found, log = logged(recipe, data, device(order))
    again = replace(recipe, execution=Replay(log))
    assert logged(again, data, Cpu(1))[0] == found
    assert logged(again, data, device(order))[0] == found
    other, of_threads = logged(recipe, data, Cpu(1))
    assert logged(replace(recipe, execution=Replay(of_threads)), data, device(order))[0] == other
    return log


@pytest.mark.parametrize("order", ORDERS)
def test_one_worker_is_serial_to_the_last_bit(order: str) -> None:
    data = random_case(5, 900, 5, weights="whole").data
    machine, cupy = device_and_cupy(order)
    assert logged(by(Asynchronous(1)), data, machine)[0] == logged(by(Serial()), data, Cpu(1))[0]
    assert cupy.counts["graph"] == 9 - 2, "a worker's trees are one graph from the third on"


@pytest.mark.parametrize("sampling", [EveryRow(), UniformSampling(0.6)], ids=repr)
def test_of_a_round_only_the_worker_waits(sampling: Any) -> None:
    """Once, and for a graph; the server launches what it has to, and waits for nothing."""
    data, spent = random_case(5, 900, 5).data, []
    for rounds in (10, 20):
        machine, cupy = device_and_cupy()
        boost(by(Asynchronous(1), rounds=rounds, sampling=sampling), data, machine)
        spent.append(cupy.counts.copy())
    more = spent[1] - spent[0]
    assert (more["sync"], more["graph"]) == (10, 10)
    assert not any(kind.startswith("kernel") and "histogram" in kind for kind in more), "trees are in the graph"
    assert sum(count for kind, count in more.items() if kind.startswith("kernel")) <= 10 * 9


SCHEDULES: list[Execution] = [
    Asynchronous(3),
    Asynchronous(3, leaf_values="worker", allow_unproven=True),
    Asynchronous(3, sample_at="version"),
    Asynchronous(3, leaf_values="worker", sample_at="version", allow_unproven=True),
    Asynchronous(4, staleness="drop", max_staleness=1),
    Asynchronous(3, staleness="damp", max_staleness=1, damping=0.5),
    Asynchronous(4, staleness="block", max_staleness=2),
]


def in_every_order(executions: list[Execution]) -> list[Any]:
    """Each with each order of the streams. The first has all orders, and the others one each; the rest is thorough."""
    return [
        pytest.param(
            execution,
            order,
            id=f"{order}-{execution!r}",
            marks=THOROUGH if i > 0 and i % len(ORDERS) != j else (),
        )
        for i, execution in enumerate(executions)
        for j, order in enumerate(ORDERS)
    ]


@pytest.mark.parametrize(("execution", "order"), in_every_order(SCHEDULES))
def test_every_schedule(execution: Execution, order: str) -> None:
    data = random_case(6, 700, 5, target="binary").data
    assert_same_on_the_cpu(by(execution, losses.Logistic(), step=GradientStep()), data, order)


@settings(max_examples=examples(8), deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([2, 300, 4_500]),
    st.sampled_from([1, 9, 33]),
    st.sampled_from([EveryRow(), UniformSampling(0.5), ImportanceSampling(0.3), ImportanceSampling(0.3, score="loss")]),
    st.sampled_from([AllLearners(), RandomGroups(1)]),
    st.sampled_from(
        [DepthWise(Limits(64, 6, 3)), DepthWise(Limits(4, 0)), LeafWise(Limits(9, 6)), Oblivious(Limits(16, 4))]
    ),
    st.sampled_from(["none", "real", "whole"]),
    st.sampled_from(["real", "binary", "3"]),
    st.sampled_from(SCHEDULES),
    st.sampled_from(sorted(ORDERS)),
)
def test_every_combination(
    seed: int, n: int, d: int, sampling: Any, learners: Any, growth: Any, weights: str, target: str,
    execution: Execution, order: str,
) -> None:  # fmt: skip
    loss: Any = {"real": losses.Quantile(0.7), "binary": losses.Logistic(), "3": losses.Softmax(3)}[target]
    server = getattr(execution, "leaf_values", "") == "server"
    step = automatic(loss) if server else GradientStep()
    loss = loss if server or target != "real" else losses.SquaredError()
    data = random_case(seed, n, d, target=target, weights=weights).data
    pieces = {"sampling": sampling, "learners": learners, "growth": growth, "rounds": 6, "step": step}
    assert_same_on_the_cpu(by(execution, loss, **pieces), data, order)


PIECES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "several outputs, every row": (losses.Softmax(3), "3", {"sampling": EveryRow()}),
    "two outputs": (losses.GaussianNLL(), "real", {}),
    "one tree": (losses.Softmax(3), "3", {"multi_output": OneTree(RandomProjection(2)), "rounds": 5}),
    "one tree, every row": (losses.Softmax(3), "3", {"multi_output": OneTree(), "sampling": EveryRow(), "rounds": 5}),
    "noise": (losses.Logistic(), "binary", {"langevin": Langevin(allow_unproven=True, shrinkage=0.1)}),
    "noise on every row": (
        losses.Softmax(3), "3", {"langevin": Langevin(allow_unproven=True), "sampling": EveryRow()},
    ),
    "shapes at random": (
        losses.SquaredError(), "real", {"langevin": Langevin(allow_unproven=True, random_from=3)},
    ),
    "features of nodes": (losses.SquaredError(), "real", {"learners": RandomByNode(2)}),
    "a twentieth": (losses.Logistic(), "binary", {"sampling": UniformSampling(0.05)}),
    "deep trees": (losses.SquaredError(), "real", {"growth": DepthWise(Limits(300, 14)), "rounds": 5}),
    "oblivious": (losses.Logistic(), "binary", {"growth": Oblivious(Limits(16, 4, random_strength=1.0))}),
    "stumps of one value": (losses.Logistic(), "binary", {"growth": SignStump(Limits(2, 1))}),
    "medians": (losses.AbsoluteError(), "real", {}),
    "lengths": (losses.Logistic(), "binary", {"step": LineSearchStep("leaf"), "rounds": 4}),
}  # fmt: skip


@pytest.mark.parametrize("name", PIECES)
def test_every_piece(name: str) -> None:
    loss, target, pieces = PIECES[name]
    data = random_case(8, 800, 5, target=target, weights="whole").data
    assert_same_on_the_cpu(by(Asynchronous(3), loss, **pieces), data)


@pytest.mark.parametrize("loss", [losses.get("lambdamart"), losses.get("pairwise_logistic")], ids=lambda one: one.name)
def test_rankings(loss: Any) -> None:
    data = random_case(9, 600, 5, target="4").data
    data = replace(data, query_start=np.array([0, 1, 40, 41, 300, 600], np.int64))
    assert_same_on_the_cpu(by(Asynchronous(3), loss), data)


SIMULATED = [
    SimulatedWorkers(5, build_time=times.Exponential(1.0), server_time=0.1),
    SimulatedWorkers(9, build_time=times.Exponential(1.0), server_time=0.1, failures=0.3),
    SimulatedWorkers(4, build_time=1.0, server_time=0.0, speeds=(1, 1, 1, 0.2), staleness="drop", max_staleness=4),
    SimulatedWorkers(4, build_time=times.Exponential(1.0), server_time=0.0, staleness="block", max_staleness=3),
]


@pytest.mark.parametrize(("execution", "order"), in_every_order(SIMULATED))
def test_a_simulation_is_the_cpus(execution: Execution, order: str) -> None:
    data = random_case(6, 500, 5).data
    recipe = by(execution, rounds=14, sampling=EveryRow() if execution is SIMULATED[0] else UniformSampling(0.5))
    found, log = logged(recipe, data, device(order))
    assert (found, log) == logged(recipe, data, Cpu(1))
    assert logged(replace(recipe, execution=Replay(log)), data, device(order))[0] == found


def test_a_run_goes_on() -> None:
    """Five rounds on streams, and five more, are the ten that the log replays, on either machine."""
    data = random_case(4, 600, 5).data
    lines: list[Any] = []

    def watch(progress: Progress) -> bool:
        lines.extend(progress.log)
        return False

    first = boost(by(Asynchronous(3), rounds=5), data, device(), seed=3, watch=watch)
    begun = log_of(Asynchronous(3), 3, tuple(lines))
    found, log = logged(by(Asynchronous(2), rounds=5), data, device(), first, begun)
    for machine in (Cpu(1), device()):
        assert logged(by(Replay(log), rounds=10), data, machine)[0][0] == found[0]


# what goes wrong


@dataclass(frozen=True)
class BreaksOnce:
    """All features compete; a few orders end in an error, or wait for an event."""

    errors: list[BaseException | threading.Event]

    def n_drawn(self, n_groups: int) -> int:
        return n_groups

    def draw(self, n_groups: int, key: Any) -> Candidates:
        if key.iteration == 2 and self.errors:
            what = self.errors.pop()
            if isinstance(what, BaseException):
                raise what
            what.wait(60.0)
        return Candidates(np.arange(n_groups, dtype=np.int32))


@pytest.mark.parametrize("error", [RuntimeError("out of luck"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("workers", [1, 3])
def test_a_worker_that_raises_is_replaced(workers: int, error: BaseException) -> None:
    data = random_case(6, 400, 5).data
    recipe = by(Asynchronous(workers), learners=BreaksOnce([error]))
    with pytest.warns(RuntimeWarning, match="failed while it built tree 2"):
        found, log = logged(recipe, data, device())
    assert [line.ticket for line in log.lines if line.outcome == "failed"] == [2]
    assert len(log.applied) == 9
    again = by(Replay(log), learners=BreaksOnce([]))
    assert logged(again, data, Cpu(1))[0] == found
    assert not [one for one in threading.enumerate() if one.name.startswith("gpuboost worker")]


def test_a_worker_that_is_silent_is_left_to_itself() -> None:
    data, go_on = random_case(6, 400, 5).data, threading.Event()
    logged(by(Asynchronous(1), learners=BreaksOnce([])), data, device())  # kernels are compiled after this
    waits = Asynchronous(2, staleness="block", max_staleness=1, timeout=3.0, max_failures=9)
    recipe = by(waits, learners=BreaksOnce([go_on]))
    threading.Timer(4.0, go_on.set).start()  # what it builds then, from its copy of the target, is not used
    with pytest.warns(RuntimeWarning, match="gave no answer for 3 s"):
        found, log = logged(recipe, data, device())
    assert logged(by(Replay(log), learners=BreaksOnce([])), data, Cpu(1))[0] == found


def test_what_a_stream_says_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(self: Any) -> None:
        if threading.current_thread().name.startswith("gpuboost worker"):
            raise RuntimeError("cudaErrorIllegalAddress")

    data = random_case(6, 400, 5).data
    monkeypatch.setattr(Recorder, "wait", wait)
    with pytest.raises(DeviceError, match=r"a worker's stream on emulated failed \(cudaErrorIllegal.*fewer workers or"):
        boost(by(Asynchronous(2)), data, device())


def test_no_room_for_a_worker_is_said() -> None:
    data = random_case(6, 5_000, 5).data
    with pytest.raises(DeviceError, match="are free"):
        boost(by(Asynchronous(8)), data, device(capacity=1 << 21))


def test_a_gradient_that_is_not_finite_ends_the_fit() -> None:
    data = random_case(6, 400, 5).data
    data.y[100] = np.inf
    with pytest.raises(InputError, match="finite"):
        boost(by(Asynchronous(2), sampling=EveryRow()), data, device())


# the tests' own teeth: without an event, a wait or a copy, some order of the streams makes another model


def _later(right: Callable[..., Any], wrong: Callable[..., Any]) -> Callable[..., Any]:
    """The right way until every place was used, also by a recorded round: a bug meets old numbers, and no garbage."""
    calls = count()

    def either(self: Any, *given: Any) -> Any:
        return (right if next(calls) < 3 * SIMULATED[0].workers else wrong)(self, *given)

    return either


def _marked_too_early(self: Any, of: Any, right: Callable[..., Any] = CudaSlot._copy_target) -> Any:
    mark = self._server.runtime.mark()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "mark", lambda self: mark)
        return right(self, of)


PLANTED: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "the worker does not wait for its copy": (Recorder, "follow", lambda self, mark: None),
    "the copy is marked too early": (CudaSlot, "_copy_target", _marked_too_early),
    "the tree is brought before it is there": (CudaSlot, "_wait", lambda self: None),
    "the target is not copied": (CudaSlot, "_copy_target", lambda self, of: of),
    "the tree is not copied": (CudaSlot, "_copy_tree", lambda self, grown: grown),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_bug_is_caught(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_case(6, 500, 5).data
    recipe = by(SIMULATED[0], rounds=24, sampling=EveryRow(), learners=RandomGroups(0.5))
    expected, log = logged(recipe, data, Cpu(1))
    recipe = replace(recipe, execution=Replay(log))  # builds a tree at each place in its first round
    owner, name, wrong = PLANTED[planted]
    right = getattr(owner, name)

    def is_caught(order: str) -> bool:
        monkeypatch.setattr(owner, name, _later(right, wrong))
        return logged(recipe, data, device(order))[0] != expected

    assert any(is_caught(order) for order in ORDERS)
