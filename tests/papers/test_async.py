"""Asynch-SGBDT: what must hold (oracles TA-1 to TA-12), on threads, simulated, and replayed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from itertools import pairwise
from math import pi, sin
from typing import Any

import numpy as np
import pytest
from support.builders import model_bytes, random_case

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import DeviceError, RecipeError, WorkerError
from gpuboost.execution import Asynchronous, Execution, Log, Replay, SimulatedWorkers, log_of, times
from gpuboost.execution.stability import stability_limit
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.keys import Key
from gpuboost.langevin import Langevin
from gpuboost.learners import RandomGroups
from gpuboost.recipe import Recipe
from gpuboost.sampling import ImportanceSampling, UniformSampling
from gpuboost.steps import ConstantStep, GradientStep
from gpuboost.types import Candidates, Ensemble, Limits, Progress, Structure, Target, TrainingSet

pytestmark = pytest.mark.slow

LIMITS = Limits(8, 3)
ONE_CORE = Cpu(1)


def logged(recipe: Recipe, data: TrainingSet, backend: Backend = ONE_CORE, seed: int = 3, **more: Any) -> Any:
    """The ensemble, its log, and the training loss after every round."""
    lines, curve = [], []

    def watch(progress: Progress) -> bool:
        lines.extend(progress.log)
        curve.append(backend.loss_value(recipe.loss, progress.scores, data.y, None))
        return False

    ensemble = boost(recipe, data, backend, seed=seed, watch=watch, **more)
    return ensemble, log_of(recipe.execution, seed, tuple(lines)), curve


def by(execution: Execution, **pieces: Any) -> Recipe:
    usual = {
        "loss": losses.SquaredError(),
        "rounds": 20,
        "learning_rate": 0.3,
        "growth": DepthWise(LIMITS),
        "sampling": UniformSampling(0.6),
        "learners": RandomGroups(0.8),
    }
    return Recipe(**(usual | {"execution": execution} | pieces))


EQUAL = {"build_time": 1.0, "server_time": 0.0}

ONE_WORKER = [
    Asynchronous(1),
    Asynchronous(1, sample_at="version", staleness="block", max_staleness=0),
    Asynchronous(1, staleness="drop", max_staleness=0),
    SimulatedWorkers(1),
    SimulatedWorkers(1, **EQUAL),
    SimulatedWorkers(1, **EQUAL, failures=0.5),
]

PIECES: list[dict[str, Any]] = [
    {},
    {"sampling": ImportanceSampling(0.3)},
    {"growth": LeafWise(LIMITS), "loss": losses.Logistic()},
    {"growth": Oblivious(LIMITS), "loss": losses.Softmax(3)},
    {"loss": losses.AbsoluteError(), "step": None},
]


def pieces_and_data(pieces: dict[str, Any]) -> tuple[dict[str, Any], TrainingSet]:
    from gpuboost.steps import automatic

    loss = pieces.get("loss", losses.SquaredError())
    target = {"Logistic": "binary", "Softmax": "3"}.get(type(loss).__name__, "real")
    data = random_case(5, 200, 5, target=target, weights="whole").data
    return pieces | {"step": automatic(loss)}, data


@pytest.mark.parametrize("execution", ONE_WORKER, ids=repr)
@pytest.mark.parametrize("pieces", PIECES, ids=lambda found: "-".join(found) or "plain")
def test_ta_1_one_worker_is_serial_to_the_last_bit(execution: Execution, pieces: dict[str, Any]) -> None:
    pieces, data = pieces_and_data(pieces)
    recipe = by(execution, **pieces)
    found, log, _ = logged(recipe, data)
    serial, of_serial, _ = logged(by(Recipe(losses.SquaredError()).execution, **pieces), data)
    assert model_bytes(found) == model_bytes(serial)
    assert set(log.staleness) == {0}
    assert [line.ticket for line in log.applied] == [line.ticket for line in of_serial.lines] == list(range(20))


def test_ta_1_one_worker_on_the_reference_too() -> None:
    data = random_case(5, 60, 3).data
    models = [boost(by(one, rounds=3), data, Reference()) for one in (Asynchronous(1), SimulatedWorkers(1, **EQUAL))]
    assert {model_bytes(model) for model in models} == {
        model_bytes(boost(by(Recipe(losses.SquaredError()).execution, rounds=3), data, ONE_CORE))
    }


LAWS = [
    times.Constant(1.0),
    times.Exponential(1.0),
    times.LogNormal(1.0, 0.8),
    times.Straggling(times.Exponential(1.0), 0.1, 20.0),
]


def depth_0(execution: Execution, rounds: int, rate: float = 0.01, **pieces: Any) -> Recipe:
    """Trees of one leaf cost next to nothing."""
    limits = Limits(max_leaves=1, max_depth=0, reg_lambda=0.0)
    return Recipe(losses.SquaredError(), rounds, rate, DepthWise(limits), execution=execution, **pieces)


def lateness_under_way(log: Log) -> int:
    """Of the trees that were being built when the last one was applied: rounds since each was pulled."""
    last = {worker: -1 for worker in range(log.workers)}
    last.update({line.worker: line.applied for line in log.applied})
    return sum(len(log.applied) - (applied + 1) for applied in last.values())


@pytest.mark.parametrize("workers", [2, 4, 16, 32])
@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_ta_2_mean_staleness_is_one_less_than_the_workers(law: times.Time, workers: int) -> None:
    """Every application makes the W - 1 others that are under way later by one: an identity, whatever the law."""
    execution = SimulatedWorkers(workers, build_time=law, server_time=0.0)
    _, log, _ = logged(depth_0(execution, 300), random_case(1, 8, 1).data)
    assert log.staleness.sum() + lateness_under_way(log) == 300 * (workers - 1)
    if not isinstance(law, times.Straggling):  # whose stragglers are still under way at the end
        assert log.mean_staleness == pytest.approx(workers - 1, rel=0.12)


def test_ta_2_holds_for_heterogeneous_workers_and_for_threads() -> None:
    speeds = (1.0, 1.0, 4.0, 0.5)
    simulated = SimulatedWorkers(4, build_time=times.Exponential(1.0), server_time=0.01, speeds=speeds)
    data = random_case(1, 8, 1).data
    for execution in (simulated, Asynchronous(4)):
        _, log, _ = logged(depth_0(execution, 400), data)
        assert log.staleness.sum() + lateness_under_way(log) == 1200
        if execution is simulated:
            trees = np.bincount([line.worker for line in log.applied])
            assert trees[2] > 2.5 * trees[0] > 3.5 * trees[3]


@pytest.mark.parametrize("workers", [2, 5])
def test_ta_3_equal_times_make_staleness_constant(workers: int) -> None:
    _, log, _ = logged(depth_0(SimulatedWorkers(workers, **EQUAL), 30), random_case(1, 8, 1).data)
    assert log.staleness.tolist() == [*range(workers), *[workers - 1] * (30 - workers)]
    assert [line.worker for line in log.lines] == [round % workers for round in range(30)]


def test_ta_4_exponential_times_make_staleness_geometric() -> None:
    workers, rounds = 8, 6000
    execution = SimulatedWorkers(workers, build_time=times.Exponential(1.0), server_time=0.0)
    _, log, _ = logged(depth_0(execution, rounds, 1e-4), random_case(1, 2, 1).data)
    seen = np.bincount(log.staleness[200:], minlength=40)[:40] / (rounds - 200)
    law = (1.0 / workers) * (1.0 - 1.0 / workers) ** np.arange(40)
    assert np.abs(seen - law).max() < 0.012
    assert seen[:3] == pytest.approx([0.125, 0.1094, 0.0957], abs=0.012)


@pytest.mark.parametrize("ratio", [10.0, 30.0])
@pytest.mark.parametrize("workers", [1, 4, 11, 16, 64])
def test_ta_5_speed_up_saturates(ratio: float, workers: int) -> None:
    """Within 3 %, of which the first trees, for which the server waits, are the most."""
    execution = SimulatedWorkers(workers, build_time=ratio, server_time=1.0)
    _, log, _ = logged(depth_0(execution, int(60 * ratio)), random_case(1, 2, 1).data)
    assert log.saturation == pytest.approx(1.0 + ratio)
    assert log.speed_up == pytest.approx(min(workers, 1.0 + ratio), rel=0.03)


def test_the_network_adds_to_what_a_worker_waits_for() -> None:
    execution = SimulatedWorkers(1, build_time=1.0, server_time=0.5, network=0.25)
    _, log, _ = logged(depth_0(execution, 10), random_case(1, 2, 1).data)
    assert [line.ended for line in log.lines] == [1.5 + 2.0 * round for round in range(10)]
    assert log.seconds == 20.0


# TA-6: the stability limit


def residuals(rate: float, staleness: int, rounds: int) -> list[float]:
    """Of a squared loss, by trees of one leaf whose value the worker finds: (1 + staleness) workers of equal speed."""
    execution = SimulatedWorkers(staleness + 1, **EQUAL, leaf_values="worker", allow_unproven=True)
    recipe = depth_0(execution, rounds, rate)
    data = replace(random_case(1, 16, 1).data, y=np.ones(16))
    begin, seen = Ensemble(np.zeros(1), data.cuts), []
    boost(recipe, data, ONE_CORE, resume=begin, watch=lambda p: seen.append(1.0 - float(p.scores[0, 0])) or False)
    return [1.0, *seen]


@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
@pytest.mark.parametrize("staleness", [0, 1, 3, 7, 15])
def test_ta_6_old_leaf_values_are_stable_up_to_the_limit_and_not_above(staleness: int) -> None:
    limit, rounds = stability_limit(staleness), 240 * (staleness + 1)
    below, above = (np.abs(residuals(share * limit, staleness, rounds)) for share in (0.9, 1.1))
    tail = 20 * (staleness + 1)  # after the modes that die out at once
    assert below[-tail:].max() < 0.5 * below[tail : 2 * tail].max()
    assert above[-tail:].max() > 2.0 * above[tail : 2 * tail].max()


def test_ta_6_the_error_follows_its_recursion() -> None:
    staleness, rate, rounds = 3, 0.2, 40
    found = residuals(rate, staleness, rounds)
    expected = [1.0]
    for round in range(rounds):
        pulled = max(round - staleness, 0) if round > staleness else 0
        expected.append(expected[-1] - rate * expected[pulled])
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_the_limit_has_its_known_values() -> None:
    known = {0: 2.0, 1: 1.0, 3: 0.445, 7: 0.209, 15: 0.101, 31: 0.0499}
    assert {s: stability_limit(s) for s in known} == pytest.approx(known, rel=0.01)
    assert stability_limit(3) == 2.0 * sin(pi / 14.0)
    with pytest.raises(RecipeError, match=r"^staleness: must be a number of rounds"):
        stability_limit(-1)


# TA-7: leaf values of the server

SCHEDULES: list[Execution] = [
    SimulatedWorkers(32, build_time=times.Exponential(1.0), server_time=0.01),
    SimulatedWorkers(16, build_time=times.LogNormal(1.0, 1.0), server_time=0.0, sample_at="version"),
    SimulatedWorkers(8, build_time=1.0, server_time=0.0, speeds=(1, 1, 1, 1, 1, 1, 1, 0.02)),
    Asynchronous(5),
]


@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
@pytest.mark.parametrize("execution", SCHEDULES, ids=lambda one: f"{type(one).__name__}-{one.workers}")
@pytest.mark.parametrize(("loss", "target"), [(losses.SquaredError(), "real"), (losses.Logistic(), "binary")])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_ta_7_leaf_values_of_the_server_never_let_the_loss_rise(
    execution: Execution, loss: Any, target: str, rate: float
) -> None:
    data = random_case(7, 250, 6, target=target).data
    recipe = by(execution, loss=loss, rounds=80, learning_rate=rate, step=ConstantStep())
    _, log, curve = logged(recipe, data)
    assert log.staleness.max() > 0
    assert max(after - before for before, after in pairwise(curve)) <= 1e-12
    assert curve[-1] < 0.9 * curve[0]


@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
def test_leaf_values_of_the_workers_oscillate_where_the_limit_is_passed() -> None:
    """A rate of 0.5 with 16 workers diverges on the squared loss, and is harmless with the server's."""
    data = random_case(7, 400, 6, missing=0.0).data
    curves = {}
    for leaves in ("worker", "server"):
        execution = SimulatedWorkers(
            16, build_time=times.Exponential(1.0), server_time=0.0, leaf_values=leaves, allow_unproven=True
        )
        curves[leaves] = logged(by(execution, rounds=150, learning_rate=0.5, step=GradientStep()), data)[2]
    rises = {leaves: sum(b > a for a, b in pairwise(curve)) for leaves, curve in curves.items()}
    assert rises["server"] == 0
    assert rises["worker"] > 30
    assert curves["worker"][-1] > 10.0 * curves["server"][-1]


# TA-8: replay

TO_REPLAY: list[Execution] = [
    Asynchronous(4),
    Asynchronous(3, leaf_values="worker"),
    Asynchronous(4, sample_at="version"),
    Asynchronous(4, staleness="drop", max_staleness=2),
    Asynchronous(4, staleness="damp", max_staleness=1, damping=0.5),
    Asynchronous(4, staleness="block", max_staleness=3),
    SimulatedWorkers(9, build_time=times.Exponential(1.0), server_time=0.1, failures=0.2),
    SimulatedWorkers(3),
]


@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
@pytest.mark.parametrize("execution", TO_REPLAY, ids=repr)
@pytest.mark.parametrize("sampling", [UniformSampling(0.5), ImportanceSampling(0.4)], ids=repr)
def test_ta_8_a_log_replayed_gives_the_same_bytes(execution: Execution, sampling: Any, tmp_path: Any) -> None:
    data = random_case(2, 300, 5, target="binary").data
    pieces = {"loss": losses.Logistic(), "sampling": sampling, "step": GradientStep(), "rounds": 25}
    found, log, curve = logged(by(execution, **pieces), data)
    assert len(log.applied) == found.n_rounds == 25
    log.save(tmp_path / "log.json")
    assert Log.load(tmp_path / "log.json") == log
    for source in (log, tmp_path / "log.json"):
        again, of_replay, same_curve = logged(by(Replay(source), **pieces), data)
        assert model_bytes(again) == model_bytes(found)
        assert same_curve == curve
        assert of_replay.applied == log.applied


def test_a_replay_needs_its_rounds() -> None:
    data = random_case(2, 50, 3).data
    _, log, _ = logged(by(Asynchronous(2), rounds=5), data)
    with pytest.raises(RecipeError, match=r"^n_estimators: the log to replay knows 5 rounds; round 5 is not there"):
        boost(by(Replay(log), rounds=6), data, ONE_CORE, seed=3)


# TA-9 and TA-10: what is sampled, and when


def first_trees(sample_at: str, workers: int = 6) -> list[bytes]:
    data = random_case(9, 300, 4).data
    execution = SimulatedWorkers(workers, **EQUAL, leaf_values="worker", sample_at=sample_at, allow_unproven=True)
    recipe = by(execution, learners=Recipe(losses.SquaredError()).learners, learning_rate=0.01)
    ensemble, _, _ = logged(recipe, data)
    return [tree.value.tobytes() + tree.nodes.feature.tobytes() for tree in ensemble.trees]


def test_ta_9_one_sample_a_version_makes_the_first_trees_alike() -> None:
    trees = first_trees("version")
    assert len(set(trees[:6])) == 1
    assert len(set(trees[6:])) == len(trees) - 6


def test_ta_9_one_sample_a_pull_tells_them_apart() -> None:
    assert len(set(first_trees("pull"))) == 20


def test_ta_10_the_target_is_unbiased_and_full_at_rate_1() -> None:
    data = random_case(3, 40, 2, weights="whole").data
    scores = ONE_CORE.start(data, np.zeros(1))
    gradients = ONE_CORE.gradients(losses.SquaredError(), scores, data, None)
    total, draws = np.zeros(40), 4000
    for number in range(draws):
        sample = UniformSampling(0.5).draw(ONE_CORE, gradients, Key.root(1) / "rows" / number)
        total[sample.rows] += ONE_CORE.weigh(gradients, sample).g[0]
    assert np.abs(total / draws - gradients.g[0]).max() < 0.08 * np.abs(gradients.g[0]).max()
    everything = UniformSampling(1.0).draw(ONE_CORE, gradients, Key.root(1) / "rows" / 0)
    assert ONE_CORE.weigh(gradients, everything).g.tobytes() == gradients.g.tobytes()


# TA-11: the model is its trees


@pytest.mark.parametrize("execution", [Asynchronous(4), SimulatedWorkers(8, **EQUAL)], ids=repr)
def test_ta_11_scores_are_the_sum_of_the_trees(execution: Execution) -> None:
    case = random_case(6, 200, 4)
    scores = []
    ensemble = boost(by(execution), case.data, ONE_CORE, watch=lambda p: scores.append(p.scores.copy()) or False)
    assert ensemble.n_rounds == len(scores) == 20
    for round, found in enumerate(ONE_CORE.staged_predict(ensemble, case.x)):
        assert found.tobytes() == scores[round].tobytes()


# TA-12: workers that fail


@dataclass(frozen=True)
class Fragile:
    """Trees that some workers never finish: at these orders, counted over all of them, building ends by an error."""

    limits: Limits
    fails_at: tuple[int, ...]
    error: BaseException
    orders: list[int]

    def structure(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Structure:
        self.orders.append(target.version)
        if len(self.orders) - 1 in self.fails_at:
            raise self.error
        return DepthWise(self.limits).structure(backend, data, target, output, candidates)


@pytest.mark.parametrize("error", [RuntimeError("out of luck"), SystemExit(3), MemoryError()], ids=repr)
@pytest.mark.parametrize("workers", [1, 3])
def test_ta_12_a_lost_worker_costs_one_tree_and_blocks_no_other(workers: int, error: BaseException) -> None:
    data = random_case(6, 200, 4).data
    growth = Fragile(LIMITS, (7,), error, [])
    recipe = by(Asynchronous(workers), growth=growth)
    with pytest.warns(RuntimeWarning, match=type(error).__name__):
        found, log, _ = logged(recipe, data)
    assert found.n_rounds == len(log.applied) == 20
    assert [line.outcome for line in log.lines].count("failed") == 1
    again, _, _ = logged(by(Replay(log)), data)
    assert model_bytes(again) == model_bytes(found)
    assert not workers_left()


def test_a_lost_pull_of_one_worker_changes_nothing() -> None:
    data = random_case(6, 200, 4).data
    growth = Fragile(LIMITS, (0, 7), RuntimeError("twice"), [])
    with pytest.warns(RuntimeWarning, match="twice"):
        found, _, _ = logged(by(Asynchronous(1), growth=growth), data)
    assert model_bytes(found) == model_bytes(boost(by(Recipe(losses.SquaredError()).execution), data, ONE_CORE, seed=3))


def test_too_many_failures_end_the_fit_with_a_traceback() -> None:
    growth = Fragile(LIMITS, tuple(range(2, 99)), RuntimeError("out of luck"), [])
    recipe = by(Asynchronous(2, max_failures=2), growth=growth)
    with pytest.warns(RuntimeWarning, match="out of luck"), pytest.raises(WorkerError, match="out of luck") as caught:
        boost(recipe, random_case(6, 200, 4).data, ONE_CORE)
    assert "max_failures=2" in str(caught.value)
    assert "Traceback" in str(caught.value)
    assert "in structure" in str(caught.value)
    assert caught.value.__cause__ is growth.error
    assert not workers_left()


def test_an_error_about_the_recipe_is_not_tried_again() -> None:
    growth = Fragile(LIMITS, (2,), RecipeError("growth: cannot."), [])
    with pytest.raises(RecipeError, match="growth: cannot"):
        boost(by(Asynchronous(2), growth=growth), random_case(6, 200, 4).data, ONE_CORE)
    assert not workers_left()


def test_an_interrupt_leaves_no_thread_behind() -> None:
    def watch(progress: Progress) -> bool:
        if progress.round == 3:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        boost(by(Asynchronous(4)), random_case(6, 200, 4).data, ONE_CORE, watch=watch)
    assert not workers_left()


def workers_left() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("gpuboost worker")]


# staleness


def test_damping_shortens_steps_by_their_lateness() -> None:
    execution = SimulatedWorkers(4, **EQUAL, staleness="damp", max_staleness=1, damping=0.5)
    ensemble, log, _ = logged(by(execution), random_case(6, 100, 3).data)
    expected = [1.0, 1.0, 1.0 / 1.5, *[1.0 / 2.0] * 17]
    assert [line.share for line in log.lines] == expected
    assert ensemble.factors == tuple(0.3 * share for share in expected)


def test_what_is_too_late_is_dropped() -> None:
    speeds = (1.0, 1.0, 1.0, 0.25)
    execution = SimulatedWorkers(4, **EQUAL, speeds=speeds, staleness="drop", max_staleness=6)
    _, log, _ = logged(by(execution, rounds=40), random_case(6, 100, 3).data)
    dropped = [line for line in log.lines if line.outcome == "dropped"]
    assert dropped
    assert {line.worker for line in dropped} == {3}
    assert log.staleness.max() <= 6
    assert len(log.applied) == 40


@pytest.mark.parametrize("limit", [0, 1, 3, 5, 20])
def test_bounded_staleness_is_bounded(limit: int) -> None:
    rules = {"staleness": "block", "max_staleness": limit}
    execution = SimulatedWorkers(4, build_time=times.Straggling(1.0, 0.2, 15.0), server_time=0.0, **rules)
    data = random_case(6, 60, 3).data
    _, log, _ = logged(by(execution, rounds=60), data)
    assert log.staleness.max() <= limit
    free = logged(by(replace(execution, staleness="apply", max_staleness=None), rounds=60), data)[1]
    assert free.staleness.max() > 5
    assert log.seconds >= free.seconds
    if limit == 0:
        assert {line.worker for line in log.lines} == {0}


@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
def test_langevin_asks_to_be_asked() -> None:
    pieces = {"step": GradientStep(), "sampling": UniformSampling(0.5)}
    with pytest.raises(RecipeError, match="no theorem is known"):
        by(Asynchronous(2), langevin=Langevin(), **pieces)
    recipe = by(Asynchronous(2), langevin=Langevin(allow_unproven=True), **pieces)
    data = random_case(6, 100, 3).data
    found, log, _ = logged(recipe, data)
    again, _, _ = logged(replace(recipe, execution=Replay(log)), data)
    assert model_bytes(again) == model_bytes(found)
    with pytest.raises(RecipeError, match="With langevin use leaf_values='server'"):
        by(Asynchronous(2, leaf_values="worker"), langevin=Langevin(allow_unproven=True), **pieces)


def test_the_warning_names_the_limit() -> None:
    with pytest.raises(RecipeError, match=r"0\.5 with 16 workers exceeds the stability limit 0\.101 of delayed"):
        by(Asynchronous(16, leaf_values="worker"), learning_rate=0.5, step=GradientStep())
    recipe = by(Asynchronous(16, leaf_values="worker", allow_unproven=True), learning_rate=0.5, step=GradientStep())
    assert [finding.kind for finding in recipe.findings if finding.warns] == ["unproven"]


class Elsewhere:
    """An engine whose workers are in another process, as far as anybody knows."""

    def check(self, fit: Any) -> None: ...

    def start(self, fit: Any, machine: Any, workers: int) -> Any:
        raise AssertionError("nothing is to be started")


def test_what_a_gpu_refuses() -> None:
    class Gpu(Cpu):
        name = "cuda:0"

    data = random_case(6, 50, 3).data
    with pytest.raises(
        DeviceError, match=r"^execution: a GPU's workers are streams .*Elsewhere.* Use engine='threads'"
    ):
        boost(by(Asynchronous(2, Elsewhere()), rounds=3), data, Gpu(1))
    for execution in (SimulatedWorkers(2), SimulatedWorkers(2, build_time=1.0)):
        with pytest.raises(DeviceError, match=r"^(build|server)_time: .* cuda:0 does the work; got 'measured'\. Give"):
            boost(by(execution, rounds=3), data, Gpu(1))
