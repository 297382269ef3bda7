"""Every CUDA C module that the drivers ask for, found by asking: small trainings on the emulator.

``cd tests && python -m support.cuda_modules`` writes kernels/RESOURCES.md, the table of what each kernel takes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from emulator import emulated_runtime
from support.builders import Case, random_case
from support.cuda_compiler import ARCHITECTURES, CUPY_ADDS, Resources, device_compiler, resources

from gpuboost import metrics
from gpuboost.backends.cuda import leaves
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.device.collective import Alone
from gpuboost.backends.cuda.device.runtime import HAVE_CLUSTERS
from gpuboost.backends.cuda.device.sources import OPTIONS
from gpuboost.backends.cuda.inputs.matrix import CudaMatrix
from gpuboost.backends.cuda.trees.all_reduce import RowsOfGpu
from gpuboost.backends.cuda.trees.arena import Arena
from gpuboost.backends.cuda.trees.plan import ArenaPlan
from gpuboost.base_learners.best_of_families import BestOfFamilies
from gpuboost.boosting import boost
from gpuboost.data.category_groups import grouped
from gpuboost.growth import DepthWise, LeafWise, Oblivious, SignStump
from gpuboost.langevin import Langevin
from gpuboost.learners import Linear, RandomByNode, RandomGroups
from gpuboost.losses import (
    XENDCG,
    AbsoluteError,
    Huber,
    LambdaMART,
    Logistic,
    Poisson,
    Softmax,
    SquaredError,
    StochasticRank,
    registry,
)
from gpuboost.losses.per_output import PerOutput
from gpuboost.model.answers import decision_answer, labels_answer, predictions_answer, probabilities_answer
from gpuboost.multi_output import EveryOutput, OneTree, RandomOutputs, RandomProjection
from gpuboost.recipe import Recipe
from gpuboost.sampling import ImportanceSampling, UniformSampling, smart_second_order
from gpuboost.steps import GradientStep, LineSearchStep, automatic
from gpuboost.types import Cuts, Interactions, Limits, Pairs, Progress, TrainingSet

Asked = tuple[str, tuple[DeviceFunction, ...]]  # a text of CUDA C, and the Python functions that are linked with it
TABLE = Path(__file__).resolve().parents[2] / "kernels" / "RESOURCES.md"


@cache
def usual() -> frozenset[Asked]:
    """The modules of data that live on a device, and of trainings that between them reach every file."""
    return frozenset[Asked]().union(*(of_files(case()) for case in cases()))


def oldest_of(text: str) -> int:
    """The first architecture that a module is for."""
    return HAVE_CLUSTERS if "__cluster_dims__" in text else ARCHITECTURES[0]


def of_files(asked: set[Asked]) -> set[Asked]:
    """Without kernels whose text is Python: kernels/LINKED.md has these."""
    return {(text, functions) for text, functions in asked if "#line 1 " in text}


def cases() -> tuple[Callable[[], set[Asked]], ...]:
    """The work that asks for these modules, in parts."""
    wide = random_case(1, 400, 28, full=True, most_cuts=200, missing=0.0, categorical=0.0)
    few = random_case(2, 150, 3, target="3", most_cuts=9)
    some = random_case(3, 150, 6, most_cuts=30)
    ranked = replace(random_case(7, 150, 3, target="4"), data=in_lists(random_case(7, 150, 3, target="4").data))
    level_wise = Recipe(SquaredError(), 2, growth=Oblivious(Limits(8, 3)))
    disturbed = Limits(8, 3, random_strength=1.0)
    extra = Limits(8, 3, extra_trees=True)
    smooth = Limits(8, 3, path_smooth=5.0)
    in_sets = Limits(8, 3, interactions=Interactions(((0, 1, 2), (2, 3, 4, 5))))
    controlled = Recipe(SquaredError(), 2, sampling=smart_second_order(0.5))
    drawn = Recipe(SquaredError(), 2, step=GradientStep(), langevin=Langevin(random_from=1))
    stumps = Recipe(SquaredError(), 2, growth=SignStump(Limits(2, 1)), learners=RandomByNode(3))
    drawn_rows = replace(controlled, sampling=UniformSampling(0.5))
    trainings = (
        (wide, Recipe(SquaredError(), 2, growth=DepthWise(Limits(8, 3)))),
        # one round: the graph of a second one joins the kernels of several trees, which have a test of their own
        (few, Recipe(Softmax(3), 1, growth=LeafWise(Limits(6, 6, 2)), sampling=UniformSampling(0.7))),
        (some, Recipe(AbsoluteError(), 2, growth=DepthWise(Limits(6, 6)), step=automatic(AbsoluteError()))),
        (some, level_wise),
        (some, controlled),
        (some, replace(controlled, sampling=ImportanceSampling(0.5, frozen_from=0))),
        (ranked, Recipe(LambdaMART(), 2, growth=DepthWise(Limits(8, 3)))),
        (ranked, Recipe(StochasticRank(scale_free=True), 2, step=GradientStep())),
        (ranked, Recipe(XENDCG(), 2)),
        (some, drawn),
        (some, replace(drawn, langevin=Langevin())),
        (some, stumps),
        (some, replace(level_wise, learners=RandomGroups(3))),
        *(
            (some, Recipe(loss, 2, growth=DepthWise(Limits(6, 6)), step=LineSearchStep(per)))
            for loss, per in ((Huber(), "leaf"), (AbsoluteError(), "tree"))
        ),
        *(
            (some, Recipe(SquaredError(), 1, growth=growth(limits)))
            for growth, limits in product((DepthWise, Oblivious), (disturbed, extra))
        ),
        (some, replace(drawn_rows, base_learner=BestOfFamilies((Linear(),)))),
        *(
            (few, Recipe(Softmax(3), 1, growth=DepthWise(Limits(8, 3, 2)), multi_output=OneTree(sketch)))
            for sketch in (EveryOutput(), RandomOutputs(2), RandomProjection(2))
        ),
        (few, Recipe(Softmax(3), 1, sampling=smart_second_order(0.5), multi_output=OneTree())),
        (wide, Recipe(SquaredError(), 2, growth=DepthWise(Limits(8, 3, directions=(1,) * 28)))),
        *(
            (some, Recipe(SquaredError(), 1, growth=growth(limits)))
            for growth, limits in product((DepthWise, Oblivious), (in_sets, Limits(8, 3, reg_alpha=1.0), smooth))
        ),
    )
    return (
        *(partial(_asked, case, recipe) for case, recipe in trainings),
        *(partial(_asked_of_matrix, dtype) for dtype in (np.float32, np.float64, np.int32)),
        *(partial(_asked_by_groups, dtype) for dtype in (np.float32, np.float64)),
        _asked_by_shards,
        _asked_by_metrics,
        _asked_by_answers,
        _asked_by_repeated_rounds,
        _asked_by_clusters,
    )


def others() -> frozenset[Asked]:
    """Those of every loss of a row, and of every shape of a tree's data."""
    texts: set[Asked] = set()
    for loss in (registry.get(name, n_classes=3) for name in registry.NAMES):
        case = random_case(
            4, 60, 2, target={"binary": "binary", "multiclass": "3", "ranking": "4"}.get(loss.task, "positive")
        )
        data = in_lists(case.data) if loss.task == "ranking" else case.data
        data = replace(data, pairs=Pairs(np.array([0]), np.array([1])))  # which most losses do not look at
        texts |= _asked(replace(case, data=data), Recipe(loss, 1, step=automatic(loss)))
        if loss.convex and loss.task != "ranking":
            texts |= _asked(case, Recipe(loss, 1, step=LineSearchStep()))
    runtime = emulated_runtime()
    for d, cells, least, categorical in product((4, 8, 16, 32, 64), (60, 120, 250), (1, 2), (False, True)):
        category = np.arange(3) if categorical else None
        cuts = Cuts((np.arange(float(cells)),) * (d - 1) + (np.arange(0.0),), (None,) * (d - 1) + (category,))
        Arena(runtime, ArenaPlan.of(10, cuts, Limits(4, 2, least), runtime), cuts)
    return (texts | runtime.cp.sources) - usual()


def _asked_by_groups(dtype: type) -> set[Asked]:
    """By target statistics of a categorical column."""
    runtime = emulated_runtime()
    codes = CudaMatrix.of(runtime, runtime.upload(np.arange(20, dtype=dtype).reshape(-1, 1) % 3))
    groups = grouped(codes, np.ones((20, 1)), None, {0: 3}, None, permutations=1, seed=0, threads=1)
    keys, _ = groups.totals((0,))
    groups.ordered((0,), np.ones(1), np.ones(1))
    groups.looked_up((0,), keys, np.ones(3), 0.0)
    runtime.wait()
    return runtime.cp.sources


def _asked_by_repeated_rounds() -> set[Asked]:
    """By rounds that a device repeats without the host."""
    runtime = emulated_runtime()
    case = random_case(1, 400, 28, full=True, most_cuts=200, missing=0.0, categorical=0.0)
    boost(
        Recipe(SquaredError(), 2 + 2 * leaves.PAYS, growth=DepthWise(Limits(8, 3))),
        case.data,
        Cuda(runtime),
        together=2,
    )
    return runtime.cp.sources


def _asked_by_clusters() -> set[Asked]:
    """By trees that are grown in one launch, with as many features to a block as there can be."""
    runtime = emulated_runtime()
    runtime.use_clusters(True)
    for d, bins in ((8, 60), (20, 255), (32, 60)):
        case = random_case(1, 300, d, full=True, most_cuts=bins - 1, missing=0.0, categorical=0.0)
        boost(Recipe(SquaredError(), 2, growth=DepthWise(Limits(8, 3))), case.data, Cuda(runtime))
    return {asked for asked in runtime.cp.sources if name_of(asked[0])[0] == "growth/cluster_tree.cu"}


def _asked_by_metrics() -> set[Asked]:
    """By metrics of scores."""
    rng, n = np.random.default_rng(9), 90
    runtime = emulated_runtime()
    backend, data = Cuda(runtime), in_lists(random_case(9, n, 3, target="binary").data)
    for name, loss in (
        *product(("auc", "average_precision", "accuracy", "brier"), (Logistic(),)),
        *product(("accuracy", "mcc", "auc_ovr", "brier"), (Softmax(3),)),
        *product(("ndcg", "map"), (LambdaMART(),)),
    ):
        metric = metrics.get(name, loss)
        scores = runtime.upload(rng.normal(size=(loss.n_outputs, n)))
        assert metric.score_metric is not None
        y = rng.permutation(n) % loss.n_outputs * 1.0 if loss.n_outputs > 1 else data.y
        asked = metric.score_metric(y, rng.gamma(1.0, size=n), loss, data.query_start)
        for _ in range(2):
            backend.score_metric(asked, scores)()
        with backend.recorded(0):
            backend.recorded_metric(asked, scores)
    return runtime.cp.sources


def _asked_by_answers() -> set[Asked]:
    """By callers whose rows lie on the device."""
    runtime = emulated_runtime()
    backend, classes = Cuda(runtime), np.arange(2)
    for loss in (Logistic(), Softmax(2), Poisson(), PerOutput(SquaredError(), 2), PerOutput(Logistic(), 2)):
        scores = runtime.upload(np.zeros((loss.n_outputs, 5)))
        of_classes = () if loss.task == "regression" else (probabilities_answer(loss), labels_answer(loss, classes))
        for asked in (predictions_answer(loss), *of_classes, decision_answer(loss)):
            if asked.rule is not None:
                backend.answer(asked, scores)
    runtime.wait()
    return runtime.cp.sources


def _asked_by_shards() -> set[Asked]:
    """By one of several GPUs: what others have is added up between its launches."""
    texts: set[Asked] = set()
    for target, recipe in (
        ("real", Recipe(SquaredError(), 1)),
        ("real", Recipe(registry.get("absolute_error"), 1, step=automatic(registry.get("absolute_error")))),
        ("3", Recipe(registry.get("softmax", n_classes=3), 1, growth=Oblivious(Limits(6, 6, 2)))),
        ("3", Recipe(registry.get("softmax", n_classes=3), 1, multi_output=OneTree(RandomOutputs(2)))),
    ):
        case = random_case(4, 60, 2, target=target)
        runtime, share = emulated_runtime(), RowsOfGpu(Alone(), 0, 60, 60, 1, 1.0)
        backend = Cuda(runtime, share)

        def loss_too(progress: Progress, backend: Cuda = backend, case: Case = case, recipe: Recipe = recipe) -> bool:
            backend.loss_value(recipe.loss, progress.scores, case.data.y, None)
            return False

        boost(recipe, case.data, backend, watch=loss_too)
        texts |= runtime.cp.sources
    return texts


def in_lists(data: TrainingSet) -> TrainingSet:
    """The rows as documents, thirty to a query."""
    return replace(data, query_start=np.arange(0, data.n_rows + 1, 30))


def _asked(case: Case, recipe: Recipe) -> set[Asked]:
    backend = Cuda(runtime := emulated_runtime())
    data = replace(case.data, x=case.x)
    ensemble, x = boost(recipe, data, backend), case.x.astype(np.float32)
    backend.predict(ensemble, x)
    if not ensemble.components:
        backend.interactions(ensemble, x[:20])
    return runtime.cp.sources


def _asked_of_matrix(dtype: type) -> set[Asked]:
    runtime = emulated_runtime()
    CudaMatrix.of(runtime, runtime.upload(np.ones((3, 2), dtype))).first_infinite()
    return runtime.cp.sources


def name_of(text: str) -> tuple[str, str]:
    """The .cu file that a module is about, and the macros that this variant of it was given."""
    before, *_ = text.partition("#line 1 ")
    macros = re.findall(r"^#define ([A-Z_]+) (\w+)$", before, re.MULTILINE)
    return re.findall(r'^#line 1 "(\S+)"$', text, re.MULTILINE)[-1], ", ".join(
        f"{name} {value}" for name, value in macros
    )


def rows(architectures: tuple[int, ...] = ARCHITECTURES) -> dict[tuple[str, str, str], tuple[Resources | None, ...]]:
    """(file, variant, kernel) -> the most that it takes on each architecture it is for, over texts of one name."""
    found: dict[tuple[str, str, str], list[tuple[Resources | None, ...]]] = defaultdict(list)
    for text, functions in usual():
        on = [resources(text, one, functions) if one >= oldest_of(text) else None for one in architectures]
        for kernel in on[-1] or ():
            found[*name_of(text), kernel].append(tuple(one[kernel] if one else None for one in on))
    return {name: max(several, key=str) for name, several in sorted(found.items())}


def table() -> str:
    """What each kernel of the usual modules takes on each architecture, as Markdown."""
    lines = [
        "# What the kernels take",
        "",
        f"By {device_compiler().version} with `{' '.join((*OPTIONS, *CUPY_ADDS))}`: registers of a thread, and bytes",
        "spilled from them where there are any; bytes of shared memory of a block, without those asked for at launch.",
        "Written by `cd tests && python -m support.cuda_modules`; `tests/cuda/test_compile.py` holds the bounds.",
        "",
        f"| module | variant | kernel | shared | {' | '.join(f'sm_{one}' for one in ARCHITECTURES)} |",
        f"|---|---|---|--:|{'--:|' * len(ARCHITECTURES)}",
    ]
    for (file, variant, kernel), taken in rows().items():
        cells = (f"{one.registers}" + f" ({one.spills} spilled)" * (one.spills > 0) if one else "" for one in taken)
        shared = max(one.shared for one in taken if one)
        lines.append(f"| {file} | {variant} | `{kernel}` | {shared:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
