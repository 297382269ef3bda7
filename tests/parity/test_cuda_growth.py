"""Trees grown by the CUDA driver, its kernels run on the CPU: those of the definition, bit for bit."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib import resources

import numpy as np
import pytest
from emulator import emulated_runtime
from emulator.sanitizer import sanitized
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.builders import GRADIENT_KINDS, TEAMS, grow, random_case, random_gradients, structure_bytes, weighted
from support.examples import examples
from support.growing_on_device import Device, scales_of

from gpuboost.backends.cuda import grower, tree
from gpuboost.backends.cuda.device.runtime import Runtime, source
from gpuboost.backends.cuda.plan import ArenaPlan, Tuning
from gpuboost.backends.prediction.routing import dense_rows, route
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious
from gpuboost.types import Candidates, Cuts, DenseBins, Gradients, Limits, Structure, Target, TrainingSet

Array = np.ndarray
ORDERS = ("forward", "reverse", "random")
TUNINGS = {
    "everyday": Tuning(),
    "starved": Tuning(histogram_bytes=1, partial_bytes=1, least_rows=32, stretches=7),  # one line at a time
    "half": Tuning(histogram_bytes=3 << 18, partial_bytes=1 << 19, least_rows=64, stretches=5),
    "shared out": Tuning(least_rows=16, stretches=40),
}
GROWTHS = {"depthwise": DepthWise, "leafwise": LeafWise, "oblivious": Oblivious}
limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([1, 2, 5, 31, 500]),
    max_depth=st.sampled_from([0, 1, 2, 4, 9, 14]),
    min_samples_leaf=st.sampled_from([1, 1, 2, 5, 20]),
    min_child_weight=st.sampled_from([0.0, 1e-3, 1.0]),
    reg_lambda=st.sampled_from([0.0, 1e-6, 1.0, 10.0]),
    min_split_gain=st.sampled_from([0.0, 0.01, 5.0]),
)


@cache
def runtime_of(order: str) -> Runtime:
    return emulated_runtime(order, seed=11)


def device(order: str = "random", tuning: str = "everyday", wide: bool = False) -> Device:
    return Device(runtime_of(order), TUNINGS[tuning], wide=wide)


def assert_same(
    on: Device, growth: Growth, data: TrainingSet, gradients: Gradients, rows: Array | None = None,
    features: Array | None = None, definition: object = None,
) -> Structure:  # fmt: skip
    expected = grow(definition or Reference(), growth, data, gradients, rows, features)
    found = grow(on, growth, data, gradients, rows, features)
    assert structure_bytes(found) == structure_bytes(expected)
    return expected


@hypothesis_settings(max_examples=examples(90))
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3, 30, 150, 400]), st.sampled_from([1, 3, 5, 9, 17, 40]),
    st.sampled_from([3, 20, 254]), st.sampled_from([0.0, 0.1, 0.3]), st.sampled_from([0.0, 0.3, 1.0]),
    st.booleans(), st.sampled_from(GRADIENT_KINDS), st.sampled_from(sorted(GROWTHS)), limits,
    st.sampled_from([None, None, 0.0, 0.5, 1.0]), st.booleans(), st.sampled_from(ORDERS),
    st.sampled_from(sorted(TUNINGS)), st.booleans(),
)  # fmt: skip
def test_the_device_grows_the_tree_of_the_definition(
    seed: int, n: int, d: int, most_cuts: int, missing: float, categorical: float, whole: bool, kind: str, growth: str,
    limit: Limits, drawn: float | None, subset: bool, order: str, tuning: str, wide: bool,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    data = random_case(
        seed, n, d, most_cuts=most_cuts, missing=missing, categorical=categorical, weights="whole" if whole else "none"
    ).data
    gradients = random_gradients(rng, n, kind, data.multiplicity)
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    features = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False)).astype(np.int32) if subset else None
    assert_same(device(order, tuning, wide), GROWTHS[growth](limit), data, gradients, rows, features)


def shaped(n: int, d: int, bins: int, seed: int = 0) -> tuple[TrainingSet, Gradients]:
    """Random codes, a fiftieth of them missing; gradients of -1 and 1 that follow the first and the last feature."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, bins, (n, d)).astype(np.uint8)
    codes[rng.random((n, d)) < 0.02] = bins
    cuts = Cuts((np.arange(bins - 1.0),) * d, (None,) * d)
    g = rng.normal(size=n) + codes[:, 0] * 0.01 + (codes[:, -1] > bins // 2)
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(n))
    return data, Gradients(np.where(g > 1.0, 1.0, -1.0).astype(np.float32)[None], np.ones((1, n), np.float32))


@pytest.mark.parametrize(
    ("n", "d", "bins", "growth"),
    [
        (70_000, 3, 200, DepthWise(Limits(16, 4))),  # more rows than 32 bits add up: pairs of 2 x 16 bits
        (1_000, 310, 60, DepthWise(Limits(16, 4))),  # ten tiles of features
        (20_000, 2, 255, DepthWise(Limits(65_536, 16))),  # more lines than are counted in shared memory
        (5_000, 5, 100, LeafWise(Limits(127, 62))),
        (5_000, 28, 255, Oblivious(Limits(256, 5, 3))),
    ],
)
def test_large_shapes(n: int, d: int, bins: int, growth: Growth) -> None:
    data, gradients = shaped(n, d, bins)
    assert n <= 65_535 or not scales_of(gradients, 0, n)["wide"][0]
    assert_same(device("forward"), growth, data, gradients, definition=TEAMS[2])


def test_stretches_end_where_32_bits_do() -> None:
    """All rows in one bin, with the largest gradients that 16 bits hold: 65,535 of them fill 32 bits."""
    n = 140_000
    codes = np.zeros((n, 2), np.uint8)
    codes[: n // 3, 1] = 1
    cuts = Cuts((np.empty(0), np.zeros(1)), (None, None))
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(n))
    g = np.where(codes[:, 1] == 1, -32767.0, 32767.0).astype(np.float32)
    gradients = Gradients(g[None], np.full((1, n), 65535.0, np.float32))
    on = Device(runtime_of("forward"), Tuning(least_rows=65_535, stretches=1))
    tree = assert_same(on, DepthWise(Limits(4, 2)), data, gradients, definition=TEAMS[2])
    assert not scales_of(gradients, 0, n)["wide"][0]
    assert tree.nodes.count.tolist() == [n, n - n // 3, n // 3]


@pytest.mark.parametrize("growth", sorted(GROWTHS))
@pytest.mark.parametrize(
    ("weights", "limit", "tuning"),
    [("none", Limits(64, 6), "everyday"), ("whole", Limits(20, 8, min_samples_leaf=30), "half")],
)
def test_sets_of_categories(growth: str, weights: str, limit: Limits, tuning: str) -> None:
    """Enough rows of each category for sets of them to be formed, with rare and missing ones among them."""
    rng, n, counts = np.random.default_rng(4), 2_500, (12, 40, 254, 6, 4, 3)
    codes = [np.minimum(rng.geometric(0.7 * min(1.0, 3.0 / b), n), b) for b in counts]
    codes = np.stack([*codes, *rng.integers(0, 200, (2, n))], axis=1).astype(np.uint8)
    cuts = Cuts((np.empty(0),) * len(counts) + (np.arange(199.0),) * 2, (*(np.arange(b) for b in counts), None, None))
    data = weighted(TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(n)), weights, rng)
    noise = random_gradients(rng, n, "plain", data.multiplicity)
    g = noise.g + np.float32(2.0) * rng.normal(size=255).astype(np.float32)[codes[:, 2]]
    nodes = assert_same(
        device("random", tuning), GROWTHS[growth](limit), data, replace(noise, g=g), definition=TEAMS[2]
    ).nodes
    assert max(bin(int.from_bytes(words.tobytes(), "little")).count("1") for words in nodes.left_set) > 4


@pytest.mark.parametrize("growth", sorted(GROWTHS))
def test_an_arena_keeps_nothing_of_the_last_tree(growth: str) -> None:
    """The same memory serves trees of other gradients, fewer rows and other candidates."""
    on = Device(runtime_of("random"), TUNINGS["shared out"])
    data = random_case(5, 300, 9, weights="whole").data
    policy = GROWTHS[growth](Limits(24, 5))
    for seed, kind in enumerate(("plain", "heavy", "zero", "spike", "plain")):
        rng = np.random.default_rng(seed)
        gradients = random_gradients(rng, 300, kind, data.multiplicity)
        features = np.sort(rng.choice(9, 1 + seed, replace=False)).astype(np.int32)
        assert_same(on, policy, data, gradients, None, features)
        assert_same(on, policy, data, gradients, np.arange(seed * 20, 300 - seed, dtype=np.int32)[: 295 - 40], None)
    assert len(on.arenas) <= 7


def test_what_is_not_finite_leaves_a_single_leaf() -> None:
    """The host is told by the state's flag; kernels must come to an end whatever the numbers are."""
    on, data = device(), random_case(1, 60, 3).data
    state = np.zeros(1, tree.STATE)
    state["error"], state["m"], state["weight"] = 1, 60, 60
    g = np.full((1, 60), np.nan, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("support.growing_on_device.scales_of", lambda *_: state.copy())
        found = grow(on, DepthWise(Limits(8, 3)), data, Gradients(g, np.abs(g)))
    assert found.nodes.feature.tolist() == [-1]
    assert found.sums is not None
    assert [float(sums[0]) for sums in found.sums] == [0.0, 0.0]
    assert not found.leaf_of_row.any()


def test_every_row_is_in_the_leaf_that_the_tree_sends_it_to() -> None:
    data, gradients = shaped(3_000, 6, 40)
    for growth in (DepthWise(Limits(40, 7)), LeafWise(Limits(40, 20)), Oblivious(Limits(64, 6))):
        found = grow(device(), growth, data, gradients)
        assert np.array_equal(found.leaf_of_row, route(found.nodes, dense_rows(data.bins), data.cuts))


# What it costs.


def test_launches_of_a_tree() -> None:
    """Depth 8: a root, eight levels of two, seven histograms of children; nothing waits, and nothing is copied."""
    runtime = emulated_runtime()
    on, (data, gradients) = Device(runtime), shaped(500, 28, 60)
    counts = {}
    for kind, growth in (("depthwise", DepthWise(Limits(256, 8))), ("oblivious", Oblivious(Limits(256, 8)))):
        grow(on, growth, data, gradients)  # compiles, and uploads the candidates
        every = Candidates(np.arange(28, dtype=np.int32))
        tree = on.planted(data, Target(0, None, gradients), 0, every, growth.limits)
        before = runtime.cp.counts.copy()
        tree.grow()
        counts[kind] = runtime.cp.counts - before
    shared = {"kernel root_histogram": 1, "kernel route": 8, "kernel list_histogram": 7}
    assert counts["depthwise"] == {**shared, "kernel evaluate": 8}
    assert counts["oblivious"] == {**shared, "kernel complete_histograms": 8, "kernel evaluate_level": 8}


def test_leaf_wise_growth_takes_few_rounds() -> None:
    """One split at a time would pass over all rows 126 times."""
    runtime = emulated_runtime()
    data, gradients = shaped(2_000, 5, 100)
    found = grow(Device(runtime), LeafWise(Limits(127, 62)), data, gradients)
    assert found.nodes.is_leaf.sum() == 127
    assert runtime.cp.counts["kernel route"] <= 20


def test_a_plan_knows_the_memory_it_takes() -> None:
    runtime = emulated_runtime()
    data, gradients = shaped(5_000, 40, 100)
    growth = LeafWise(Limits(31, 8, 5))
    on = Device(runtime, spare=0)
    before = runtime.cp.used()
    grow(on, growth, data, gradients)
    ((plan, *_),) = on.arenas
    taken = runtime.cp.used() - before
    assert plan == ArenaPlan.of(5_000, data.cuts, growth.limits, runtime.sm_count)
    assert 0 <= taken - plan.bytes() < 20_000 + 64 * data.cuts.n_features  # lists of features, limits


# The records.


RECORDS = {"State": tree.STATE, "Node": tree.NODE, "Line": tree.LINE, "Route": tree.ROUTE,
           "Tile": tree.TILE, "Rule": tree.RULE}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_numpy_and_the_compiler_agree_on_a_record(name: str) -> None:
    """Names, order, offsets and sizes."""
    record = RECORDS[name]
    offsets = ", ".join(f"(i32)offsetof({name}, {field})" for field in record.names)
    text = f"""
    #ifndef offsetof
    #define offsetof(type, member) __builtin_offsetof(type, member)
    #endif
    extern "C" __global__ void measure(i32 *out) {{
        const i32 all[] = {{(i32)sizeof({name}), {offsets}}};
        for (i32 i = 0; i < (i32)(sizeof(all) / 4); ++i) out[i] = all[i];
    }}"""
    runtime = runtime_of("forward")
    out = runtime.zeros(1 + len(record.names), np.int32)
    runtime.kernel(source("common/common.cuh", "common/tree.cuh") + text, "measure")((1,), (1,), (out,))
    measured = runtime.download(out).tolist()
    assert measured == [record.itemsize, *(record.fields[field][1] for field in record.names)]
    header = resources.files("gpuboost.kernels").joinpath("common/tree.cuh").read_text()
    body = re.search(rf"struct (?:alignas\(16\) )?{name} {{(.*?)\n}};", header, re.DOTALL)
    declared = re.findall(r"^ +(?:f64|i64|i32|u32) ([^;]+);", body[1], re.MULTILINE)
    names = [re.sub(r"\[.*", "", part.strip()) for line in declared for part in line.split(",")]
    assert names == list(record.names)


def test_levels_beyond_the_static_ones_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tree, whether the host looks or not."""
    data, gradients = shaped(800, 4, 50)
    for looked_at in (1, 3, 12):
        monkeypatch.setattr(grower, "STATIC_LEVELS", looked_at)
        assert_same(device(), DepthWise(Limits(60, 14)), data, gradients, definition=TEAMS[2])


# What no order of the threads shows.

UNDER_A_SANITIZER = """
import sys
import numpy as np
from emulator import FakeCupy, Schedule
from support.builders import grow, random_case, random_gradients
from support.growing_on_device import Device
from gpuboost.backends.cuda.plan import Tuning
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.types import Limits

policies = {"depthwise": DepthWise, "leafwise": LeafWise, "oblivious": Oblivious}
build, growth = sys.argv[1], policies[sys.argv[2]](Limits(8, 3, 2))
data = random_case(2, 2100, 3, most_cuts=30, weights="whole").data
gradients = random_gradients(np.random.default_rng(2), 2100, "plain", data.multiplicity)
runtime = CupyRuntime(FakeCupy(Schedule(chained=False), build, multiprocessors=1), name="emulated")
for tuning in (Tuning(least_rows=64, stretches=6), Tuning(1, 1, 64, 6)):
    assert len(grow(Device(runtime, tuning), growth, data, gradients).nodes.feature) > 5
"""


@pytest.mark.slow
@pytest.mark.parametrize("growth", sorted(GROWTHS))
@pytest.mark.parametrize("build", ["thread", "address", "undefined"])
def test_no_race_and_no_stray_access(build: str, growth: str) -> None:
    result = sanitized(build, UNDER_A_SANITIZER, build, growth)
    assert (result.returncode, result.stdout) == (0, "")
