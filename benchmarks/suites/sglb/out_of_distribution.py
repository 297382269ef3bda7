"""Knowledge uncertainty of rows like those of training against that of rows of another kind, beside CatBoost's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.store import Array

ROUNDS, DEPTH, BINS, BURN_IN = 1500, 4, 32, 200
RATES = {"binary": 1.0, "multiclass": 0.5, "numbers": 0.25}
"""A quarter over the bound of the loss's second derivative: long steps, which forget in time, and far from unstable."""

LEARN, JUDGE = 1000, 500  # most rows
OURS, DEFAULTS, ALIKE = "gpuboost", "catboost, its defaults", f"catboost, depth {DEPTH}"


@dataclass(frozen=True)
class Rows:
    """Training rows, and held-out rows of the same kind and of another."""

    x: Array
    y: Array
    inside: Array
    outside: Array
    task: str  # "binary", "multiclass" or "numbers"


@dataclass(frozen=True)
class Pair:
    name: str
    rows: Callable[[int], Rows]  # of a seed
    seen: bool = False  # whether settings were made by looking at its areas


def ood(options: Options) -> Finding:
    """Area under the ROC curve of knowledge uncertainty, held-out rows of the training data against another kind.

    Ten members of one chain each. Ours is what ``gb.fit_posterior`` makes of the known rows: temperature and prior by
    the likelihood of a quarter of them. CatBoost has posterior sampling and a virtual ensemble, as it advises; once at
    its own depth, rate and rounds, once at our depth and rounds. The rest of our settings comes from the two pairs of
    digits; each other pair was run once.
    """
    seeds = options.repeats or (1 if options.small else 3)
    peers = options.beside("catboost")
    records = {pair.name: _judged(pair, seeds, options, peers=peers) for pair in _pairs(small=options.small)}
    columns = ("known | asked", "pair", OURS, *((DEFAULTS, ALIKE, "ours less the better", "s.e.") if peers else ()))
    title = f"AUC of knowledge uncertainty, out of domain; mean of {seeds} seeds"
    notes = _notes(records) if peers else ()
    return Finding(
        title, columns, tuple(_row(name, record) for name, record in records.items()), notes, {"found": records}
    )


def _judged(pair: Pair, seeds: int, options: Options, *, peers: bool) -> dict[str, Any]:
    """Areas by library and seed, and what was chosen."""
    areas: dict[str, list[float]] = {}
    chosen = []
    for seed in range(seeds):
        options.tell(f"out of domain: {pair.name}, {seed + 1} of {seeds}")
        rows = pair.rows(seed)
        fitted = _ours(rows, seed, options)
        chosen.append((fitted.temperature, fitted.prior_variance))
        judged = np.concatenate([rows.inside, rows.outside])
        areas.setdefault(OURS, []).append(_area(rows, fitted.model.predict_uncertainty(judged).knowledge))
        for name, settings in _theirs(options) if peers else ():
            areas.setdefault(name, []).append(_area(rows, _of_catboost(rows, judged, seed, options, settings)))
    return {"auc": areas, "chosen": chosen, "seen": pair.seen}


def _row(name: str, record: dict[str, Any]) -> tuple[str, ...]:
    means = [f"{np.mean(values):.3f}" for values in record["auc"].values()]
    kind = "settings come from it" if record["seen"] else "new"
    if len(means) == 1:
        return name, kind, *means
    difference = _difference(record)
    error = f"{difference.std(ddof=1) / np.sqrt(len(difference)):.3f}" if len(difference) > 1 else ""
    return name, kind, *means, f"{difference.mean():+.3f}", error


def _difference(record: dict[str, Any]) -> Array:
    """(seeds,) our area less that of the better of the two CatBoost models."""
    theirs = max((record["auc"][name] for name in (DEFAULTS, ALIKE)), key=np.mean)
    return np.array(record["auc"][OURS]) - np.array(theirs)


def _notes(records: dict[str, Any]) -> tuple[str, ...]:
    from scipy import stats

    new = [record for record in records.values() if not record["seen"]]
    differences = np.array([_difference(record).mean() for record in new])
    lines = []
    for name, each in (
        ("the better of the two", differences),
        *((name, _against(new, name)) for name in (DEFAULTS, ALIKE)),
    ):
        p = stats.wilcoxon(each).pvalue
        ahead = f"ahead in {np.sum(each > 0.0)} of {len(each)}, by {each.mean():+.3f} in the mean (Wilcoxon p {p:.2g})"
        lines.append(f"New pairs, ours against {name}: {ahead}.")
    return tuple(lines)


def _against(new: list[dict[str, Any]], name: str) -> Array:
    return np.array([np.mean(record["auc"][OURS]) - np.mean(record["auc"][name]) for record in new])


def _area(rows: Rows, knowledge: Array) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(np.repeat([0, 1], [len(rows.inside), len(rows.outside)]), knowledge))


def _ours(rows: Rows, seed: int, options: Options) -> gb.PosteriorFit:
    kind: Any = gb.GradientBoostingRegressor if rows.task == "numbers" else gb.GradientBoostingClassifier
    rounds = 300 if options.small else ROUNDS
    model = kind(
        n_estimators=rounds, learning_rate=RATES[rows.task], max_depth=DEPTH, max_bins=BINS,
        langevin=gb.Langevin(random_from=BURN_IN), random_state=seed, n_jobs=options.threads,
    )  # fmt: skip
    return gb.fit_posterior(model, rows.x, rows.y)


def _theirs(options: Options) -> tuple[tuple[str, dict[str, Any]], ...]:
    rounds = 300 if options.small else ROUNDS
    return (DEFAULTS, {}), (ALIKE, {"iterations": rounds, "depth": DEPTH, "learning_rate": 0.1})


def _of_catboost(rows: Rows, judged: Array, seed: int, options: Options, settings: dict[str, Any]) -> Array:
    """Knowledge uncertainty of a virtual ensemble of ten."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    numbers = rows.task == "numbers"
    loss = {"binary": "Logloss", "multiclass": "MultiClass", "numbers": "RMSEWithUncertainty"}[rows.task]
    model = (CatBoostRegressor if numbers else CatBoostClassifier)(
        loss_function=loss, posterior_sampling=True, random_seed=seed, thread_count=options.threads,
        allow_writing_files=False, logging_level="Silent", **settings,
    ).fit(rows.x, rows.y)  # fmt: skip
    raw = model.virtual_ensembles_predict(judged, prediction_type="VirtEnsembles", virtual_ensembles_count=10)
    members = np.moveaxis(np.asarray(raw).reshape(len(judged), 10, -1), 0, 2)  # (10, k, n)
    if numbers:
        return members[:, 0].var(axis=0)
    our_loss = gb.losses.Logistic() if rows.task == "binary" else gb.losses.Softmax(members.shape[1])
    return gb.posterior.uncertainty(our_loss, members).knowledge


# the pairs


def _pairs(*, small: bool) -> Iterator[Pair]:
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

    digits, cancer, wine = (load(return_X_y=True) for load in (load_digits, load_breast_cancer, load_wine))
    low, high = np.arange(5), np.arange(5, 10)
    yield Pair("digits 0 to 4 | 5 to 9", lambda seed: _classes(*digits, low, high, seed), seen=True)
    yield Pair("digits 5 to 9 | 0 to 4", lambda seed: _classes(*digits, high, low, seed), seen=True)
    for name, data in (("wine", wine), ("iris", load_iris(return_X_y=True))):
        yield Pair(f"{name}, one kind left out", _left_out(*data))
    yield Pair("breast cancer | wine", lambda seed: _another(*cancer, wine[0], "binary", seed))
    if small:
        return
    yield from _real_pairs()


def _real_pairs() -> Iterator[Pair]:
    covtype, adult, bank, california, diamonds = (
        _numeric(load) for load in (real.covtype_sub, real.adult, real.bank, real.california, real.diamonds)
    )
    landscape, common, rare = covtype[0][:, :10], np.arange(2), np.arange(2, 7)  # the other columns are 0 or 1
    yield Pair(
        "covtype, two common kinds | the others", lambda seed: _classes(landscape, covtype[1], common, rare, seed)
    )
    yield Pair("adult | bank", lambda seed: _another(*adult, bank[0], "binary", seed))
    yield Pair("bank | adult", lambda seed: _another(*bank, adult[0], "binary", seed))
    yield Pair("california | diamonds", lambda seed: _another(*california, diamonds[0], "numbers", seed))
    yield Pair("diamonds | california", lambda seed: _another(*diamonds, california[0], "numbers", seed))


def _numeric(load: Callable[..., Any]) -> tuple[Array, Array]:
    """Columns of numbers, and the target."""
    data = load()
    x = data.X.select_dtypes("number").to_numpy(np.float64) if hasattr(data.X, "columns") else np.asarray(data.X)
    return x, data.y


def _classes(x: Array, y: Array, known: Array, asked: Array, seed: int) -> Rows:
    """Learned from half of the known classes' rows; the others are held against rows of the asked classes."""
    rng = np.random.default_rng(seed)
    ours, theirs = (rng.permutation(np.flatnonzero(np.isin(y, classes))) for classes in (known, asked))
    learn = min(len(ours) // 2, LEARN)
    inside, outside = ours[learn:][:JUDGE], theirs[:JUDGE]
    task = "binary" if len(known) == 2 else "multiclass"
    return Rows(x[ours[:learn]], y[ours[:learn]], x[inside], x[outside], task)


def _left_out(x: Array, y: Array) -> Callable[[int], Rows]:
    """The class that is asked about changes with the seed."""
    kinds = np.unique(y)

    def made(seed: int) -> Rows:
        asked = seed % len(kinds)
        return _classes(x, y, np.delete(kinds, asked), kinds[[asked]], seed)

    return made


def _another(x: Array, y: Array, other: Array, task: str, seed: int) -> Rows:
    """Rows of another data set, its columns brought to the means and deviations of these: only their shape differs."""
    rng = np.random.default_rng(seed)
    width = min(x.shape[1], other.shape[1])
    order, strange = rng.permutation(len(x)), rng.permutation(len(other))[:JUDGE]
    learn = min(len(order) // 2, LEARN)
    x, inside, outside = x[order[:learn], :width], x[order[learn:][:JUDGE], :width], other[strange, :width]
    scaled = (outside - np.nanmean(outside, axis=0)) / np.maximum(np.nanstd(outside, axis=0), 1e-12)
    brought = scaled * np.nanstd(x, axis=0) + np.nanmean(x, axis=0)
    return Rows(x, y[order[:learn]], inside, brought, task)
