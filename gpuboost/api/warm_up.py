"""``gb.warm_up``: compile kernels before they are needed, in images and in CI."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.api.classifier import GradientBoostingClassifier
from gpuboost.api.ranker import GradientBoostingRanker
from gpuboost.api.regressor import GradientBoostingRegressor
from gpuboost.arguments import is_one_of
from gpuboost.backends.cpu.compilation.background import BACKGROUND, repeated_kind
from gpuboost.backends.cpu.compilation.first_fit import FIRST_FITS, note_kernels
from gpuboost.backends.cpu.trees.histograms import PACKED_ROWS
from gpuboost.backends.cpu.trees.small_trees import MOST_ONE_BY_ONE
from gpuboost.backends.prediction.first_rows import FIRST
from gpuboost.data.columns import FROM_DTYPE
from gpuboost.errors import InputError, shown
from gpuboost.langevin import Langevin
from gpuboost.sampling import UniformSampling
from gpuboost.sampling.presets import MVS
from gpuboost.training.parameters.threads import threads_of

ROWS = 2_000, PACKED_ROWS + 1
"""Numbers of rows: kernels for small and for large data differ."""

DTYPES = np.float64, np.float32


def warm_up(kinds: Sequence[str] | None = None, *, n_jobs: int | None = None) -> dict[str, float]:
    """Compile the CPU's kernels, so that later processes find them in the cache of compiled kernels.

    Small models are fitted, and predict. A container image or a CI job calls it once, with GPUBOOST_CACHE_DIR set to a
    folder of the image; ``gpuboost warmup`` is the same as a command.

    Parameters
    ----------
    kinds : sequence of str or None
        Kinds of fits to prepare for: "regression", "classification", "multiclass", "ranking", "categories", "sparse",
        "leafwise", "min_samples_leaf", "monotone", "oblivious", "stumps", "sampling", "langevin", "contributions".
        None: all of them. Kernels of "monotone" are also those of ``reg_alpha`` and ``max_delta_step``.
    n_jobs : int or None
        Threads of the fits, as of the estimators.

    Returns
    -------
    dict of str to float
        Seconds that each kind took; a second call, or one in a later process, takes a fraction of the first.

    Raises
    ------
    InputError
        If a kind is unknown, or ``n_jobs`` is not a number of threads.
    """
    chosen = _chosen(kinds)
    threads_of(n_jobs)
    FIRST_FITS.end()  # NumPy's fits and predictions would compile nothing
    FIRST.end()
    seconds = {}
    for kind in chosen:
        begin = time.perf_counter()
        for rows in ROWS:
            for dtype in DTYPES:
                KINDS[kind](_data(rows, dtype), n_jobs)
        if kind in REPEATED:
            BACKGROUND.request(REPEATED[kind])
        BACKGROUND.wait()
        seconds[kind] = time.perf_counter() - begin
        note_kernels(*FIRST_FIT_PARTS.get(kind, ()))
    return seconds


def _chosen(kinds: Any) -> list[str]:
    if kinds is None:
        return list(KINDS)
    if not isinstance(kinds, (str, Sequence)) or isinstance(kinds, bytes):
        raise InputError(
            f"kinds: must be a list of words, or None; got {shown(kinds)[:80]}. Words: {', '.join(KINDS)}."
        )
    chosen = [kinds] if isinstance(kinds, str) else list(kinds)
    unknown = [kind for kind in chosen if not is_one_of(kind, KINDS)]
    if unknown:
        raise InputError(f"kinds: unknown: {shown(unknown[0])[:80]}. Kinds: {', '.join(KINDS)}.")
    return chosen


def _data(rows: int, dtype: type[Any]) -> NDArray[Any]:
    """(rows, 3) with a missing value; the last column has whole numbers from 0 to 9."""
    x = np.random.default_rng(0).normal(size=(rows, 3)).astype(dtype)
    x[:, 2] = np.arange(rows) % 10
    x[0, 0] = np.nan
    return x


def _regression(x: NDArray[Any], n_jobs: int | None, **more: Any) -> None:
    params: dict[str, Any] = {"max_depth": 4, **more}
    model = GradientBoostingRegressor(n_estimators=2, n_jobs=n_jobs, random_state=0, **params)
    whole = model.fit(x, x[:, 1], sample_weight=1.0 + x[:, 2])  # weights and scores of more than one round
    whole.predict(x)
    whole.predict(x[:1])


def _classification(x: NDArray[Any], n_jobs: int | None, classes: int = 2) -> None:
    y = x[:, 2].astype(int) % classes
    model = GradientBoostingClassifier(n_estimators=2, max_depth=4, n_jobs=n_jobs, random_state=0)
    model.fit(x, y, eval_set=[(x[:100], y[:100])]).predict_proba(x)


def _ranking(x: NDArray[Any], n_jobs: int | None) -> None:
    queries = np.full(len(x) // 10, 10)
    x = x[: 10 * len(queries)]
    model = GradientBoostingRanker(n_estimators=2, max_depth=4, n_jobs=n_jobs, random_state=0)
    model.fit(x, x[:, 2] % 3, group=queries).predict(x)


def _sparse(x: NDArray[Any], n_jobs: int | None) -> None:
    from scipy.sparse import csr_matrix

    entries = np.where(np.abs(x) > 1.0, x, 0.0)
    model = GradientBoostingRegressor(n_estimators=2, max_depth=4, n_jobs=n_jobs, random_state=0)
    sparse = csr_matrix(np.nan_to_num(entries))
    model.fit(sparse, x[:, 1]).predict(sparse)


def _sampling(x: NDArray[Any], n_jobs: int | None) -> None:
    for sampling in (UniformSampling(0.5), MVS(0.5)):
        _regression(x, n_jobs, sampling=sampling, learners=0.7)


def _contributions(x: NDArray[Any], n_jobs: int | None) -> None:
    model = GradientBoostingRegressor(n_estimators=2, max_depth=4, n_jobs=n_jobs, random_state=0).fit(x, x[:, 1])
    model.predict_contributions(x[:100])
    model.predict_interactions(x[:100])
    model.apply(x[:100])


def _leaf_wise(x: NDArray[Any], n_jobs: int | None) -> None:
    for leaves in (9, MOST_ONE_BY_ONE + 1):  # the kernels of speculative splits, too
        _regression(x, n_jobs, growth="leafwise", max_leaves=leaves, max_depth=None)


def _with(**more: Any) -> Callable[[NDArray[Any], int | None], None]:
    return lambda x, n_jobs: _regression(x, n_jobs, **more)


KINDS: dict[str, Callable[[NDArray[Any], int | None], None]] = {
    "regression": _with(categorical_features=FROM_DTYPE),
    "classification": _classification,
    "multiclass": lambda x, n_jobs: _classification(x, n_jobs, classes=3),
    "ranking": _ranking,
    "categories": _with(categorical_features=[2]),
    "sparse": _sparse,
    "leafwise": _leaf_wise,
    "min_samples_leaf": _with(min_samples_leaf=5),
    "monotone": _with(monotonic_cst=[1, 0, 0]),
    "oblivious": _with(growth="oblivious"),
    "stumps": _with(max_depth=1),
    "sampling": _sampling,
    "langevin": _with(langevin=Langevin()),
    "contributions": _contributions,
}
REPEATED = {
    "regression": repeated_kind(categorical=False, several=False),
    "classification": repeated_kind(categorical=False, several=False),
    "multiclass": repeated_kind(categorical=False, several=True),
    "categories": repeated_kind(categorical=True, several=False),
    "sampling": repeated_kind(categorical=False, several=False, draws=True),
    "langevin": repeated_kind(categorical=False, several=False, noise=True),
    "leafwise": repeated_kind(categorical=False, several=False),
    "min_samples_leaf": repeated_kind(categorical=False, several=False),
    "monotone": repeated_kind(categorical=False, several=False),
    "oblivious": repeated_kind(categorical=False, several=False),
    "stumps": repeated_kind(categorical=False, several=False),
}
"""The kernel of repeated rounds of a kind, which fits of two rounds do not need"""

FIRST_FIT_PARTS = {
    "regression": ("plain",),
    "classification": ("plain",),
    "multiclass": ("plain",),
    "ranking": ("lambdamart",),
    "categories": ("categories",),
    "oblivious": ("oblivious",),
    "stumps": ("stumps",),
    "min_samples_leaf": ("min_samples_leaf",),
    "monotone": ("bounds",),
    "sampling": ("sampling", "importance", "features"),
    "langevin": ("noise",),
}
"""The kernels of a kind, as keys of ``first_fit.PARTS``"""
