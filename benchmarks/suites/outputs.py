"""Several targets, labels and classes: a tree for each output, or one for all, beside XGBoost's two ways.

Every model gets the same rows, 100 rounds of depth 6 at a rate of 0.1, and its library's defaults for all else. Seconds
are those of the processor for ``fit``, of all threads together; compiling is done before. Py-Boost needs a GPU: where
there is none a stand-in for CuPy gives its losses. It has no seconds here; ``gpu-speed`` times it on a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.gpu.peers import apart
from gpuboost.benchmarks.harness import cupy_on_cpu
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.harness.store import Array

ROUNDS, DEPTH, RATE, K = 100, 6, 0.1, 5
REPEATED = 8  # rounds of which the mean time is taken
SEEDS = 5  # of models that draw
PATIENCE = 7200.0  # seconds that Py-Boost may take for the fits of one table's row
SKETCHES = {gb.TopOutputs(K): "topk", gb.RandomOutputs(K): "rand", gb.RandomProjection(K): "proj"}
"""Our sketches, and Py-Boost's names for its own."""


@dataclass(frozen=True)
class Rows:
    """Training and held-out rows; y is (n, k), or (n,) classes."""

    task: str  # "numbers", "labels" or "classes"
    x: Array
    y: Array
    x_test: Array
    y_test: Array

    @classmethod
    def halves(cls, task: str, x: Array, y: Array) -> Rows:
        """The first half of the rows to learn from, the others to judge by."""
        half = len(x) // 2
        return cls(task, x[:half], y[:half], x[half:], y[half:])


@dataclass(frozen=True)
class Method:
    """A way to fit several outputs."""

    run: Callable[[Rows, int, Sequence[int]], dict[str, Any]]  # (rows, threads, seeds) -> numbers of one fit for each
    draws: bool = False  # the seed matters


def methods(options: Options, outputs: int) -> dict[str, Method]:
    """Our methods, and those of other libraries if they are requested and installed, by their labels in the table."""
    one_tree: dict[str, Any] = {"multi_output": "one_tree"}
    found = {
        "gpuboost: a tree for each output": Method(partial(_timed, _ours)),
        "gpuboost: one tree": Method(partial(_timed, partial(_ours, **one_tree))),
    }
    sketches = SKETCHES if outputs > 2 * K else {}
    for sketch in sketches:
        fit = partial(_ours, **one_tree, sketch=sketch)
        found[f"gpuboost: one tree, {sketch!r}"] = Method(partial(_timed, fit), _draws(sketch))
    if options.beside("xgboost"):
        for words, strategy in (("a tree for each output", "one_output_per_tree"), ("one tree", "multi_output_tree")):
            found[f"XGBoost: {words}"] = Method(partial(_timed, partial(_xgboost, strategy=strategy)))
    if options.beside("py-boost"):
        found["Py-Boost: one tree"] = Method(partial(_by_py_boost, None))
        for sketch, name in sketches.items():
            found[f"Py-Boost: one tree, {name} of {K}"] = Method(partial(_by_py_boost, name), _draws(sketch))
    return found


def _draws(sketch: Any) -> bool:
    return not isinstance(sketch, gb.TopOutputs)


def _timed(fit: Callable[..., Any], rows: Rows, threads: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Losses, and seconds of the processor for one fit."""
    losses, seconds = [], 0.0
    for seed in seeds:
        begun = time.process_time()
        model = fit(rows, threads, seed)
        seconds += time.process_time() - begun
        losses.append(judged(rows, model))
    return {**_of_losses(losses), "seconds": seconds / len(losses)}


def _by_py_boost(sketch: str | None, rows: Rows, threads: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Losses of Py-Boost, in a process of its own, where the stand-in is in nobody's way."""
    return apart(_losses_of_py_boost, sketch, rows, seeds, seconds=PATIENCE)


def _losses_of_py_boost(sketch: str | None, rows: Rows, seeds: Sequence[int]) -> dict[str, Any]:
    try:
        on_a_gpu = cupy_on_cpu.gpu_or_stand_in()
        losses = [judged(rows, PyBoost(rows, seed, sketch)) for seed in seeds]
    except Exception as error:  # of its own kind
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {**_of_losses(losses), "seconds": None, "on_a_gpu": on_a_gpu}


def _of_losses(losses: Sequence[float]) -> dict[str, Any]:
    """Their mean; of several also their standard deviation, and each of them."""
    several = {"deviation": float(np.std(losses, ddof=1)), "losses": list(losses)} if len(losses) > 1 else {}
    return {"loss": float(np.mean(losses)), **several}


def _ours(rows: Rows, threads: int, seed: int, **more: Any) -> Any:
    kind = gb.GradientBoostingRegressor if rows.task == "numbers" else gb.GradientBoostingClassifier
    return kind(
        n_estimators=ROUNDS, max_depth=DEPTH, learning_rate=RATE, random_state=seed, n_jobs=threads, device="cpu",
        **more,
    ).fit(rows.x, rows.y)  # fmt: skip


def _xgboost(rows: Rows, threads: int, seed: int, strategy: str) -> Any:
    import xgboost

    kind = xgboost.XGBRegressor if rows.task == "numbers" else xgboost.XGBClassifier
    return kind(
        n_estimators=ROUNDS, max_depth=DEPTH, learning_rate=RATE, tree_method="hist", multi_strategy=strategy,
        random_state=seed, n_jobs=threads,
    ).fit(rows.x, rows.y)  # fmt: skip


class PyBoost:
    """Py-Boost's model with the methods that ``judged`` calls; sketch: one of its names, or None for none."""

    def __init__(self, rows: Rows, seed: int = 0, sketch: str | None = None) -> None:
        import py_boost

        kind = py_boost.GradientBoosting
        if sketch is not None:
            kind = partial(py_boost.SketchBoost, sketch_method=sketch, sketch_outputs=K)
        loss = {"numbers": "mse", "labels": "bce", "classes": "crossentropy"}[rows.task]
        self._model = kind(loss, ntrees=ROUNDS, lr=RATE, max_depth=DEPTH, verbose=-1, seed=seed)
        self._model.fit(rows.x.astype(np.float32), rows.y)

    def predict(self, x: Any) -> Any:
        return self._model.predict(x.astype(np.float32))

    predict_proba = predict


def judged(rows: Rows, model: Any) -> float:
    """Mean over the outputs of the held-out RMSE, in standard deviations, or of the log loss."""
    if rows.task == "numbers":
        error = np.sqrt(np.mean((model.predict(rows.x_test) - rows.y_test) ** 2, axis=0))
        return float(np.mean(error / np.std(rows.y_test, axis=0)))
    p = np.clip(np.asarray(model.predict_proba(rows.x_test), np.float64), 1e-15, 1.0 - 1e-15)
    if rows.task == "labels":
        return float(-np.mean(np.where(rows.y_test == 1, np.log(p), np.log1p(-p))))
    return float(-np.mean(np.log(p[np.arange(len(p)), rows.y_test])))


def compared(options: Options, name: str, rows: Rows) -> Finding:
    """One run of each, or one for each seed where it draws: all but Py-Boost on a GPU are deterministic for a seed."""
    outputs = rows.y.shape[1] if rows.y.ndim == 2 else int(rows.y.max()) + 1
    runs: dict[str, dict[str, Any]] = {}
    few = Rows(rows.task, rows.x[:500], rows.y[:500], rows.x_test, rows.y_test)
    for label, method in methods(options, outputs).items():
        options.tell(f"{name}: {label}")
        if label.startswith("gpuboost"):
            method.run(few, options.threads, (0,))
        runs[label] = method.run(rows, options.threads, range((options.repeats or SEEDS) if method.draws else 1))
    measure = "RMSE / deviation" if rows.task == "numbers" else "log loss"
    return Finding(
        f"{name}: {len(rows.x):,} rows, {outputs} outputs, {ROUNDS} rounds",
        ("model", measure, "seconds of a processor"),
        tuple((label, *_cells(run)) for label, run in runs.items()),
        tuple(_notes(runs)),
        runs,
    )


def _cells(run: dict[str, Any]) -> tuple[str, str]:
    loss = f"{run['loss']:.4f}" if "loss" in run else ""
    if "deviation" in run:
        loss += f" ± {run['deviation']:.4f}"
    return loss, "" if run.get("seconds") is None else f"{run['seconds']:.1f}"


def _notes(runs: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "means over the outputs, of held-out rows"
    seeds = {len(run["losses"]) for run in runs.values() if "losses" in run}
    if seeds:
        yield f"±: standard deviation over {max(seeds)} seeds"
    if any(run.get("on_a_gpu") is False for run in runs.values()):
        yield "Py-Boost: losses only, computed on the CPU by a stand-in for CuPy"
    yield from (f"{label}: {run['error']}".replace("[", r"\[") for label, run in runs.items() if "error" in run)


def _related(n: int, outputs: int) -> tuple[Array, Array, Array]:
    """Rows, outputs that mix six functions of them, and noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=(n, 10))
    hidden = np.column_stack([
        np.sin(2.0 * x[:, 0]), x[:, 1] ** 2, x[:, 2] * x[:, 3], np.abs(x[:, 4]), x[:, 5] > 0.5, np.tanh(3.0 * x[:, 6])
    ])  # fmt: skip
    return x, hidden @ rng.normal(size=(6, outputs)), rng.normal(size=(n, outputs))


def related(small: bool) -> Rows:
    """Ten targets that depend on the columns in the same ways."""
    x, signal, noise = _related(1_000 if small else 20_000, 10)
    return Rows.halves("numbers", x, signal + 0.5 * noise)


def unrelated(small: bool) -> Rows:
    """Ten targets, each of a column of its own."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2.0, 2.0, size=(1_000 if small else 20_000, 10))
    return Rows.halves("numbers", x, np.sin(2.0 * x) + x**2 + 0.5 * rng.normal(size=x.shape))


def many(small: bool) -> Rows:
    """A hundred targets that depend on the columns in the same ways."""
    x, signal, noise = _related(400 if small else 8_000, 100)
    return Rows.halves("numbers", x, signal + 0.5 * noise)


def labels(small: bool) -> Rows:
    """Twenty labels that depend on the columns in the same ways."""
    x, signal, noise = _related(800 if small else 12_000, 20)
    return Rows.halves("labels", x, (signal + noise > 2.0).astype(np.int64))


def digits(small: bool) -> Rows:
    """Ten classes: the handwritten digits of scikit-learn."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))[: 600 if small else None]
    return Rows.halves("classes", x[order], y[order])


def growing(options: Options) -> Finding:
    """Seconds of a round as the outputs become more, by one tree that a random projection is searched by."""
    n, counts = (2_000, (5, 10)) if options.small else (100_000, (10, 100, 1_000))
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=(n, 10))
    timings = {}
    for k in counts:
        options.tell(f"growing: {k} outputs")
        y = np.sin(x[:, :1] + np.linspace(0.0, 3.0, k))
        _seconds(x[:1_000], y[:1_000], 2, options.threads)
        seconds = [_seconds(x, y, rounds, options.threads) for rounds in (1, 1 + REPEATED)]
        timings[str(k)] = {"round": (seconds[1] - seconds[0]) / REPEATED}
    of_each = {k: timing["round"] / int(k) for k, timing in timings.items()}
    return Finding(
        f"growing: {n:,} rows, one tree of depth {DEPTH}, {gb.RandomProjection(K)!r}",
        ("outputs", "seconds of a round", "milliseconds of an output"),
        tuple((k, f"{timing['round']:.2f}", f"{1e3 * of_each[k]:.1f}") for k, timing in timings.items()),
        (f"of a processor; the difference of fits of {1 + REPEATED} rounds and of one, over {REPEATED}",),
        timings,
    )


def _seconds(x: Array, y: Array, rounds: int, threads: int) -> float:
    model = gb.GradientBoostingRegressor(
        n_estimators=rounds, max_depth=DEPTH, random_state=0, n_jobs=threads, device="cpu", multi_output="one_tree",
        sketch=gb.RandomProjection(K),
    )  # fmt: skip
    begun = time.process_time()
    model.fit(x, y)
    return time.process_time() - begun


def _part(make: Callable[[bool], Rows], title: str) -> Part:
    return Part(title, lambda options: compared(options, make.__name__, make(options.small)))


EXPERIMENT = Experiment(
    "outputs",
    "Several targets, labels and classes",
    {
        "related": _part(related, "ten targets of the same functions"),
        "unrelated": _part(unrelated, "ten targets of different functions"),
        "many": _part(many, "a hundred targets of the same functions, and sketches"),
        "labels": _part(labels, "twenty labels"),
        "digits": _part(digits, "ten classes"),
        "growing": Part("seconds of a round by the number of outputs", growing),
    },
    peers=("py-boost",),
)
