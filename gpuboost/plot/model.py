"""Plots of a fitted model: importances, metrics by round, trees, and the work of asynchronous workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuboost.arguments import is_integer, is_one_of
from gpuboost.errors import InputError, RecipeError
from gpuboost.execution import Log
from gpuboost.plot.axes import axes as _axes
from gpuboost.plot.axes import check_estimator, literal
from gpuboost.plot.axes import names_of as _names
from gpuboost.types import EVERY_VALUE, Cuts, Nodes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["importance", "metrics", "staleness", "timeline", "tree"]

MOST_CATEGORIES = 4
"""A set of categories longer than this is shown by its size."""


def importance(model: Any, kind: str = "gain", *, top: int = 20, ax: Axes | None = None) -> Axes:
    """The ``top`` features by ``model.feature_importance(kind)``, the greatest on top. Features at 0 are left out.

    Raises:
        RecipeError: if top is below 1.
        InputError: if the kind is unknown, or the model is not one of trees.
    """
    if not is_integer(top, 1):
        raise RecipeError(f"top: must be an integer of at least 1; got {top!r}.")
    check_estimator(model, "feature_importance")
    values = np.asarray(model.feature_importance(kind))
    names = _names(model)
    order = [int(f) for f in np.argsort(-values, kind="stable")[:top] if values[f] > 0.0][::-1]
    ax = _axes(ax, height=0.6 + 0.3 * max(1, len(order)))
    ax.barh([literal(names[f]) for f in order], values[order])
    ax.set_xlabel(f"importance ({kind})")
    return ax


def metrics(results: Any, *, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """A metric of each eval set by round, with a line at the best round if the fit stopped early.

    ``results`` is a fitted estimator, a result of ``gb.cv`` or an ``evals_result_``. Results of ``cv`` are drawn as the
    mean over the folds with a band of one standard deviation.

    Raises:
        InputError: if nothing was watched, or not this metric in every eval set.
    """
    evals: object = getattr(results, "evals_result_", results)
    curves: Mapping[str, Mapping[str, Sequence[float]]] = evals if isinstance(evals, Mapping) else {}
    sets: list[Any] = list(curves.values())
    if not all(isinstance(of, Mapping) and of for of in sets):
        raise InputError(
            f"results: must be a fitted estimator, or curves as evals_result_ holds them; got {results!r}."
        )
    if not curves:
        raise InputError("results: there is nothing to draw, since no eval set was watched; pass eval_set to fit.")
    names = [name for name in sets[0] if all(isinstance(of.get(name), (Sequence, np.ndarray)) for of in sets)]
    if not names:
        raise InputError(f"results: no metric has a curve in each of {', '.join(map(repr, curves))}; draw them apart.")
    chosen = names[0] if metric is None else metric
    if not is_one_of(chosen, names):
        raise InputError(f"metric: must be one of {', '.join(map(repr, names))}; got {metric!r}.")
    ax = _axes(ax)
    spread: Mapping[str, Sequence[float]] = getattr(results, "std", {})
    for name, values in curves.items():
        rounds = np.arange(1, len(values[chosen]) + 1)
        (line,) = ax.plot(rounds, values[chosen], label=literal(name))
        if chosen in spread:
            mean, std = np.asarray(values[chosen]), np.asarray(spread[chosen])
            ax.fill_between(rounds, mean - std, mean + std, color=line.get_color(), alpha=0.2, linewidth=0)
    best = getattr(results, "best_iteration_", None)
    if best is not None:
        ax.axvline(best + 1, linestyle=":", color="grey", label=f"best: round {best + 1}")
    ax.set_xlabel("round")
    ax.set_ylabel(literal(chosen))
    ax.legend()
    return ax


def staleness(model: Any, *, ax: Axes | None = None) -> Axes:
    """Histogram of staleness in an asynchronous fit: rounds between a tree's gradients and its application.

    ``model`` is a fitted estimator or a ``gb.Log``. The line is the mean, which is the number of workers less one if
    they were never idle.

    Raises:
        InputError: if there is no log, or nothing in it.
    """
    log = _log(model)
    late = log.staleness
    ax = _axes(ax)
    ax.bar(np.arange(late.max() + 1), np.bincount(late), width=0.9)
    ax.axvline(log.mean_staleness, linestyle=":", color="grey", label=f"mean {log.mean_staleness:.3g}")
    ax.set_xlabel(f"staleness (rounds), {log.workers} workers")
    ax.set_ylabel("rounds")
    ax.legend()
    return ax


def timeline(model: Any, *, last: int | None = 60, ax: Axes | None = None) -> Axes:
    """Timeline of the workers: a bar from pull to push for each tree, and a dot where the server applied it.

    ``model`` is a fitted estimator or a ``gb.Log``; ``last`` is the number of its last lines to draw, None for all.
    Dropped and failed trees are drawn in other colours.

    Raises:
        InputError: if there is no log, or nothing in it.
        RecipeError: if ``last`` is below 1.
    """
    log = _log(model)
    if last is not None and not is_integer(last, 1):
        raise RecipeError(f"last: must be None, or an integer of at least 1; got {last!r}.")
    lines = log.lines if last is None else log.lines[-last:]
    ax = _axes(ax, height=1.2 + 0.25 * min(log.workers, 40))
    for outcome, colour in (("applied", "tab:blue"), ("dropped", "tab:orange"), ("failed", "tab:red")):
        some = [line for line in lines if line.outcome == outcome]
        if some:
            places = [line.worker for line in some]
            bars = [line.built - line.began for line in some], 0.7, [line.began for line in some]
            ax.barh(places, *bars, color=colour, edgecolor="white", label=outcome)
            ax.plot([line.ended for line in some], places, ".", color="black", markersize=3)
    ax.set_xlabel("simulated seconds" if log.simulated else "seconds")
    ax.set_ylabel("worker")
    ax.legend()
    return ax


def _log(model: Any) -> Log:
    log = model if isinstance(model, Log) else getattr(getattr(model, "fit_report_", None), "log", None)
    if log is None or not log.applied:
        rule = "must be an estimator that was fitted asynchronously in this process, or a gb.Log with rounds in it"
        raise InputError(f"model: {rule}; got {model!r}. A loaded model has no log.")
    return log


def tree(model: Any, round: int = 0, output: int = 0, *, ax: Axes | None = None) -> Axes:
    """One tree: at a node its split, at a leaf its value times the learning rate, and how many rows came by.

    Raises:
        InputError: if there is no such round or output, or the model is not one of trees.
    """
    check_estimator(model, "ensemble_")
    ensemble = model.ensemble_
    if ensemble.components:
        raise InputError(
            f"model: trees are drawn, and this one was fitted with base_learner={model.base_learner!r}. See "
            "gb.plot.partial_effect."
        )
    known = is_integer(round, -ensemble.n_rounds, ensemble.n_rounds - 1)
    if not (known and is_integer(output, 0, ensemble.n_outputs - 1)):
        raise InputError(
            f"round, output: the model has {ensemble.n_rounds} rounds of {ensemble.n_outputs} trees; "
            f"got round {round!r}, output {output!r}."
        )
    index = (round % ensemble.n_rounds) * ensemble.n_outputs + output
    nodes, values = ensemble.trees[index].nodes, ensemble.trees[index].value
    factor = ensemble.factors[index] * ensemble.scale
    x, y = _places(nodes)
    ax = _axes(ax, width=max(4.0, 1.1 * int(nodes.is_leaf.sum())), height=1.0 - 1.1 * float(y.min()))
    names = _names(model) if model.columns_.statistics is None else model.columns_.seen_names()
    for node in range(len(values)):
        for child, side in ((nodes.left[node], "yes"), (nodes.right[node], "no")):
            if nodes.feature[node] >= 0:
                ax.plot([x[node], x[child]], [y[node], y[child]], color="grey", linewidth=0.8, zorder=1)
                middle = (x[node] + x[child]) / 2, (y[node] + y[child]) / 2
                ax.text(*middle, side, fontsize="x-small", ha="center", va="center", zorder=2)
        leaf = nodes.feature[node] < 0
        text = f"{factor * values[node]:.4g}" if leaf else _rule(nodes, node, model, names)
        box = {"boxstyle": "round", "facecolor": "honeydew" if leaf else "white", "edgecolor": "grey"}
        label = f"{literal(text)}\n{nodes.count[node]} rows"
        ax.text(x[node], y[node], label, ha="center", va="center", fontsize="small", bbox=box, zorder=3)
    ax.set_xlim(x.min() - 0.6, x.max() + 0.6)
    ax.set_ylim(y.min() - 0.4, 0.4)
    ax.set_axis_off()
    return ax


def _places(nodes: Nodes) -> tuple[np.ndarray, np.ndarray]:
    """Leaves side by side, a parent above the middle of its children. Children come after their parent."""
    x, y = np.zeros(len(nodes.feature)), np.zeros(len(nodes.feature))
    stack, leaves = [0], 0
    while stack:
        node = stack.pop()
        if nodes.feature[node] < 0:
            x[node], leaves = leaves, leaves + 1
        else:
            left, right = int(nodes.left[node]), int(nodes.right[node])
            y[left] = y[right] = y[node] - 1.0
            stack += [right, left]
    for node in range(len(x) - 1, -1, -1):
        if nodes.feature[node] >= 0:
            x[node] = (x[nodes.left[node]] + x[nodes.right[node]]) / 2
    return x, y


def _rule(nodes: Nodes, node: int, model: Any, names: Sequence[str]) -> str:
    cuts: Cuts = model.ensemble_.cuts
    feature, cut = int(nodes.feature[node]), int(nodes.bin[node])
    column = int(cuts.columns[feature])
    missing = " or missing" if nodes.missing_left[node] else ""
    codes = cuts.categories[feature]
    if codes is None:
        thresholds = cuts.thresholds[feature]
        threshold = float(thresholds[cut]) if cut < len(thresholds) else EVERY_VALUE
        condition = "is known" if threshold == EVERY_VALUE else f"<= {threshold:.6g}"
        return f"{names[column]} {condition}{missing}"
    labels = model.columns_.categories[column]
    chosen = [labels[code] for c, code in enumerate(codes) if nodes.left_set[node, c // 32] >> np.uint32(c % 32) & 1]
    listed = ", ".join(map(str, chosen)) if len(chosen) <= MOST_CATEGORIES else f"{len(chosen)} categories"
    return f"{names[column]} in {{{listed}}}{missing}"
