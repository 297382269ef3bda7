"""The CPU in daily use, beside other libraries: small data, many small fits, first contact, latency, threads.

Every library gets the same rows, trees, depth, rate, bins, L2 term and threads.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.harness.alternation import alternated, beside, columns, median, ratios, row, told
from gpuboost.benchmarks.harness.cases import OURS, Setting
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.harness.peers import open_peer
from gpuboost.benchmarks.harness.store import Array
from gpuboost.benchmarks.suites.small_fits import fits, fits_of_categories, problem, variations

# threads


def threads(options: Options) -> Finding:
    """Training of a large table by the number of threads."""
    names, (n, trees) = beside(options), (20_000, 5) if options.small else (1_000_000, 20)
    counts = _counts(options)
    counts = sorted({*counts, 16}) if not options.small else counts  # more than there are cores: no cliff
    return _by_threads("training", n, trees, {count: names for count in counts}, options)


def threads_11m(options: Options) -> Finding:
    """Training of eleven million rows on one thread and on all; the others on all."""
    n = 20_000 if options.small else 11_000_000
    return _by_threads("training", n, 5, {1: (OURS,), options.threads: beside(options)}, options)


def threads_predict(options: Options) -> Finding:
    """Prediction of a large table by the number of threads."""
    n = 20_000 if options.small else 1_000_000
    return _by_threads(
        "prediction", n, 5 if options.small else 100, dict.fromkeys(_counts(options), beside(options)), options
    )


def _counts(options: Options) -> list[int]:
    return [count for count in (1, 2, 4, 8, 16, 32, 64) if count < options.threads] + [options.threads]


def _by_threads(what: str, n: int, trees: int, counts: Mapping[int, Sequence[str]], options: Options) -> Finding:
    """Milliseconds of ``what``, "training" or "prediction", of each of the libraries named for a number of threads."""
    data = higgs_like(n=n, n_test=1_000, seed=1)
    rows, numbers = [], {}
    for count, names in counts.items():
        runs = {}
        for name in names:
            peer = open_peer(name, "binary", Setting(trees=trees), count, data.y)
            if what == "training":
                binned = peer.bin(peer.prepare(data.X), data.y, None, None)
                runs[name] = partial(peer.train, binned)
            else:
                few = min(n, 100_000)
                binned = peer.bin(peer.prepare(data.X[:few]), data.y[:few], None, None)
                runs[name] = partial(peer.predict, peer.train(binned), peer.prepare(data.X))
        seconds = alternated(runs, options.repeats or 2, lambda say, c=count: options.tell(f"{c} threads: {say}"))
        rows.append(row(f"{count} threads", seconds, beside(options)))
        numbers[str(count)] = seconds
    title = f"{what.capitalize()}, {n:,} x {data.X.shape[1]}, {trees} trees of depth 6: milliseconds (of CPU time)"
    return Finding(title, columns(beside(options)), tuple(rows), numbers=numbers)


# many small fits

GRID = {"max_depth": [3, 6], "learning_rate": [0.05, 0.1, 0.2, 0.3]}


def many(options: Options) -> Finding:
    """GridSearchCV over processes or threads, a thread for each fit."""
    from joblib import parallel_config

    names, rows, numbers = beside(options), [], {}
    for n, d in ((300, 10),) if options.small else ((1_000, 10), (5_000, 28)):
        x, y = problem(n, d)
        for pool in ("loky", "threading"):
            runs = {name: _searched(name, x, y, 5 if options.small else 100, options.threads) for name in names}
            what = f"{n:,} x {d}, {'processes' if pool == 'loky' else 'threads'}"
            with parallel_config(pool):
                seconds = alternated(runs, options.repeats or 3, lambda say, what=what: options.tell(f"{what}: {say}"))
            wall, _ = ratios(seconds)
            rows.append((what, *(f"{41 / seconds[name][0]:.1f}" for name in names), told(1 / wall)))
            numbers[what] = seconds
    title = f"GridSearchCV, 8 settings of 5 folds and the last fit, {options.threads} at a time: fits a second"
    return Finding(title, ("", *names, "of the best peer"), tuple(rows), numbers=numbers)


def _searched(name: str, x: Array, y: Array, trees: int, at_a_time: int) -> Callable[[], Any]:
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(_estimator(name, trees), GRID, cv=5, scoring="roc_auc", n_jobs=at_a_time)
    return lambda: search.fit(x, y)


def _estimator(name: str, trees: int) -> Any:
    if name == OURS:
        import gpuboost

        return gpuboost.GradientBoostingClassifier(n_estimators=trees, n_jobs=1, device="cpu")
    if name == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=trees, n_jobs=1)
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=trees, n_jobs=1, verbose=-1)
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=trees, early_stopping=False)


# first contact

_DATA = "import numpy as np; r = np.random.default_rng(0); x = r.normal(size=(1000, 10)); y = x[:, 0] * x[:, 1]; "
_FIT = {
    OURS: "import gpuboost; m = gpuboost.GradientBoostingRegressor(device='cpu').fit(x, y); m.predict(x)",
    "xgboost": "import xgboost; m = xgboost.XGBRegressor().fit(x, y); m.predict(x)",
    "lightgbm": "import lightgbm; m = lightgbm.LGBMRegressor(verbose=-1).fit(x, y); m.predict(x)",
    "sklearn": "from sklearn.ensemble import HistGradientBoostingRegressor as H; m = H().fit(x, y); m.predict(x)",
}
_LOAD = {
    f"{OURS}, load_predictor": "import gpuboost; gpuboost.load_predictor('{}/gpuboost').predict(x[:1])",
    f"{OURS}, load_model": "import gpuboost; gpuboost.load_model('{}/gpuboost').predict(x[:1])",
    "xgboost": "import xgboost; xgboost.Booster(model_file='{}/xgboost.json').inplace_predict(x[:1])",
    "lightgbm": "import lightgbm; lightgbm.Booster(model_file='{}/lightgbm').predict(x[:1])",
}


def first(options: Options) -> Finding:
    """New processes: import, fit of 1,000 x 10, predict; and load, predict one row. Kernels cached, or none."""
    names, repeats = beside(options), options.repeats or 5
    with TemporaryDirectory() as folder:
        _save_models(folder, names)
        fit = {name: _process(_DATA + _FIT[name]) for name in names}
        load = {
            label: _process(_DATA + code.format(folder))
            for label, code in _LOAD.items()
            if label.split(",")[0] in names
        }
        medians = {"fit": alternated(fit, repeats, lambda say: options.tell(f"fit: {say}"))}
        medians["load"] = alternated(load, repeats, lambda say: options.tell(f"load: {say}"))
        cold = {f"fit, {OURS}": _DATA + _FIT[OURS]}
        cold |= {
            f"load, {label}": _DATA + code.format(folder) for label, code in _LOAD.items() if label.startswith(OURS)
        }
        empty = {name: _process(code, empty_cache=True) for name, code in ({} if options.small else cold).items()}
        medians["no kernels cached"] = alternated(empty, 2, lambda say: options.tell(f"cold: {say}"))
    rows = [
        (f"{what}: {name}", f"{seconds:.2f}", f"{cpu:.2f}")
        for what, each in medians.items()
        for name, (seconds, cpu) in each.items()
    ]
    wall, cpu = ratios(medians["fit"])
    note = f"fit: {told(wall)} of the fastest peer's seconds, {told(cpu)} of the least CPU time"
    return Finding("New processes: seconds, and CPU seconds", ("", "seconds", "CPU"), tuple(rows), (note,), medians)


def _save_models(folder: str, names: Sequence[str]) -> None:
    x, y = problem(1_000, 10)
    for name in names:
        if name == "sklearn":
            continue
        model = _estimator(name, 500).fit(x, y)
        if name == OURS:
            model.save_model(f"{folder}/gpuboost")
        elif name == "xgboost":
            model.save_model(f"{folder}/xgboost.json")
        else:
            model.booster_.save_model(f"{folder}/lightgbm")


def _process(code: str, empty_cache: bool = False) -> Callable[[], None]:
    """A run of Python. Processes that still compile when it has ended are killed: they would slow down the next run."""

    def run() -> None:
        with TemporaryDirectory() as cache:
            variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
            if empty_cache:
                variables |= {"GPUBOOST_CACHE_DIR": cache}
            command = [sys.executable, "-c", code]
            process = subprocess.Popen(command, env=variables, process_group=0, stdout=subprocess.DEVNULL)
            try:
                if process.wait():
                    raise subprocess.CalledProcessError(process.returncode, command)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    return run


# latency


def latency(options: Options) -> Finding:
    """Microseconds of a call that predicts few rows, by the estimator and by the lower door of each library."""
    names, n, trees = beside(options), 300 if options.small else 5_000, 20 if options.small else 500
    x, y = problem(n, 28)
    calls: dict[str, Callable[[Array], Any]] = {}
    for name in names:
        model = _estimator(name, trees).fit(x, y)
        calls[f"{name}, estimator"] = model.predict_proba
        if name == OURS:
            calls[f"{name}, predictor()"] = model.predictor().predict_proba
        elif name == "xgboost":
            calls[f"{name}, inplace_predict"] = model.get_booster().inplace_predict
        elif name == "lightgbm":
            calls[f"{name}, booster"] = partial(model.booster_.predict, num_threads=1)
    counts, times = (1, 10, 100), 20 if options.small else 500
    numbers = {
        label: [_microseconds(call, x[:count].copy(), times) for count in counts] for label, call in calls.items()
    }
    rows = tuple((label, *(f"{value:.0f}" for value in each)) for label, each in numbers.items())
    columns = ("", *(f"{count} rows" for count in counts))
    return Finding(
        f"Calls of {trees} trees, one thread: microseconds, medians of {times}", columns, rows, numbers=numbers
    )


def _microseconds(call: Callable[[Array], Any], x: Array, times: int) -> float:
    for _ in range(3):
        call(x)
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        call(x)
        taken.append(time.perf_counter() - begun)
    return 1e6 * median(taken)


PARTS = {
    "fits": Part("1,000 to 20,000 rows, 100 to 1,000 trees, one thread and all", fits),
    "fits-variations": Part("1,000 and 5,000 rows: drawn rows or features, constraints, leaf-wise trees", variations),
    "fits-categories": Part("1,000 to 20,000 rows of categorical columns, one thread", fits_of_categories),
    "many": Part("GridSearchCV of small fits over processes and threads", many),
    "first": Part("new processes that fit, or load a model and predict", first),
    "latency": Part("calls that predict 1, 10 and 100 rows by 500 trees", latency),
    "threads": Part("training of 1,000,000 x 28 by the number of threads, 16 included", threads),
    "threads-predict": Part("prediction of 1,000,000 x 28 by the number of threads", threads_predict),
    "threads-11m": Part("training of 11,000,000 x 28 on one thread and on all", threads_11m),
}

EXPERIMENT = Experiment("cpu-use", "CPU in daily use: small data, many fits, first contact, latency, threads", PARTS)
