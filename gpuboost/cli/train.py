"""``gpuboost train``: a table in, a scored and saved model out."""

from __future__ import annotations

import argparse
import time
from typing import Any

from gpuboost.cli.console import new_console
from gpuboost.cli.policies import feature_costs, langevin, sketch
from gpuboost.cli.scores import baseline, scores, table
from gpuboost.cli.tables import (
    InputTable,
    check_place,
    check_targets,
    names_of,
    read,
    split,
    task_of,
    text_columns,
    warn_of_row_numbers,
    with_pairs,
)
from gpuboost.errors import InputError

KINDS = {
    "classification": "GradientBoostingClassifier",
    "regression": "GradientBoostingRegressor",
    "rank": "GradientBoostingRanker",
}

EVERY = 10
"""Rounds between two lines of progress where there is no terminal for a live bar."""

HELD_OUT = "0.2"
"""Share of the rows to score, where there is neither ``--eval`` nor a model to save nor ``--cv``."""

NOT_OF_RANKINGS = ("multi_output", "sketch")
"""Parameters that the ranker does not have."""


def run(options: argparse.Namespace) -> int:
    """Train a model on a file of rows, evaluate it and save it."""

    import gpuboost

    parameters = {name: value for name, value in vars(options).items() if name in options.parameters}
    parameters |= langevin(options) | sketch(options) | feature_costs(options)
    options.eval = options.eval or (None if options.model or options.cv else HELD_OUT)
    _check(options, parameters)
    rows = with_pairs(_read(options.data, options), options.pairs)
    task = task_of(options.task, parameters.get("loss"), rows)
    _check_task(task, parameters)
    warn_of_row_numbers(rows, options.data)
    if options.class_weight is not None:
        parameters["class_weight"] = _class_weight(options.class_weight, rows, task)
    train, held_out = _held_out(rows, options, parameters.get("random_state") or 0, task)
    if ":" in parameters.get("loss", ""):
        parameters["loss"] = _with_parameter(parameters["loss"])
    model: Any = getattr(gpuboost, KINDS[task])(verbose=0 if options.quiet or options.cv else EVERY, **parameters)
    start = time.perf_counter()
    queries = {"group": train.group} if task == "rank" else {}
    facts = train.facts_of_lists(task)
    if options.cv:
        return _cross_validate(options, model, train, queries)
    watched = None if held_out is None else {"held out": _eval_set(held_out, task)}
    if _chooses(parameters):
        watched = None  # rows that choose the rounds would score too well
    weights = {"sample_weight": train.weight, "init_score": train.offset}
    model.fit(train.x, train.y, eval_set=watched, **weights, **queries, **facts)
    seconds = time.perf_counter() - start
    if options.model:
        model.save_model(options.model)
    if not options.quiet:
        _report(new_console(), options, model, train, held_out, seconds)
    return 0


def _cross_validate(options: argparse.Namespace, model: Any, rows: InputTable, queries: dict[str, Any]) -> int:
    """Print the mean scores of the folds; save a model of all rows, with the best number of rounds, if asked for."""
    import gpuboost

    rounds = model.early_stopping_rounds
    model.set_params(early_stopping_rounds=None)
    cv_arguments = {
        "sample_weight": rows.weight,
        "init_score": rows.offset,
        "folds": options.cv,
        "refit": bool(options.model),
    }
    seed = {} if model.random_state is None else {"random_state": model.random_state}
    result: Any = gpuboost.cv(model, rows.x, rows.y, early_stopping_rounds=rounds, **cv_arguments, **seed, **queries)
    if options.model:
        result.model.save_model(options.model)
    if not options.quiet:
        console = new_console()
        best = result.best_iteration_
        console.print(f"{options.cv} folds, the best round is {best + 1}", highlight=False)
        means = {name: curve[best] for name, curve in result.mean.items()}
        spreads = {name: curve[best] for name, curve in result.std.items()}
        console.print(table(f"{rows.n_rows:,} rows", {"mean": means, "deviation": spreads}))
        if options.model:
            console.print(f"saved to {options.model}", highlight=False, soft_wrap=True)
    return 0


def _read(path: str, options: argparse.Namespace, like: InputTable | None = None) -> InputTable:
    """The rows of a file. like: those to train on, whose width and columns of text they are to have."""
    if options.target and options.targets:
        raise InputError("--targets: names every column to learn; leave --target out.")
    columns = options.targets or options.target, options.weight, options.categorical
    form = {"kind": options.format, "one_based": None, "decimal": options.decimal, "thousands": options.thousands}
    n_features = None
    if like is not None:
        n_features = like.x.shape[1]
        form |= {"one_based": names_of(like.x) is not None, "text": text_columns(like, options.target)}
    rows = read(path, *columns, n_features, options.group, options.sep, options.offset, options.position, **form)
    if rows.y is None:
        names = names_of(rows.x) or []
        shown = ", ".join(names[:10]) + (" ..." if len(names) > 10 else "")
        raise InputError(f"--target: names the column to learn; none is given, and {path} has {shown}. Add --target.")
    check_targets(rows.y, path)
    return rows


def _eval_set(rows: InputTable, task: str) -> tuple[Any, ...]:
    if task == "rank":
        return rows.x, rows.y, rows.group, rows.weight, rows.offset
    return rows.x, rows.y, rows.weight, rows.offset


def _check(options: argparse.Namespace, parameters: dict[str, Any]) -> None:
    """Raise errors before any work that would otherwise occur at its end."""
    if options.cv and options.eval:
        raise InputError("--cv: every row is held out once, so --eval has nothing to add; leave one of them out.")
    for option in ("position", "pairs"):
        if options.cv and getattr(options, option):
            raise InputError(f"--{option}: a cross-validation has none; use --eval in place of --cv.")
    if "early_stopping_rounds" in parameters and not (options.eval or options.cv or _chooses(parameters)):
        raise InputError("--early-stopping-rounds: needs rows to watch; add --eval 0.2, or --eval FILE.")
    if options.quiet and not options.model:
        raise InputError("--quiet: nothing would be left of this training; add --model FILE, or leave --quiet out.")
    if options.model:
        check_place("--model", options.model, options.data, options.eval)
    if parameters.get("random_state", 0) < 0:
        raise InputError(f"--seed: must be an integer of at least 0; got {parameters['random_state']}.")


def _check_task(task: str, parameters: dict[str, Any]) -> None:
    """Refuse parameters that the estimator of this task does not have."""
    if task != "rank" and "eval_at" in parameters:
        raise InputError(f"--eval-at: places are of rankings, and this is a {task}; leave it out, or add --task rank.")
    for name in NOT_OF_RANKINGS:
        if task == "rank" and name in parameters:
            raise InputError(f"--{name.replace('_', '-')}: a ranking has one output; leave it out.")


def _chooses(parameters: dict[str, Any]) -> bool:
    return bool(parameters.get("n_estimators") == "auto")


def _class_weight(asked: str | dict[str, float], rows: InputTable, task: str) -> Any:
    """Value of ``class_weight``: its keys are labels as the target has them."""
    if task != "classification":
        raise InputError(f"--class-weight: weights are of classes, and the task is {task}; leave it out.")
    if rows.y.ndim == 2:
        raise InputError("--class-weight: weights are of the classes of one target; use --weight, or --target.")
    if isinstance(asked, str):
        return asked
    labels = {str(label): label for label in rows.y.tolist()}
    labels |= {f"{label:g}": label for label in rows.y.tolist() if isinstance(label, float)}
    unknown = [name for name in asked if name not in labels]
    if unknown:
        shown = ", ".join(sorted(labels)[:10])
        raise InputError(f"--class-weight: the target has no class {unknown[0]!r}; it has {shown}.")
    return {labels[name]: weight for name, weight in asked.items()}


def _with_parameter(loss: str) -> Any:
    """The loss object that text such as quantile:0.9, aft:logistic,0.5 or lambdamart:map stands for."""
    from dataclasses import fields

    from gpuboost.losses.registry import get

    name, _, value = loss.partition(":")
    kind: Any = type(get(name))
    names = [field.name for field in fields(kind)]
    if "metric" in names:
        return kind(metric=value)
    if len(names) != 1 and name != "aft":
        why = f"is given by its name alone, for {kind()!r}" if names else "has no parameter"
        raise InputError(f"--loss: {name} {why}; got {loss!r}.")
    try:
        if name == "aft":
            distribution, _, scale = value.partition(",")
            return kind(distribution, float(scale or 1.0))
        parameters = [float(part) for part in value.split(",")]
        return kind(parameters if len(parameters) > 1 else parameters[0])
    except ValueError as error:
        raise InputError(f"--loss: the parameter of {name} in {loss!r}: {str(error).rstrip('.')}.") from None


def _held_out(
    rows: InputTable, options: argparse.Namespace, seed: int, task: str
) -> tuple[InputTable, InputTable | None]:
    if not options.eval:
        return rows, None
    try:
        share = float(options.eval)
    except ValueError:
        return rows, _read(options.eval, options, rows)
    if not 0.0 < share < 1.0:
        raise InputError(f"--eval: a share of the rows is between 0 and 1; got {options.eval}.")
    return split(rows, share, seed, task=task)


def _report(
    console: Any,
    options: argparse.Namespace,
    model: Any,
    train: InputTable,
    held_out: InputTable | None,
    seconds: float,
) -> None:
    kind = type(model).__name__
    console.print(f"{kind}: {train.n_rows:,} rows, {model.n_features_in_} features, {seconds:.2f} s", highlight=False)
    if model.n_estimators == "auto":
        console.print(f"{model.n_iter_} rounds, chosen on rows set aside", highlight=False)
    if model.best_iteration_ is not None:
        watched = next(iter(next(iter(model.evals_result_.values())).values()))
        most = model.n_estimators * model.columns_.sequences
        stopped = f"stopped after {len(watched)}" if len(watched) < most else f"{len(watched)}"
        console.print(f"{stopped} rounds, the best of which is round {model.best_iteration_ + 1}", highlight=False)
    if held_out is not None:
        simple = baseline(train.y, train.weight, classify=hasattr(model, "classes_"))
        judged = held_out.x, held_out.y, held_out.weight, held_out.group if hasattr(model, "eval_at") else None
        offset = {} if held_out.offset is None else {"init_score": held_out.offset}
        columns = {"gpuboost": scores(model, *judged, **offset), "baseline": scores(simple, *judged)}
        if columns["gpuboost"].keys() != columns["baseline"].keys():
            del columns["baseline"]  # the mean, which no quantile loss judges
        console.print(table(f"{held_out.n_rows:,} held-out rows", columns))
    if options.model:
        console.print(f"saved to {options.model}", highlight=False, soft_wrap=True)
