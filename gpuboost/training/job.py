"""Preparation of a fit: from an estimator's parameters and the arguments of ``fit`` to a job that can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from gpuboost import backends
from gpuboost.backends.devices import Choice, choose
from gpuboost.backends.protocol import Backend
from gpuboost.data.columns import FROM_DTYPE, Columns
from gpuboost.data.cuts import MOST_BINS, check_max_bins
from gpuboost.data.dataset import Dataset
from gpuboost.data.encoding import PARTITION
from gpuboost.data.queries import query_start
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.data.tables import Table, as_table
from gpuboost.data.weights import check_weight
from gpuboost.errors import DeviceError, GpuBoostError, InputError, RecipeError, shown
from gpuboost.execution import DataParallel
from gpuboost.execution.machines import in_process
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.losses.registry import CLASSES
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.training import parameters
from gpuboost.training.base_learners import ON_GPUS, not_on_gpus, with_numbers
from gpuboost.training.callbacks import Monitoring, RawEvalSet
from gpuboost.training.checkpoint import CheckpointState, fingerprint
from gpuboost.training.checks import check_custom_loss, warn_of_light_weights, warn_of_unused_start
from gpuboost.training.devices import as_device_array, on_host
from gpuboost.training.diverging import warn_of_steep_loss
from gpuboost.training.encoding import check_continued, chosen_policy, encoded, encoded_again
from gpuboost.training.files import Saved, write, written
from gpuboost.training.fit_record import FitRecord, PastFits, same_chain
from gpuboost.training.init_model import Start
from gpuboost.training.memory import check_room
from gpuboost.training.monotone import monotone_constraints_for
from gpuboost.training.offsets import offsets_of_watched, refuse_shrunk_offsets, with_offsets
from gpuboost.training.row_sampling import check_rows_of, for_training_rows
from gpuboost.training.rows import LabelledRows, bin_rows, eval_sets, labelled, numbers, with_values
from gpuboost.training.sharding import GPUS, shards_choice, shared_out
from gpuboost.training.targets import TrainingTarget, checked_queries
from gpuboost.training.train import Job
from gpuboost.types import Cuts, DeviceMatrix, Ensemble, TrainingSet

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.sharded.backend import Sharded


_LEAST_SHARE = 0.01  # rows; any larger share is rounded up to one


@dataclass(frozen=True, slots=True)
class Features:
    """Training rows as numbers, with their columns (encoding) and cuts."""

    rows: Any  # (n, d) numbers, or the Dataset that has them
    columns: Columns
    cuts: Cuts
    dataset: Dataset | None  # of these rows, holds their bins once made; None if the cuts are those of another model
    binning: Cuts | None = None  # cuts whose features read columns of x, if those of ``cuts`` are encoded columns

    @property
    def x(self) -> Any:
        """(n, d), read from the file of a Dataset if they have not been used yet."""
        return self.rows.x if isinstance(self.rows, Dataset) else self.rows


def job(
    params: Mapping[str, Any],
    rows: LabelledRows,
    target: TrainingTarget,
    eval_set: Any,
    start: Start | None,
    started: float,
) -> tuple[Job, Saved]:
    """The job, and the parts of its model that are known before training.

    Raises
    ------
    InputError, RecipeError, DeviceError
        If data, parameters or device cannot be used; raised before any work is done.
    """
    target = with_offsets(target, start)
    values, place = size_of(rows.x)
    choice, threads = machine(params, values, place), parameters.threads(params["n_jobs"])
    run = _run(params, rows, target, start)
    seed = run.seed
    known = None if start is None else start.columns
    held = monotone_constraints_for(params.get("monotonic_cst"), rows.x, params["categorical_features"], known)
    recipe = parameters.recipe(params, target.loss, len(target.y), rows.x.shape[1], held)
    refuse_shrunk_offsets(recipe, target.rows, start)
    check_custom_loss(recipe, target.y)
    monitoring = Monitoring.of(params, target.loss)
    check_rows_of(recipe.sampling, len(target.y))
    found = features(params, rows.x, target.rows.weight, start, threads)
    recipe = with_numbers(recipe, found.columns.names)
    learn, watches = None, params["validation_fraction"] is None
    if watches:
        found, recipe = with_encoding(params, found, recipe, target, start, seed, threads)
        on = "cpu" if choice.name == GPUS else choice.name  # eval sets stay with the driver of shards
        sets = watched(eval_set, found.columns, target, on)
    elif eval_set is None:
        found, target, sets, learn = split(params["validation_fraction"], seed, found, target)
        found, recipe = with_encoding(params, found, recipe, target, start, seed, threads)
        sets = tuple(replace(part, x=found.columns.with_statistics(part.x)) for part in sets)
    else:
        raise RecipeError("validation_fraction: rows to watch come from there or from eval_set, not both.")
    recipe = run.remaining(recipe)
    monitoring = monitoring.in_turn(recipe.sequences)
    warn_of_light_weights(recipe, target.rows.weight, len(target.y))
    recipe = replace(recipe, sampling=for_training_rows(recipe.sampling, learn, target.rows.kept))
    if start is not None:
        warn_of_unused_start(recipe, start.params)
    else:
        warn_of_steep_loss(recipe, target.y, target.rows.weight)
    resume = None if start is None else start.ensemble
    if resume is not None and resume.n_rounds and bool(resume.components) != (recipe.base_learner is not None):
        kind = "other base learners" if resume.components else "trees"
        raise RecipeError(f"base_learner: the model to continue holds {kind}, and a model holds one or the other.")
    eval_rows = tuple(watched_set.x.shape[0] for watched_set in sets)
    choice = settled(choice, params["device"] == "auto" and place is None, recipe, found, target, eval_rows)
    empty = resume or Ensemble(np.empty(0), found.cuts)
    with_offset = target.rows.offset is not None
    model = Saved(dict(params), empty, target.loss, found.columns, target.classes, offsets=with_offset)
    made = Job(
        recipe=recipe,
        training_set=training_set(found, target, with_x=recipe.base_learner is not None),
        eval_sets=sets,
        monitoring=monitoring,
        backend=backends.get(choice.name, threads),
        choice=choice,
        threads=threads,
        run=run,
        resume=resume,
        write_model=partial(_write, model),
        started=started,
        past=_past(params, run, start),
        draws=params.get("posterior_samples") is not None,
    )
    return made, model


def _run(params: Mapping[str, Any], rows: LabelledRows, target: TrainingTarget, start: Start | None) -> CheckpointState:
    """The initial state of the fit: its seed, its data, and the rounds that were done before."""
    data = fingerprint(rows.x.shape[1], target.y, target.rows.weight, target.rows.offset)
    if start is None or start.run is None:
        return CheckpointState(seed_of(params["random_state"]), 0 if start is None else start.ensemble.n_rounds, data)
    start.run.check(written(start.params), written(params), params["random_state"], data)
    return start.run


def _past(params: Mapping[str, Any], run: CheckpointState, start: Start | None) -> PastFits:
    """Facts of the rounds that the fit continues."""
    if start is None:
        return PastFits()
    if start.run is not None:
        return PastFits.of_checkpoint(start.record, run.first, run.done)
    chain, rounds = start.record.chain, start.ensemble.n_rounds
    goes_on = chain is not None and chain.data == run.data and same_chain(written(start.params), written(params))
    return PastFits.of_model(start.record, rounds, chain.start if goes_on and chain is not None else rounds)


def _write(model: Saved, ensemble: Ensemble, path: str, run: dict[str, Any], record: FitRecord) -> None:
    """Write a checkpoint."""
    write(replace(model, ensemble=ensemble, run=run, record=record), path)


def machine(params: Mapping[str, Any], values: int, place: str | None) -> Choice:
    """The device of a fit: the CPU if a GPU has no kernels for the recipe, or if workers are other processes.

    Raises
    ------
    RecipeError, DeviceError
        As ``choose``; and if ``device`` asks for a GPU in one of these cases.
    """
    if isinstance(params.get("execution"), DataParallel):
        return shards_choice(params, place)
    asked = params["device"]
    reason = _why_on_the_cpu(params, automatic=isinstance(asked, str) and asked == "auto" and place is None)
    if reason is None:
        return choose(asked, values, place)
    what, instead = reason
    if place is not None or (isinstance(asked, str) and asked.startswith("cuda")):
        seen = f"X lives on {place}" if place is not None else f"got device={asked!r}"
        raise DeviceError(
            f"device: {what} on the CPU; {seen}. Use device='cpu' or 'auto', and data on the host; or {instead}."
        )
    choice = choose(asked)
    if asked != "auto":
        return choice
    return Choice("cpu", f"device='auto' took the CPU, where {what}.")


def _why_on_the_cpu(params: Mapping[str, Any], *, automatic: bool) -> tuple[str, str] | None:
    """The work that GPUs have no kernels for, and what to use instead; None if a GPU can run the recipe."""
    execution, learner = params.get("execution"), not_on_gpus(params.get("base_learner"))
    several = declared(ExecutionTraits, execution).has_workers
    if learner is not None:
        return f"base_learner={learner} is fitted", f"base_learner=None (trees), or of {ON_GPUS}"
    if getattr(params.get("sampling"), "factor", None) is not None:
        return "scores of rows are multiplied by factor=", "gb.RowProbabilities, or no factor"
    if several and params.get("base_learner") is not None:
        return "base learners other than trees are fitted by several workers", "execution=None"
    if several and not in_process(execution):
        return "trees of workers in other processes are built", "engine='threads', a stream for each worker"
    if several and automatic:
        return "several workers use several cores", "device='cuda'"
    return None


def features(
    params: Mapping[str, Any], rows: Any, weight: NDArray[np.float64] | None, start: Start | None, threads: int
) -> Features:
    """Columns and cuts: those of the model to continue, those of the Dataset, or newly chosen ones.

    Raises
    ------
    InputError, RecipeError
        If the data cannot be learned from, or a parameter contradicts the Dataset.
    """
    check_max_bins(params["max_bins"])
    if isinstance(rows, Dataset) and not isinstance(params.get("execution"), DataParallel):
        rows = rows.loaded()
    if start is not None:
        of_rows = replace(start.columns, statistics=None)
        x = _named("init_model", lambda: numbers(rows, of_rows, read=False))
        return Features(x, start.columns, start.ensemble.cuts, None)
    if isinstance(rows, Dataset):
        _agree(params, rows)
        dataset = rows
    else:
        dataset = Dataset(
            rows,
            weight=weight,
            max_bins=params["max_bins"],
            categorical_features=params["categorical_features"],
            n_jobs=threads,
        )
    return Features(dataset, dataset.columns, dataset.cuts, dataset)


def with_encoding(
    params: Mapping[str, Any],
    found: Features,
    recipe: Recipe,
    target: TrainingTarget,
    start: Start | None,
    seed: int,
    threads: int,
) -> tuple[Features, Recipe]:
    """The rows with categories as ``categorical_encoding`` says, and the recipe for them.

    Raises
    ------
    RecipeError
        If a piece of the recipe contradicts ordered target statistics.
    """
    options: Any = {"seed": seed, "threads": threads}
    if start is None:
        policy = chosen_policy(params, found.columns, recipe)
        if policy == PARTITION:
            return found, replace(recipe, permutations=0)  # x of a stored Dataset is not read
        bins = found.dataset.max_bins if found.dataset is not None else int(params["max_bins"])
        made = encoded(found.x, found.columns, found.cuts, policy, target, max_bins=bins, **options)
    else:
        check_continued(params, found.columns)
        if found.columns.statistics is None:
            return found, replace(recipe, permutations=0)
        made = encoded_again(found.x, found.columns, found.columns.statistics, found.cuts, target, **options)
    recipe = replace(
        recipe, permutations=made.permutations, views=made.views, rounds=recipe.rounds * max(1, made.permutations)
    )
    limits, extra = recipe.growth.limits, made.cuts.n_columns - found.columns.n_features
    if limits.directions is not None:
        growth: Any = recipe.growth
        limits = replace(limits, directions=(*limits.directions, *(0,) * extra))
        recipe = replace(recipe, growth=replace(growth, limits=limits))
    return replace(found, rows=made.x, columns=made.columns, cuts=made.cuts, binning=made.binning, dataset=None), recipe


def _agree(params: Mapping[str, Any], dataset: Dataset) -> None:
    """Raise RecipeError if a parameter contradicts the Dataset."""
    if params["max_bins"] not in (MOST_BINS, dataset.max_bins):
        raise RecipeError(
            f"max_bins: the Dataset was cut into {dataset.max_bins} bins, the estimator asks for {params['max_bins']}; "
            "give it to the Dataset."
        )
    if not (isinstance(params["categorical_features"], str) and params["categorical_features"] == FROM_DTYPE):
        raise RecipeError("categorical_features: a Dataset has its columns decided; give it to the Dataset.")


def split(
    fraction: Any, seed: int, found: Features, target: TrainingTarget
) -> tuple[Features, TrainingTarget, tuple[RawEvalSet, ...], NDArray[np.int64]]:
    """Set a share of the rows aside as the eval set: the same share of each class, or whole queries for rankings.

    Rows of weight 0 are in neither part. The last value has the numbers of the rows that remain, increasing.

    Raises
    ------
    RecipeError, InputError
        If it is not a share, or there are too few rows to split.
    """
    if found.dataset is not None and found.dataset.in_files:
        raise InputError("validation_fraction: rows of Parquet files stay where they are; pass others as eval_set.")
    from sklearn.model_selection import train_test_split  # slow to import, and few need it

    is_number = isinstance(fraction, Real) and not isinstance(fraction, bool)
    share = parameters.as_float(fraction) if is_number else 0.0
    if not 0.0 < share < 1.0:
        raise RecipeError(f"validation_fraction: must be None or a share between 0 and 1; got {shown(fraction)}.")
    group, weight = target.rows.group, target.rows.weight
    sizes = np.ones(len(target.y), np.int64) if group is None else np.diff(query_start(group))
    query = np.repeat(np.arange(len(sizes)), sizes)
    units = np.arange(len(sizes)) if weight is None else np.unique(query[weight > 0.0])
    strata = None if target.classes is None else target.y[units]
    if share * len(units) < _LEAST_SHARE:
        raise RecipeError(f"validation_fraction: {fraction} of {len(units)} is no row; set a larger share aside.")
    try:
        learn, watch = train_test_split(units, test_size=share, random_state=seed % 2**32, stratify=strata)
    except ValueError as error:
        units_are = f"{len(units)} {'rows' if group is None else 'queries'}"
        raise InputError(f"validation_fraction: {fraction} of {units_are} cannot be set aside; {error}") from None
    learn, watch = np.sort(learn), np.sort(watch)
    if group is not None:
        learn, watch = (np.flatnonzero(np.isin(query, some)) for some in (learn, watch))

    def part(rows: NDArray[np.intp]) -> tuple[Any, NDArray[np.float64], RowMetadata]:
        n = len(rows)
        part_weight = None if weight is None else check_weight(weight[rows], n, "validation_fraction")
        offset = None if target.rows.offset is None else np.ascontiguousarray(target.rows.offset[:, rows])
        metadata = RowMetadata.of(n, part_weight, None if group is None else group[rows], offset)
        return found.x[rows], target.y[rows], metadata

    x, y, metadata = part(learn)
    return (
        replace(found, rows=x, dataset=None),
        replace(target, y=y, rows=metadata),
        (RawEvalSet("validation_0", *part(watch)),),
        learn,
    )


def size_of(x: Table | Dataset) -> tuple[int, str | None]:
    """The number of stored values, and the GPU that holds them; None if they are in the host's memory."""
    if isinstance(x, Dataset):
        return x.n_values, x.device
    matrix = x.matrix
    if isinstance(matrix, DeviceMatrix):
        return matrix.shape[0] * matrix.shape[1], matrix.device
    return int(matrix.nnz) if hasattr(matrix, "nnz") else x.shape[0] * x.shape[1], None


def settled(
    choice: Choice,
    automatic: bool,
    recipe: Recipe,
    found: Features,
    target: TrainingTarget,
    eval_rows: tuple[int, ...],
) -> Choice:
    """The choice if that device can run the recipe; otherwise the CPU if the choice was automatic.

    Raises
    ------
    DeviceError
        If a GPU was requested and has too little memory, or cannot compute the loss.
    """
    if choice.name in ("cpu", GPUS):
        return choice
    from gpuboost.backends.cuda.codegen.formulas import functions_of
    from gpuboost.backends.cuda.device.gpus import open_gpu

    try:
        check_room(choice.name, recipe, found.cuts, target.rows, eval_rows)
        of_the_library = type(recipe.loss) is CLASSES.get(recipe.loss.name)
        open_gpu(choice.name).check(functions_of(recipe.loss), beside=of_the_library)
    except DeviceError as error:
        if not automatic:
            raise
        return Choice("cpu", f"device='auto' took the CPU; on {choice.name}: {error}")
    return choice


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
        RawEvalSet(name, *_named(f"eval_set: {name}", partial(one, *parts)))
        for name, *parts in eval_sets(given, by_query=by_query)
    )


def training_set(found: Features, target: TrainingTarget, *, with_x: bool) -> Callable[[Backend], TrainingSet]:
    """A function by which a backend bins the rows; a Dataset keeps its bins. with_x: keep the binned numbers, too."""

    def make(backend: Backend) -> TrainingSet:
        data = binned(backend)
        return with_values(data, found.x, target.rows) if with_x else data

    def binned(backend: Backend) -> TrainingSet:
        if found.binning is not None:
            plain = training_set(replace(found, cuts=found.binning, binning=None, dataset=None), target, with_x=False)
            return replace(plain(backend), cuts=found.cuts)
        if backend.name == "sharded":
            return shared_out(cast("Sharded", backend), found.x, found.cuts, target.y, target.rows)
        if found.dataset is None or target.rows.kept is not None:
            return bin_rows(backend, found.x, found.cuts, target.y, target.rows)
        where = backend.name if backend.name.startswith("cuda") else "host"
        return target.rows.training_set(found.dataset.binned(backend.quantise, where), found.cuts, target.y)

    return make


def seed_of(random_state: Any) -> int:
    """Seed of a fit: ``random_state`` itself if it is an int, else a drawn one.

    Raises
    ------
    RecipeError
        If it is not an int, None, a RandomState or a Generator.
    """
    if isinstance(random_state, bool):
        random_state = "a bool"
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return int(random_state)
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    raise RecipeError(
        "random_state: must be None, an integer of at least 0, or a numpy RandomState or Generator; got "
        f"{random_state!r}."
    )


def _named(name: str, call: Callable[[], Any]) -> Any:
    """The result of ``call``; its errors are raised again with the name in front."""
    try:
        return call()
    except DeviceError as error:
        raise DeviceError(f"{name}: {error}") from error
    except (GpuBoostError, ValueError) as error:
        raise InputError(f"{name}: {error}") from error
