"""Small fits that between them call every compiled kernel of the CPU.

``python -m support.hostile.every_kernel`` runs them and prints, as JSON, their names, the kernels that were called and
those that were not. ``few`` behind it has the cases that cross parameters run in few of their combinations.
With NUMBA_BOUNDSCHECK=1 and a cache folder of its own, every access to an array is checked on the way.
"""

from __future__ import annotations

import gc
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import cycle, islice, product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.core.dispatcher import Dispatcher

Array = np.ndarray
Combined = Callable[..., Iterable[tuple[Any, ...]]]


def kernels() -> dict[str, Any]:
    """Name -> compiled function, of every module of ``gpuboost.kernels``."""
    import gpuboost.kernels

    folder = Path(gpuboost.kernels.__file__).parent
    functions = {}
    for path in sorted(folder.glob("*/*.py")):
        if path.stem == "__init__":
            continue
        module = import_module(f"gpuboost.kernels.{path.parent.name}.{path.stem}")
        for name, value in vars(module).items():
            if hasattr(value, "overloads") and value.py_func.__module__ == module.__name__:
                functions[f"{path.parent.name}/{path.stem}.{name}"] = value
    return functions


def reached() -> tuple[list[str], list[str]]:
    """The kernels that were called, from Python or by a kernel that was, and the others."""
    functions = kernels()
    names = {id(function): name for name, function in functions.items()}
    new = [function for function in gc.get_objects() if issubclass(type(function), Dispatcher) and function.overloads]
    called: dict[int, Any] = {}
    while new:  # a kernel that is found on disk has those that it calls inside, and they are not compiled
        called |= {id(function): function for function in new}
        inside = [inner for function in new for inner in _callees(function) if isinstance(inner, Dispatcher)]
        new = [function for function in inside if id(function) not in called]
    inside = (function.py_func for function in called.values())  # those that functions make have no name in a module
    found = {_name(function) for function in inside if function.__module__.startswith("gpuboost.kernels.")}
    found |= {names[number] for number in called if number in names}
    return sorted(found), sorted(set(functions) - found)


def _name(function: Any) -> str:
    folder, module = function.__module__.split(".")[-2:]
    return f"{folder}/{module}.{function.__name__}"


def _callees(function: Any) -> list[Any]:
    """What a compiled function names or closes over: it holds the machine code of the kernels among these."""
    known, names = function.py_func.__globals__, function.py_func.__code__.co_names
    cells = (cell.cell_contents for cell in function.py_func.__closure__ or ())
    closed = [inner for value in cells for inner in (value if isinstance(value, tuple) else (value,))]
    named = [*closed, *(known[name] for name in names if name in known)]
    modules = [value for value in named if isinstance(value, ModuleType)]
    return [*named, *(getattr(module, name) for module in modules for name in names if hasattr(module, name))]


def data(n: int = 400, d: int = 5, seed: int = 0) -> tuple[Array, Array]:
    """Rows with missing values and a column of categories, and a target."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[:, 1] = rng.integers(0, 7, n)
    y = x[:, 0] + (x[:, 1] % 3) + 0.1 * rng.normal(size=n)
    x[rng.random(x.shape) < 0.05] = np.nan
    return x, y


def few(*axes: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """As many combinations of the axes as the longest has values: they hold each value."""
    return zip(*(islice(cycle(axis), max(map(len, axes))) for axis in axes), strict=True)


def cases(combined: Combined = product) -> Iterator[tuple[str, Callable[[], object]]]:
    """Name and run of each case.

    combined: which combinations of crossed parameters are run; all of them, or ``few``.
    """
    yield from _losses()
    yield from _growth(combined)
    yield from _sampling()
    yield from _learners()
    yield from _base_learners()
    yield from _layouts(combined)
    yield from _rankings()
    yield from _predictions()
    yield from _divided(combined)
    yield from _together(combined)
    yield from _repeated(combined)


def _fit(
    target: Array | None = None, rows: Any = None, kind: str = "Regressor", eval_set: Any = None, **params: Any
) -> Any:
    import gpuboost as gb

    x, y = data()
    made = getattr(gb, f"GradientBoosting{kind}")(**{"n_estimators": 3, "random_state": 0, "n_jobs": 2, **params})
    return made.fit(x if rows is None else rows, y if target is None else target, eval_set=eval_set)


def _losses() -> Iterator[tuple[str, Callable[[], object]]]:
    from gpuboost import DataParallel, LineSearchStep, losses

    _, y = data()
    positive, binary, three = np.exp(y / 4), y > 1, np.digitize(y, [0.5, 1.5])
    for name in ("squared_error", "huber", "absolute_error", "quantile", "gaussian_nll"):
        yield f"loss {name}", lambda name=name: _fit(loss=name)
    for name in ("poisson", "gamma", "tweedie"):
        yield f"loss {name}", lambda name=name: _fit(positive, loss=name)
    for name in ("logistic", "exponential", "logitboost", "smoothed_zero_one"):
        yield f"loss {name}", lambda name=name: _fit(binary, kind="Classifier", loss=name)
    yield "a line search per leaf", lambda: _fit(loss="huber", step=LineSearchStep("leaf"))
    yield "loss softmax", lambda: _fit(three, kind="Classifier")
    several = np.column_stack([y, y**2, -y])
    for loss in ("squared_error", "absolute_error"):
        yield f"three targets, {loss}", lambda loss=loss: _fit(several, loss=loss)
    for growth in ("depthwise", "leafwise"):
        shared = {"multi_output": "one_tree", "growth": growth, "max_leaves": 9}
        for machine in ({}, {"execution": DataParallel(2)}):
            given = {**shared, **machine, "categorical_features": [1]}
            yield f"one tree, {given}", lambda given=given: _fit(several, **given)
    own = losses.custom(lambda y, f: (y - f) ** 2, lambda y, f: 2.0 * (f - y), lambda y, f: 2.0, smoothness=2.0)
    yield "own loss", lambda: _fit(loss=own)
    for step in ("newton", "gradient", "constant", "line_search"):
        yield f"step {step}", lambda step=step: _fit(step=step)
        yield f"step {step}, classes", lambda step=step: _fit(binary, kind="Classifier", step=step)


def _growth(combined: Combined) -> Iterator[tuple[str, Callable[[], object]]]:
    for growth in ("depthwise", "leafwise", "oblivious"):
        constraints = [{"reg_alpha": 1.0, "interaction_cst": "pairwise"}, {"extra_trees": True}, {"path_smooth": 3.0}]
        constraints += [] if growth == "oblivious" else [{"monotonic_cst": [1, 0, -1, 0, 0]}]
        extras = ({}, {"random_strength": 1.0}, *constraints)
        for depth, extra, categories in combined((1, 3, 8), extras, (None, [1])):
            given = {"growth": growth, "max_depth": depth, "categorical_features": categories, **extra}
            given |= {"max_leaves": 20, "min_samples_leaf": 5} if growth == "leafwise" else {}
            yield f"{given}", lambda given=given: _fit(**given)
    yield "no gain", lambda: _fit(growth="oblivious", min_split_gain=1e9)
    for extra in ({}, {"learners": 3}, {"random_strength": 1.0}):
        yield f"sign stump {extra}", lambda extra=extra: _fit(growth="sign_stump", max_depth=1, **extra)
    yield "oblivious, leaves of seven", lambda: _fit(growth="oblivious", min_samples_leaf=7)
    yield "many bins", lambda: _fit(max_bins=255, min_samples_leaf=2)
    yield "few bins", lambda: _fit(max_bins=4)


def _sampling() -> Iterator[tuple[str, Callable[[], object]]]:
    import gpuboost as gb

    binary = data()[1] > 1
    samplers = (
        0.5,
        gb.GOSS(),
        gb.MVS(0.5),
        gb.ImportanceSampling(0.4),
        gb.ImportanceSampling(0.4, score="loss"),
        gb.ImportanceSampling(0.4, frozen_from=0),
        gb.ImportanceSampling(0.4, variance_control="previous_leaf"),
        gb.ImportanceSampling(0.4, variance_control="node"),
        gb.ImportanceSampling(0.4, variance_control="horvitz_thompson"),
        gb.smart_first_order(0.5),
        gb.smart_second_order(0.5),
    )
    for sampler in samplers:
        for growth in ("depthwise", "leafwise", "oblivious"):
            yield f"{sampler!r} {growth}", lambda s=sampler, g=growth: _fit(sampling=s, growth=g, max_depth=3)
    yield "trimming", lambda: _fit(binary, kind="Classifier", sampling=gb.WeightTrimming(0.9), loss="exponential")
    noisy = gb.Langevin(noise_scale=lambda g, h: 1.0 + abs(g), allow_unproven=True)
    yield "noise of a scale", lambda: _fit(langevin=noisy, max_depth=3)
    for first in (0, None):
        chain = gb.Langevin() if first is None else gb.Langevin(random_from=first)
        for growth in ("depthwise", "leafwise", "oblivious"):
            yield f"{chain} {growth}", lambda c=chain, g=growth: _fit(langevin=c, growth=g, max_depth=3)


def _learners() -> Iterator[tuple[str, Callable[[], object]]]:
    import gpuboost as gb

    rules = (
        (2, 3),
        (0.5, 3),
        (gb.RandomByNode(2), 3),
        (gb.RandomByLevel(2), 3),
        (gb.RandomLearners(50), 1),
        (gb.WeightedGroups(2, [1.0, 2.0, 3.0, 1.0, 1.0]), 3),
        (gb.CyclicGroups(1), 1),
        (gb.RandomGroup([0, 0, 1, 1, 1]), 3),
    )
    for rule, depth in rules:
        yield f"{rule!r}", lambda r=rule, d=depth: _fit(learners=r, max_depth=d)
    yield "asynchronous", lambda: _fit(execution=gb.Asynchronous(2))
    yield "shards", lambda: _fit(execution=gb.DataParallel(3))
    yield "shards, sampled", lambda: _fit(execution=gb.DataParallel(2), sampling=gb.MVS(0.5))


def _base_learners() -> Iterator[tuple[str, Callable[[], object]]]:
    from gpuboost import learners

    families = (
        learners.Linear(),
        learners.Spline(),
        learners.TensorSpline(pairs=((0, 2),)),
        learners.CategoricalRidge(),
        learners.LinearTree(),
        [learners.Linear(), learners.Spline(), learners.CategoricalRidge(), learners.Tree(max_depth=2)],
    )
    for family in families:
        yield f"{family!r}", lambda f=family: _additive(f)


def _additive(family: Any) -> None:
    for sampling in (None, 0.5):
        model = _fit(base_learner=family, categorical_features=[1], sampling=sampling)
        model.predict(data()[0])


def _layouts(combined: Combined) -> Iterator[tuple[str, Callable[[], object]]]:
    import gpuboost as gb

    rng = np.random.default_rng(1)
    wide = sp.random(400, 60, 0.05, "csr", np.float64, rng)
    target = np.asarray(wide.sum(axis=1)).ravel()
    matrices, growths = (wide, wide.tocsc(), wide.astype(np.float32)), ("depthwise", "leafwise", "oblivious")
    for matrix, growth, depth in combined(matrices, growths, (1, 4)):
        yield (
            f"sparse {matrix.format} {matrix.dtype} {growth} {depth}",
            lambda m=matrix, g=growth, d=depth: _fit(target, m, growth=g, max_depth=d).predict(m),
        )
    yield "sparse, leaves of five", lambda: _fit(target, wide, min_samples_leaf=5, n_jobs=3).predict(wide)
    yield "sparse, sampled", lambda: _fit(target, wide, sampling=gb.MVS(0.5)).predict(wide)
    x, y = data()
    for kind in (np.float32, np.float64, np.int16, np.uint8):
        rows = np.nan_to_num(x * 10).clip(0, 100).astype(kind)
        yield f"rows of {np.dtype(kind)}", lambda r=rows: _fit(None, r).predict(r)
    yield "columns first", lambda: _fit(None, np.asfortranarray(x)).predict(np.asfortranarray(x))
    weights = (rng.random(400), rng.integers(0, 3, 400))
    for weight in weights:
        for sampling in (None, 0.5, gb.GOSS()):
            yield (
                f"weights {weight.dtype} {sampling}",
                lambda w=weight, s=sampling: gb.GradientBoostingRegressor(n_estimators=3, sampling=s, n_jobs=2).fit(
                    x, y, w
                ),
            )
    many = np.column_stack([rng.integers(0, 600, 3000), rng.normal(size=3000)])
    yield "many categories", lambda: _fit(np.sin(many[:, 0]), many, categorical_features=[0]).predict(many)
    yield from _tall(rng.normal(size=(70_000, 3)))


def _tall(x: Array) -> Iterator[tuple[str, Callable[[], object]]]:
    import gpuboost as gb

    y = x[:, 0]
    for growth in ("depthwise", "leafwise", "oblivious"):
        yield f"tall {growth}", lambda g=growth: _fit(y, x, growth=g, n_estimators=2).predict(x)
    yield "tall, stumps", lambda: _fit(y, x, max_depth=1)
    for sampler in (gb.MVS(0.5), gb.GOSS()):
        yield f"tall, {sampler!r}", lambda s=sampler: _fit(y, x, sampling=s, n_estimators=2)


def _rankings() -> Iterator[tuple[str, Callable[[], object]]]:
    import gpuboost as gb

    x, y = data()
    grades, group = np.digitize(y, [0.0, 1.0, 2.0]), np.repeat(np.arange(8), 50)
    for loss in ("lambdamart", "pairwise_logistic"):
        for metric in ("ndcg", "map", "mrr"):
            yield (
                f"{loss} {metric}",
                lambda loss=loss, metric=metric: gb.GradientBoostingRanker(
                    n_estimators=3, loss=loss, eval_metric=metric, n_jobs=2
                ).fit(x, grades, group=group, eval_set=(x, grades, group)),
            )
    smoothed = gb.losses.StochasticRank(scale_free=True, samples=2)
    yield "stochastic_rank", lambda: gb.GradientBoostingRanker(smoothed, n_estimators=3).fit(x, grades, group=group)
    yield "xendcg", lambda: gb.GradientBoostingRanker("xendcg", n_estimators=3).fit(x, grades, group=group)
    clicks = gb.losses.UnbiasedLambdaMART(normalise=True)
    yield "clicks", lambda: gb.GradientBoostingRanker(clicks, n_estimators=3, n_jobs=2).fit(x, grades, group=group)
    one, names = np.zeros(400), np.arange(400) // 200
    yield "long lists", lambda: gb.GradientBoostingRanker(n_estimators=3).fit(x, grades, group=names)
    yield "equal grades", lambda: gb.GradientBoostingRanker(n_estimators=3).fit(x, one, group=names)


def _predictions() -> Iterator[tuple[str, Callable[[], object]]]:
    x, y = data()
    three = np.digitize(y, [0.5, 1.5])

    def answers(model: Any, rows: Any) -> None:
        model.predict(rows)
        list(model.staged_predict(rows))
        model.apply(rows)
        model.predict_contributions(rows)
        model.predict_interactions(rows)

    for name, model in (
        ("trees", lambda: _fit(categorical_features=[1])),
        ("classes", lambda: _fit(three, kind="Classifier")),
        ("deep", lambda: _fit(max_depth=None, max_leaves=200, growth="leafwise")),
        ("oblivious", lambda: _fit(growth="oblivious")),
        ("stumps", lambda: _fit(max_depth=1)),
    ):
        stored = () if name == "trees" else (sp.csr_matrix(np.nan_to_num(x)), sp.csc_matrix(np.nan_to_num(x)))
        for rows in (x, x[:1], x.astype(np.float32), *stored):
            yield f"answers of {name}", lambda m=model, r=rows: answers(m(), r)


def _divided(combined: Combined) -> Iterator[tuple[str, Callable[[], object]]]:
    """Small data divided among three threads, as large data is."""
    from support.builders import eager_threads

    def divided(run: Callable[[], object]) -> Callable[[], object]:
        def wrapped() -> object:
            with eager_threads(rows=8, narrow=30):
                return run()

        return wrapped

    for name, run in (*_divided_trees(combined), *_divided_losses()):
        yield name, divided(run)


def _together(combined: Combined) -> Iterator[tuple[str, Callable[[], object]]]:
    """Small trees that several threads grow in one call, as large ones."""
    from unittest.mock import patch

    from gpuboost.backends.cpu.compilation.background import Background
    from gpuboost.backends.cpu.trees import large_trees

    def together(given: dict[str, Any]) -> object:
        with patch.object(large_trees, "LEAST_ROWS", 1), patch.object(Background, "request", lambda *_: True):
            return _fit(**given)

    for growth, sampling, categories in combined(("depthwise", "leafwise", "oblivious"), (None, 0.5), (None, [1])):
        given = {"growth": growth, "sampling": sampling, "categorical_features": categories, "n_jobs": 3}
        yield f"together {given}", lambda given=given: together(given)
    for more, categories in combined(({"max_delta_step": 0.5}, {"interaction_cst": [[0, 1]]}), (None, [1])):
        given = {**more, "categorical_features": categories, "n_jobs": 3}
        yield f"together {given}", lambda given=given: together(given)


def _repeated(combined: Combined) -> Iterator[tuple[str, Callable[[], object]]]:
    """Rounds that are repeated in one call, which otherwise waits for a process that compiles it."""
    from unittest.mock import patch

    import gpuboost as gb
    from gpuboost.backends.cpu.repeated_rounds import RepeatedRounds

    def repeated(given: dict[str, Any]) -> object:
        with patch.object(RepeatedRounds, "waits", False):
            return _fit(n_jobs=1, **given)

    x, y = data()
    classes = {"target": np.digitize(y, [0.5, 1.5]), "kind": "Classifier"}
    draws: tuple[dict[str, Any], ...] = (
        {},
        {"sampling": 0.5},
        {"sampling": gb.MVS(0.5), "learners": 0.5},
        {"sampling": gb.GOSS()},
    )
    for several, categories, drawn in combined(({}, classes), (None, [1]), draws):
        given = {**several, **drawn, "categorical_features": categories, "n_estimators": 40 if drawn else 5}
        yield f"repeated {categories} {len(several)} {drawn}", lambda given=given: repeated(given)
    yield "repeated, leaf-wise", lambda: repeated({"growth": "leafwise", "max_leaves": 20, "max_depth": None})
    for categories, drawn in combined((None, [1]), ({}, {"sampling": 0.5, "learners": 0.5})):
        given = {**drawn, "categorical_features": categories, "n_estimators": 20, "min_samples_leaf": 7}
        yield f"repeated, leaves of seven, {given}", lambda given=given: repeated(given)
    for categories, drawn in combined((None, [1]), ({}, {"sampling": 0.5, "learners": 0.5})):
        given = {**drawn, "categorical_features": categories, "n_estimators": 20, "growth": "oblivious"}
        yield f"repeated, {given}", lambda given=given: repeated(given)
    node_draws: tuple[dict[str, Any], ...] = (
        {"extra_trees": True},
        {"learners": gb.RandomByNode(2)},
        {"learners": gb.RandomByLevel(2)},
        {"random_strength": 1.0},
    )
    for categories, drawn, least in combined((None, [1]), node_draws, (1, 7)):
        given = {**drawn, "categorical_features": categories, "n_estimators": 20, "min_samples_leaf": least}
        yield f"repeated, {given}", lambda given=given: repeated(given)
    sets = [[0, 1], [1, 2, 3, 4]]
    rules: tuple[dict[str, Any], ...] = (
        {"reg_alpha": 0.3},
        {"monotonic_cst": [1, 0, -1, 0, 0], "min_samples_leaf": 7},
        {"max_delta_step": 0.2, "extra_trees": True},
        {"interaction_cst": sets},
        {"interaction_cst": sets, "learners": gb.RandomByNode(2), "min_samples_leaf": 7},
        {"interaction_cst": "pairwise", "reg_alpha": 0.3},
        {"path_smooth": 2.0},
        {"path_smooth": 2.0, "sampling": 0.5, "monotonic_cst": [1, 0, -1, 0, 0]},
    )
    for categories, rule in combined((None, [1]), rules):
        given = {**rule, "categorical_features": categories, "n_estimators": 20}
        yield f"repeated, {given}", lambda given=given: repeated(given)
    for categories, several, drawn in combined((None, [1]), ({}, classes), ({}, {"sampling": 0.5})):
        given = {**several, **drawn, "categorical_features": categories, "n_estimators": 20}
        chain = gb.Langevin(allow_unproven=True)
        yield f"repeated, noise, {given}", lambda given=given, chain=chain: repeated({**given, "langevin": chain})
    yield "repeated, few rows to evaluate", lambda: repeated({"eval_set": [(x[:50], y[:50])]})


def _divided_trees(combined: Combined) -> Iterator[tuple[str, Callable[[], object]]]:
    rng = np.random.default_rng(2)
    wide = sp.random(3000, 80, 0.03, "csr", np.float64, rng)
    target, (x, y) = np.asarray(wide.sum(axis=1)).ravel(), data(3000)
    for columns in (80, 1500):
        marks = sp.random(3000, columns, 0.01, "csr", np.float64, rng, np.ones)
        for least in (1, 5):
            given = {"max_depth": 1, "min_samples_leaf": least, "n_jobs": 3}
            yield f"marks {columns} {given}", lambda marks=marks, given=given: _fit(target, marks, **given)
    for growth, sampling, depth, learners in combined(
        ("depthwise", "leafwise", "oblivious"), (None, 0.3), (1, 5), (0.3, None)
    ):
        given = {"growth": growth, "sampling": sampling, "max_depth": depth, "learners": learners, "n_jobs": 3}
        yield f"sparse {given}", lambda given=given: _fit(target, wide, **given).predict(wide)
        yield f"leaves of five, {given}", lambda given=given: _fit(target, wide, min_samples_leaf=5, **given)
        yield f"dense {given}", lambda given=given: _fit(y, x, **given).predict(x)


def _divided_losses() -> Iterator[tuple[str, Callable[[], object]]]:
    x, y = data(3000)
    for name in ("absolute_error", "huber", "quantile"):
        for step in ("auto", "line_search"):
            yield f"divided {name} {step}", lambda name=name, step=step: _fit(y, x, loss=name, step=step, n_jobs=3)
    yield "divided classes", lambda: _fit(np.digitize(y, [0.5, 1.5]), x, kind="Classifier", n_jobs=3)


def main() -> None:
    from support.kernels_at_once import leave_all_to_kernels

    warnings.simplefilter("ignore")
    leave_all_to_kernels()
    done, failed = [], []
    for name, run in cases(few if sys.argv[1:] == ["few"] else product):
        done.append(name)
        try:
            run()
        except Exception as error:  # reported, and the next case is run
            failed.append(f"{name}: {type(error).__name__}: {error}"[:300])
    called, missing = reached()
    json.dump({"cases": done, "failed": failed, "reached": called, "missing": missing}, sys.stdout)


if __name__ == "__main__":
    main()
