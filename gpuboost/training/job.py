"""Preparation of a fit: from an estimator's parameters and the arguments of ``fit`` to a job that can run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.devices import processors
from gpuboost.data.columns import Columns
from gpuboost.data.dataset import Dataset
from gpuboost.data.query_column import without_group
from gpuboost.data.tables import as_table
from gpuboost.errors import InputError, RecipeError
from gpuboost.langevin import Langevin
from gpuboost.recipe import Recipe
from gpuboost.training.checkpoint import (
    CheckpointState,
    Fingerprint,
    fingerprint,
    fingerprint_beside_values,
    fingerprint_of_chain,
)
from gpuboost.training.checks import (
    check_custom_loss,
    check_of_metrics,
    warn_of_free_trees,
    warn_of_light_weights,
    warn_of_small_target,
    warn_of_unused_start,
)
from gpuboost.training.constraints.by_column import ByColumn
from gpuboost.training.diverging import warn_of_steep_loss
from gpuboost.training.encoding import GroupingOptions
from gpuboost.training.features import Features, features, named, split, training_set, with_encoding
from gpuboost.training.files import Saved, write
from gpuboost.training.fit_record import FitRecord, PastFits, same_chain
from gpuboost.training.init_model import Start, check_averaged, rounds_before
from gpuboost.training.monitoring import Monitoring, RawEvalSet
from gpuboost.training.offsets import offsets_of_watched, refuse_shrunk_offsets, with_offsets
from gpuboost.training.parameter_json import written
from gpuboost.training.parameters.assembly import recipe_from
from gpuboost.training.parameters.base_learners import with_numbers
from gpuboost.training.parameters.seeds import seed_of_run
from gpuboost.training.parameters.threads import threads_of
from gpuboost.training.placement.device_arrays import as_device_array, on_host, size_of, uploader
from gpuboost.training.placement.devices import backend_of, checked_choice, device_choice
from gpuboost.training.placement.sharding import GPUS
from gpuboost.training.row_sampling import check_rows_of, for_training_rows
from gpuboost.training.rows import LabelledRows, eval_sets, labelled, numbers
from gpuboost.training.targets import TrainingTarget, check_facts_of_rows, checked_queries
from gpuboost.training.train import Job
from gpuboost.types import Ensemble


def job(
    params: Mapping[str, Any], rows: LabelledRows, target: TrainingTarget, eval_set: Any, start: Start | None,
    started: float,
) -> tuple[Job, Saved]:  # fmt: skip
    """The job, and the parts of its model that are known before training.

    Raises
    ------
    InputError, RecipeError, DeviceError
        If data, parameters or device cannot be used; raised before any work is done.
    """
    target = with_offsets(target, start)
    values, place = size_of(rows.x)
    choice, threads = device_choice(params, values, place), min(threads_of(params["n_jobs"]), processors())
    run, plain = _initial_state(params, rows, target, start)
    by_column = ByColumn.of_rows(params, rows.x, None if start is None else start.columns)
    first = 0 if start is None else rounds_before(start)
    size = len(target.y), rows.x.shape[1]
    recipe = recipe_from(params, target.loss, *size, by_column, first=first, counted=target.rows.n_counted)
    refuse_shrunk_offsets(recipe, target.rows, start)
    check_custom_loss(recipe, target.y, target.rows.group)
    check_facts_of_rows(target)
    monitoring = Monitoring.of(params, target.loss)
    check_rows_of(recipe.sampling, len(target.y))
    inputs = features(params, rows.x, target.rows.weight, start, threads)
    run = _with_values(run, plain, recipe, inputs, start, threads, writes=monitoring.writes_checkpoints)
    recipe = with_numbers(recipe, inputs.columns.names)
    on = "cpu" if choice.name == GPUS else choice.name  # the driver of shards encodes, and keeps the eval sets
    grouping = GroupingOptions(run.seed, threads, uploader(on))
    inputs, recipe, target, sets, learn = _parted(params, inputs, recipe, target, start, eval_set, on, grouping)
    check_of_metrics(target.loss, [metric.name for metric in monitoring.metrics], watched=bool(sets))
    recipe = run.remaining(recipe)
    monitoring = monitoring.in_turn(recipe.sequences)
    warn_of_light_weights(recipe, target.rows.weight, len(target.y))
    sampling = for_training_rows(recipe.sampling, learn, target.rows.kept)
    recipe = recipe if sampling is recipe.sampling else replace(recipe, sampling=sampling)  # whose pieces are checked
    _check_start(recipe, target, start, by_column)
    resume = None if start is None else start.ensemble
    automatic = params["device"] == "auto" and place is None
    choice = checked_choice(choice, automatic, recipe, inputs.cuts, target.rows, sets, monitoring)
    empty = resume or Ensemble(np.empty(0), inputs.cuts)
    with_offset = target.rows.offset is not None
    model = Saved(dict(params), empty, target.loss, inputs.columns, target.classes, offsets=with_offset)
    n_watched = sum(len(one.y) for one in sets) * len(monitoring.metrics)
    made = Job(
        recipe=recipe,
        training_set=training_set(inputs, target, with_x=recipe.base_learner is not None),
        eval_sets=sets,
        monitoring=monitoring,
        backend=backend_of(choice, threads, recipe, inputs.rows, inputs.cuts, target.rows.query_start, n_watched),
        choice=choice,
        threads=threads,
        run=run,
        resume=resume,
        write_model=partial(_write, model),
        started=started,
        past=_past(params, (plain, run.data), run, start),
        draws=params.get("posterior_samples") is not None,
    )
    return made, model


class _Parts(NamedTuple):
    """The training rows and the eval sets, with categories encoded as the recipe says."""

    features: Features
    recipe: Recipe
    target: TrainingTarget
    eval_sets: tuple[RawEvalSet, ...]
    learn: NDArray[np.int64] | None  # numbers of the training rows among those of X; None: all


def _parted(
    params: Mapping[str, Any], inputs: Features, recipe: Recipe, target: TrainingTarget, start: Start | None,
    eval_set: Any, on: str, grouping: GroupingOptions,
) -> _Parts:  # fmt: skip
    """The training rows, and the eval sets: those given, or a ``validation_fraction`` of the training rows.

    on: the device that encodes the eval sets. Raises RecipeError if both are given.
    """
    fraction = params["validation_fraction"]
    if fraction is None:
        inputs, recipe = with_encoding(params, inputs, recipe, target, start, grouping)
        return _Parts(inputs, recipe, target, watched(eval_set, inputs.columns, target, on), None)
    if eval_set is not None:
        raise RecipeError("validation_fraction: rows to watch come from there or from eval_set, not both.")
    inputs, target, sets, learn = split(fraction, grouping.seed, inputs, target)
    inputs, recipe = with_encoding(params, inputs, recipe, target, start, grouping)
    encoded = tuple(replace(part, x=inputs.columns.with_statistics(part.x)) for part in sets)
    return _Parts(inputs, recipe, target, encoded, learn)


def _check_start(recipe: Recipe, target: TrainingTarget, start: Start | None, constraints: ByColumn) -> None:
    """Check what a fit begins with: the model that it continues, or a constant. Raises RecipeError."""
    if start is None:
        warn_of_small_target(recipe.loss, target.y)
        warn_of_steep_loss(recipe, target.y, target.rows.weight)
        return
    warn_of_unused_start(recipe, start.params)
    warn_of_free_trees(constraints, start)
    check_averaged(recipe, start)
    resume = start.ensemble
    if resume.n_rounds and bool(resume.components) != (recipe.base_learner is not None):
        kind = "other base learners" if resume.components else "trees"
        raise RecipeError(f"base_learner: the model to continue holds {kind}, and a model holds one or the other.")


def _initial_state(
    params: Mapping[str, Any], rows: LabelledRows, target: TrainingTarget, start: Start | None
) -> tuple[CheckpointState, Fingerprint]:
    """The state that the fit begins with (seed, fingerprint, rounds done before), and the fingerprint of its rows."""
    facts = target.rows
    data = fingerprint(rows.x.shape[1], target.y, facts.weight, facts.offset, facts.pairs, facts.position)
    if start is None or start.run is None:
        first = 0 if start is None else start.ensemble.n_rounds
        return CheckpointState(seed_of_run(params), first, data), data
    start.run.check(written(start.params), written(params), params["random_state"])
    if params.get("langevin") is None:
        start.run.check_data(data)  # before X, which may be of another shape, is encoded
    return start.run, data


def _with_values(
    run: CheckpointState, plain: Fingerprint, recipe: Recipe, inputs: Features, start: Start | None, threads: int,
    *, writes: bool,
) -> CheckpointState:  # fmt: skip
    """The state with a checksum of X too, if it is of a chain, whose law depends on the rows, or may be resumed.

    writes: True if the fit writes checkpoints.
    """
    resumed = None if start is None else start.run
    is_chain = isinstance(recipe.langevin, Langevin)
    if not (is_chain or writes or resumed is not None):
        return run
    data = fingerprint_of_chain(plain, inputs.x) if is_chain else fingerprint_beside_values(plain, inputs.x, threads)
    if resumed is not None:  # files of earlier versions have no checksum of X
        resumed.check_data(*((data, plain) if is_chain else (data,)))
    return replace(run, data=data)


def _past(
    params: Mapping[str, Any], data: tuple[Fingerprint, ...], run: CheckpointState, start: Start | None
) -> PastFits:
    """Facts of the rounds that the fit continues. data: fingerprints of the rows, as files may hold them."""
    if start is None:
        return PastFits()
    if start.run is not None:
        return PastFits.of_checkpoint(start.record, run.first, run.done)
    chain, rounds = start.record.chain, start.ensemble.n_rounds
    goes_on = chain is not None and chain.data in data and same_chain(written(start.params), written(params))
    return PastFits.of_model(start.record, rounds, chain.start if goes_on and chain is not None else rounds)


def _write(model: Saved, ensemble: Ensemble, path: str, run: dict[str, Any], record: FitRecord) -> None:
    """Write a checkpoint."""
    write(replace(model, ensemble=ensemble, run=run, record=record), path)


def watched(given: Any, columns: Columns, target: TrainingTarget, device: str) -> tuple[RawEvalSet, ...]:
    """The eval sets as numbers.

    Raises
    ------
    InputError
        If a set does not have the features or the kind of target of the training data; the message names the set.
    """

    by_query = target.rows.group is not None

    def one(x: Any, y: Any, weight: Any, group: Any, offset: Any) -> tuple[Any, ...]:
        if isinstance(x, Dataset):
            y = x.y if y is None else y
            weight = x.weight if weight is None else weight
            group = x.group if group is None else group
            offset = x.init_score
        else:
            x, group = without_group(x, group)
            x = as_table(as_device_array(x, device))
        if y is None:
            raise InputError("y: a target is needed to be judged by.")
        rows = labelled(x, on_host(y), on_host(weight), x.shape[0], group if by_query else None, on_host(offset))
        values, encoded = numbers(x, columns), target.encode(rows.y)
        metadata = offsets_of_watched(rows.metadata, target)
        if by_query:
            checked_queries(metadata)
        return values, encoded, metadata

    return tuple(
        RawEvalSet(name, *named(f"eval_set: {name}", partial(one, *parts)))
        for name, *parts in eval_sets(given, by_query=by_query)
    )
