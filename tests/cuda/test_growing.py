"""Growth of a tree by the CUDA driver: sums that fill 32 bits, its memory, its launches, its records, its races.

That its trees are those of the definition, bit for bit, is in tests/parity/trees/test_trees.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from emulator import emulated_runtime
from emulator.sanitizer import sanitized
from support.builders import TEAMS, grow, random_case, random_gradients, structure_bytes
from support.examples import daily
from support.growing_on_device import TUNINGS, Device, device, runtime_of, scales_of, shaped

from gpuboost.backends.cuda.device.runtime import source
from gpuboost.backends.cuda.outputs import one_tree
from gpuboost.backends.cuda.trees import grower, plan, tree
from gpuboost.backends.cuda.trees.plan import ArenaPlan, Tuning
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious
from gpuboost.types import Candidates, Cuts, DenseBins, Gradients, Limits, Structure, Target, TrainingSet

Array = np.ndarray
GROWTHS = {"depthwise": DepthWise, "leafwise": LeafWise, "oblivious": Oblivious}


def assert_same(
    on: Device, growth: Growth, data: TrainingSet, gradients: Gradients, rows: Array | None = None,
    features: Array | None = None, definition: object = None,
) -> Structure:  # fmt: skip
    expected = grow(definition or Reference(), growth, data, gradients, rows, features)
    found = grow(on, growth, data, gradients, rows, features)
    assert structure_bytes(found) == structure_bytes(expected)
    return expected


@pytest.mark.slow
def test_stretches_end_where_32_bits_do() -> None:
    """All rows in one bin, with the largest gradients that 16 bits hold: 65,535 of them fill 32 bits."""
    n = 140_000
    codes = np.zeros((n, 2), np.uint8)
    codes[: n // 3, 1] = 1
    cuts = Cuts((np.empty(0), np.zeros(1)), (None, None))
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(n))
    g = np.where(codes[:, 1] == 1, -32767.0, 32767.0).astype(np.float32)
    gradients = Gradients(g[None], np.full((1, n), 65535.0, np.float32))
    on = Device(runtime_of("forward"), Tuning(least_rows=65_535, shares=1))
    tree = assert_same(on, DepthWise(Limits(4, 2)), data, gradients, definition=TEAMS[2])
    assert not scales_of(gradients, 0, n)["wide"][0]
    assert tree.nodes.count.tolist() == [n, n - n // 3, n // 3]


@pytest.mark.parametrize(
    ("leaves", "most", "waits"), [(10, 32, False), (8, 7, False), (8, 6, True), (2, 1, False), (1, 0, False)]
)
def test_a_chain_of_leaves_is_grown_to_its_end(
    leaves: int, most: int, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaf-wise growth in as many passes as there can be, of more than ``most`` + 1 leaves by asking for the end."""
    looks: list[grower.TreeOnDevice] = []
    look = grower.TreeOnDevice._look
    monkeypatch.setattr(grower.TreeOnDevice, "_look", lambda self: looks.append(self) or look(self))
    monkeypatch.setattr(plan, "BLIND_PASSES", most)
    n = 20
    codes = np.arange(n, dtype=np.uint8)[:, None]
    cuts = Cuts((np.arange(n - 1) + 0.5,), (None,))
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(n))
    gradients = Gradients(-(3.0 ** np.arange(n, dtype=np.float32))[None], np.ones((1, n), np.float32))
    found = assert_same(Device(runtime_of("forward")), LeafWise(Limits(leaves, 62)), data, gradients)
    nodes, splits = found.nodes, np.flatnonzero(~found.nodes.is_leaf)
    assert len(splits) == leaves - 1
    assert (nodes.is_leaf[nodes.left[splits]] | nodes.is_leaf[nodes.right[splits]]).all()
    assert (len(looks) > 0) == waits


def test_passes_without_a_look_are_few_where_leaves_are_many() -> None:
    for leaves, passes in ((33, 32), (34, 7), (64, 10), (256, 12), (1_025, 15)):
        limits = Limits(leaves, 62, growth="leafwise")
        made = ArenaPlan.of(10_000, random_case(1, 40, 3).data.cuts, limits, emulated_runtime())
        most_splits = plan.splits_of_pass(leaves)
        assert made.blind_passes(most_splits, shared_rows=False) == passes
        assert made.blind_passes(most_splits, shared_rows=True) == 0
        in_batches = replace(made, batch=made.lines_of(most_splits) - 1)
        assert in_batches.blind_passes(most_splits, shared_rows=False) == 0


@pytest.mark.parametrize(("leaves", "depth"), [(2, 1), (8, 3), (31, 5), (31, 62), (64, 6)])
def test_a_pass_is_one_batch(leaves: int, depth: int) -> None:
    limits = Limits(leaves, depth, growth="leafwise")
    made = ArenaPlan.of(10_000, random_case(1, 40, 3).data.cuts, limits, emulated_runtime())
    assert made.blind_passes(plan.splits_of_pass(leaves), shared_rows=False) > 0


@pytest.mark.slow
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


# What it costs.


@pytest.mark.slow
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


@pytest.mark.slow
def test_leaf_wise_growth_takes_few_rounds() -> None:
    """One split at a time would pass over all rows 126 times."""
    runtime = emulated_runtime()
    data, gradients = shaped(2_000, 5, 100)
    found = grow(Device(runtime), LeafWise(Limits(127, 62)), data, gradients)
    assert found.nodes.is_leaf.sum() == 127
    assert runtime.cp.counts["kernel route"] <= 20


@pytest.mark.slow
def test_a_plan_knows_the_memory_it_takes() -> None:
    runtime = emulated_runtime()
    data, gradients = shaped(5_000, 40, 100)
    growth = LeafWise(Limits(31, 8, 5))
    on = Device(runtime, spare=0)
    before = runtime.cp.used()
    grow(on, growth, data, gradients)
    ((plan, *_),) = on.arenas
    taken = runtime.cp.used() - before
    assert plan == ArenaPlan.of(5_000, data.cuts, growth.limits, runtime)
    assert 0 <= taken - plan.bytes() < 20_000 + 64 * data.cuts.n_features  # lists of features, limits


# The records.


RECORDS = {"State": tree.STATE, "Node": tree.NODE, "Line": tree.LINE, "Route": tree.ROUTE,
           "Rule": tree.RULE, "VectorNode": one_tree.VECTOR_NODE}  # fmt: skip
HEADERS = ("common/common.cuh", "common/blocks.cuh", "common/tree.cuh", "splits/vector_split.cu")


@pytest.mark.slow
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
    runtime.kernel(source(*HEADERS) + text, "measure")((1,), (1,), (out,))
    measured = runtime.download(out).tolist()
    assert measured == [record.itemsize, *(record.fields[field][1] for field in record.names)]
    header = "".join(resources.files("gpuboost.kernels").joinpath(file).read_text() for file in HEADERS)
    body = re.search(rf"struct (?:alignas\(16\) )?{name} {{(.*?)\n}};", header, re.DOTALL)
    declared = re.findall(r"^ +(?:f64|i64|i32|u32|CategoryLimits) ([^;]+);", body[1], re.MULTILINE)
    names = [re.sub(r"\[.*", "", part.strip()) for line in declared for part in line.split(",")]
    assert names == list(record.names)


@pytest.mark.parametrize("looked_at", daily([2, 12], 1))
def test_levels_beyond_the_static_ones_are_asked_for(looked_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tree, whether the host looks or not."""
    data, gradients = shaped(400, 4, 50)
    monkeypatch.setattr(grower, "STATIC_LEVELS", looked_at)
    assert_same(device(), DepthWise(Limits(60, 14)), data, gradients, definition=TEAMS[2])


# What no order of the threads shows.

UNDER_A_SANITIZER = """
import sys
import numpy as np
from emulator import FakeCupy, Schedule
from support.builders import grow, random_case, random_gradients
from support.growing_on_device import Device
from gpuboost.backends.cuda.trees.plan import Tuning
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.types import Limits

build, limits = sys.argv[1], Limits(8, 3, 2)
data = random_case(2, 2100, 3, most_cuts=30, weights="whole").data
gradients = random_gradients(np.random.default_rng(2), 2100, "plain", data.multiplicity)
runtime = CupyRuntime(FakeCupy(Schedule(chained=False), build, multiprocessors=1), name="emulated")
for growth in (DepthWise(limits), LeafWise(limits), Oblivious(limits)):
    for tuning in (Tuning(least_rows=64, shares=6), Tuning(1, 1, 64, 6)):
        assert len(grow(Device(runtime, tuning), growth, data, gradients).nodes.feature) > 5
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("build", ["thread", "address"])
def test_no_race_and_no_stray_access(build: str) -> None:
    result = sanitized(build, UNDER_A_SANITIZER, build)
    assert (result.returncode, result.stdout) == (0, "")
