"""Draws on an emulated device: full blocks, control variates, the graph of a round, its memory and its notes.

That rows, weights and models are those of the definition is in tests/parity/test_draw.py.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime
from support.builders import random_case
from support.drawing import cuda, device, drawn, host, several, states_of
from support.examples import crossed
from support.rules import KEY, PROBABILITY_RULES
from support.training import submitted

from gpuboost import losses
from gpuboost.backends.cuda import draws, importance
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device import kernels
from gpuboost.backends.cuda.device.runtime import source
from gpuboost.backends.numerics.probabilities import GossRule, ProbabilityRule, ThresholdRule, TrimmingRule
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise
from gpuboost.recipe import Recipe
from gpuboost.sampling import (
    GOSS,
    MVS,
    EveryRow,
    ImportanceSampling,
    Sampling,
    UniformSampling,
    WeightTrimming,
    smart_first_order,
    smart_second_order,
)
from gpuboost.steps import GradientStep
from gpuboost.types import Gradients, Limits, Progress, Sample


def full_blocks(kind: str) -> Gradients:
    """Scores whose lower bits are all set: the sums of 16,384 of them in one bucket just fit into 32 bits."""
    rng, n, full = np.random.default_rng(7), 70_001, 0x3F8FFFFF
    lower = full - (1 << 20)
    bits = {
        "equal": np.full(n, full),
        "two values": np.where(rng.random(n) < 0.3, full, lower),
        "one bit": full - rng.integers(0, 2, n),
        "stretches": np.where(np.arange(n) < 20_000, full, lower),
        "log-normal": np.exp(3.0 * rng.normal(size=n)).astype(np.float32).view(np.uint32),
    }[kind]
    scores = bits.astype(np.uint32).view(np.float32)[None]
    return Gradients(scores, np.zeros_like(scores))


def margin() -> TrimmingRule:
    """A little less than the first of the two stretches holds: sums that are wrong by 0.5 % take both."""
    first, second = np.unique(full_blocks("stretches").g.astype(np.float64))[::-1] * (20_000, 50_001)
    return TrimmingRule(float(0.999 * first / (first + second)))


@cache
def one_multiprocessor() -> Cuda:
    """Blocks take as many rows as they may."""
    runtime = emulated_runtime()
    runtime.sm_count = 1
    return Cuda(runtime)


def same_on(backend: Cuda, gradients: Gradients, rule: ProbabilityRule) -> bool:
    expected, found = Reference().draw(gradients, 0.0, rule, KEY), backend.draw(gradients, 0.0, rule, KEY)
    count = int(backend.to_host(found.m)[0])
    rows, by = (backend.to_host(x)[:count].tobytes() for x in (found.rows, found.inverse_probability))
    return (rows, by) == drawn(expected)


@pytest.mark.parametrize(
    ("rule", "kind"),
    crossed([*PROBABILITY_RULES, margin()], ["equal", "two values", "one bit", "stretches", "log-normal"]),
    ids=str,
)
def test_blocks_that_hold_as_many_rows_as_they_may(rule: ProbabilityRule, kind: str) -> None:
    assert same_on(one_multiprocessor(), full_blocks(kind), rule)


def test_there_is_room_for_every_sample_of_odds_whose_sum_is_known() -> None:
    n = 100_000
    for rule in PROBABILITY_RULES:
        room = importance.room_for(rule, n)
        if rule in (ThresholdRule(rate=0.1, floor=0.01), GossRule(0.2, 0.1)):
            share = 0.1 if isinstance(rule, ThresholdRule) else 0.3
            assert share * n < room < 1.15 * share * n
    assert importance.room_for(TrimmingRule(0.05), n) >= n
    assert importance.room_for(ThresholdRule(rho=1e-9), n) >= n


# what follows from it


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("rule", [None, PROBABILITY_RULES[0], PROBABILITY_RULES[7], PROBABILITY_RULES[9]], ids=repr)
def test_weighed_gradients(rule: ProbabilityRule | None, whole: bool) -> None:
    gradients = several(4, 9_000, 2, "plain", whole)
    expected, found = samples(gradients, rule)
    drawn, weighed = Reference().weigh(gradients, expected), cuda().weigh(gradients, found)
    assert_same_gradients(weighed, drawn, len(expected.rows))


def samples(gradients: Gradients, rule: ProbabilityRule | None) -> tuple[Sample, Sample]:
    """Of Reference and of the device; None: every row with the same probability."""
    if rule is None:
        n = gradients.g.shape[1]
        return Reference().sample(0.3, n, KEY), cuda().sample(0.3, n, KEY)
    return Reference().draw(gradients, 0.1, rule, KEY), cuda().draw(gradients, 0.1, rule, KEY)


def assert_same_gradients(found: Any, expected: Gradients, count: int) -> None:
    """And what is known of their sizes."""
    assert host(found.g)[:, :count].tobytes() == expected.g.tobytes()
    assert host(found.h)[:, :count].tobytes() == expected.h.tobytes()
    if expected.multiplicity is not None:
        assert host(found.multiplicity)[:count].tobytes() == expected.multiplicity.tobytes()
    measured = states_of(cuda()._targets.given(expected).states)
    for name in ("scale_g", "scale_h", "unit_g", "unit_h", "weight", "m", "wide", "error"):
        assert states_of(found.states)[name].tobytes() == measured[name].tobytes(), name


@pytest.mark.parametrize(
    ("rule", "whole", "n", "nodes"),
    crossed(
        [None, "all", PROBABILITY_RULES[0], PROBABILITY_RULES[1], PROBABILITY_RULES[7]],
        [False, True],
        [1, 700, 9_000],
        [9, 8_000],
    ),
    ids=repr,
)
def test_control_variates(rule: Any, whole: bool, n: int, nodes: int) -> None:
    k, rng = 2, np.random.default_rng(n)
    gradients = several(4, n, k, "heavy", whole)
    before = replace(several(5, n, k, "plain"), multiplicity=gradients.multiplicity)
    expected, found = (Sample(), Sample()) if rule == "all" else samples(gradients, rule)
    controlled = Reference().node_control_variate(gradients, expected, before, 0.7)
    assert_same_gradients(cuda().node_control_variate(gradients, found, before, 0.7), controlled, n)
    leaves = tuple(rng.integers(0, nodes, n).astype(np.int32) for _ in range(k))
    of_leaves = gradients, expected, before, 0.7, leaves, (nodes,) * k
    controlled = Reference().leaf_control_variate(*of_leaves)
    count = n if rule == "all" else len(expected.rows)
    assert_same_gradients(cuda().leaf_control_variate(gradients, found, *of_leaves[2:]), controlled, count)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_gradients_are_kept_for_as_many_rounds_as_asked(rounds: int) -> None:
    """Those of a round take the place of those before: launched twice, then replayed."""
    backend, kept = Cuda(device()), list[Any]()
    all_of_them = [backend._targets.given(several(i, 50, 2, "plain")) for i in range(7)]
    now = backend._targets.given(several(0, 50, 2, "plain"))
    expected = [(host(one.g).tobytes(), host(one.states).tobytes()) for one in all_of_them]
    for number, one in enumerate(all_of_them):
        device().copy(now.g, one.g)
        device().copy(now.states, one.states)
        if number >= rounds:
            before = kept[number - rounds]
            assert (host(before.g).tobytes(), host(before.states).tobytes()) == expected[number - rounds]
        with backend.recorded(number):
            kept.append(backend.keep_gradients(now, rounds))
    assert device().cp.counts["graph"] > 0
    assert host(backend.keep_gradients(all_of_them[3], rounds).g).tobytes() == expected[3][0]


# rounds


EVENLY, OWN_LEAVES = UniformSampling(0.3), ImportanceSampling(0.3, variance_control="none")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "beside", "nodes", "after"),
    [
        (MVS(0.3), EVENLY, 5, 2),  # scores, and four steps of the search
        (ImportanceSampling(rho=0.5), EVENLY, 1, 2),
        (GOSS(0.2, 0.1), EVENLY, 3, 2),
        (WeightTrimming(0.8), EVENLY, 3, 2),
        (ImportanceSampling(0.3, score="loss"), EVENLY, 6, 2),
        (smart_second_order(0.3), EveryRow(), 10, 3),  # the draw and its list, the gradients, and two copies of them
        (ImportanceSampling(0.3, variance_control="node", lag=2), EveryRow(), 12, 5),
        (smart_second_order(0.3, variance_control="previous_leaf"), OWN_LEAVES, 4, 3),
    ],
    ids=repr,
)
def test_a_round_is_one_graph_that_waits_for_nothing(rule: Sampling, beside: Sampling, nodes: int, after: int) -> None:
    data = random_case(1, 800, 6, target="binary").data
    recipe = Recipe(losses.Logistic(), 1, 0.3, DepthWise(Limits(8, 3)), rule)
    plain = submitted(replace(recipe, sampling=beside), data, 6)[-1]
    for one in submitted(recipe, data, 9)[after:]:
        assert one["graph"] == 1
        assert one["sync"] == 0
        assert set(one) <= {"graph", "graph nodes", "H2D"}
        assert one["graph nodes"] == plain["graph nodes"] + nodes


@pytest.mark.slow
def test_memory_is_allocated_in_the_first_rounds_only() -> None:
    runtime, used = emulated_runtime(), []
    recipe = Recipe(losses.Logistic(), 7, 0.3, DepthWise(Limits(8, 3)), smart_second_order(0.4))
    data = random_case(1, 800, 6, target="binary").data
    boost(recipe, data, Cuda(runtime), watch=lambda _: used.append(runtime.cp.used()))  # type: ignore[func-returns-value]
    assert set(used[2:]) == {min(used[1:])}


@pytest.mark.slow
@pytest.mark.parametrize("rule", [ImportanceSampling(0.5, variance_control="node"), MVS(0.5)], ids=repr)
def test_gradients_that_are_no_numbers_are_an_error_when_the_host_looks(rule: Sampling) -> None:
    broken = losses.custom(lambda y, f: 0.0, lambda y, f: (f - y) * 1e300 * 1e300, None, name="broken")
    data = random_case(3, 200, 3).data
    with pytest.raises(InputError, match="gradients must be finite"):
        boost(Recipe(broken, 3, 0.3, step=GradientStep(), sampling=rule), data, Cuda(device()))


@pytest.mark.slow
def test_so_are_losses_that_are_no_numbers() -> None:
    broken = losses.custom(lambda y, f: (f - y) * 1e300 * 1e300 * 0.0, lambda y, f: f - y, None, name="broken")
    data, rule = random_case(3, 200, 3).data, ImportanceSampling(0.5, score="loss")
    for backend in (Reference(), Cuda(device())):
        with pytest.raises(InputError, match="gradients must be finite"):
            boost(Recipe(broken, 3, 0.3, step=GradientStep(), sampling=rule), data, backend)


@pytest.mark.slow
def test_what_was_drawn_is_noted_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Round by round, whether launched or replayed; of a long training the last rounds."""
    data = random_case(6, 500, 4, target="binary").data
    for rule, places in (
        (MVS(0.3), 64),
        (WeightTrimming(0.7), 64),
        (UniformSampling(0.2), 4),
        (smart_first_order(rho=0.8, paper=True), 3),
    ):
        monkeypatch.setattr(draws, "PLACES", places)
        noted: list[tuple[int, int, float]] = []
        backend, last = Cuda(device()), list[Any]()

        def host_watch(progress: Progress, noted: Any = noted) -> bool:
            sample = progress.drawn.sample
            noted.append((len(sample.rows), sample.n_excluded, float(sample.inverse_probability.max())))
            return False

        def device_watch(progress: Progress, last: Any = last) -> bool:
            last[:] = [progress.drawn.sample]
            return False

        recipe = Recipe(losses.Logistic(), 7, 0.5, DepthWise(Limits(8, 3)), rule)
        boost(recipe, data, Reference(), watch=host_watch)
        boost(recipe, data, backend, watch=device_watch)
        found = last[0].log.read(backend.to_host)
        assert [tuple(one)[:3] for one in found.tolist()] == noted[-places:]


# Tests of the tests


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("COUNT_ROWS = 1 << 14", ""),  # blocks that count more rows than they may
        ("below += there && under", "below += under"),  # what lies behind the last row is counted
        ("rows * least + rest", "rows * least"),
        ("sum = sum + x[j * GROUP + GROUP - 1]", "sum = sum + x[j * GROUP]"),
        ("room + (1.0 - room) * threshold->below", "room"),  # of rows that tie at the border
    ],
)
def test_a_planted_bug_is_seen(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    def planted(*files: str, before: str = "") -> str:
        text = source(*files, before=before)
        assert right in text or files != importance.FILES
        return text.replace(right, wrong) if wrong else text

    monkeypatch.setattr(kernels, "source", planted)
    if not wrong:
        monkeypatch.setattr(importance, "COUNT_ROWS", 1 << 17)
    runtime = emulated_runtime()
    runtime.sm_count = 1
    backend, many = Cuda(runtime), several(2, 300_001, 1, "heavy")
    rule = [ThresholdRule(rate=0.3, floor=0.15), ThresholdRule(rate=0.1), GossRule(0.2, 0.1), margin()]
    cases = [(gradients, one) for gradients in (many, full_blocks("equal"), full_blocks("stretches")) for one in rule]
    assert not all(same_on(backend, gradients, one) for gradients, one in cases)
