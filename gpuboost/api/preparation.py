"""From an estimator's parameters and what was passed to ``fit`` to a job that can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from gpuboost import backends
from gpuboost.api import parameters
from gpuboost.api.continuing import Start
from gpuboost.api.files import Saved, write
from gpuboost.api.following import Following, Watched
from gpuboost.api.goals import Goal
from gpuboost.api.rows import Labelled, bin_rows, eval_sets, labelled, numbers
from gpuboost.api.training import Job
from gpuboost.backends.devices import choose
from gpuboost.backends.protocol import Backend
from gpuboost.data.columns import FROM_DTYPE, Columns
from gpuboost.data.cuts import MOST_BINS, check_max_bins
from gpuboost.data.dataset import Dataset
from gpuboost.data.tables import as_table
from gpuboost.data.weights import check_weight
from gpuboost.errors import GpuBoostError, InputError, RecipeError
from gpuboost.types import Cuts, Ensemble, TrainingSet


@dataclass(frozen=True, slots=True)
class Features:
    """Training rows as numbers, with what turned them to numbers and where they are cut."""

    x: Any  # (n, d)
    columns: Columns
    cuts: Cuts
    dataset: Dataset | None  # holds the bins of these very rows, or will; None if the cuts are another model's


def job(
    params: Mapping[str, Any], rows: Labelled, goal: Goal, eval_set: Any, start: Start | None, started: float
) -> tuple[Job, Saved]:
    """The job, and what is known already of the model it will make.

    Raises
    ------
    InputError, RecipeError, DeviceError
        Whatever is wrong, before any work is done.
    """
    choice, threads = choose(params["device"]), parameters.threads(params["n_jobs"])
    seed = seed_of(params["random_state"])
    recipe = parameters.recipe(params, goal.loss, len(goal.y))
    following = Following.of(params, goal.loss)
    found = features(params, rows.x, goal.weight, start, threads)
    if params["validation_fraction"] is None:
        sets = watched(eval_set, found.columns, goal)
    elif eval_set is None:
        found, goal, sets = split(params["validation_fraction"], seed, found, goal)
    else:
        raise RecipeError("validation_fraction: rows to watch come from there or from eval_set, not both.")
    resume = None if start is None else start.ensemble
    model = Saved(dict(params), resume or Ensemble(np.empty(0), found.cuts), goal.loss, found.columns, goal.classes)
    made = Job(
        recipe=recipe,
        training_set=training_set(found, goal),
        eval_sets=sets,
        following=following,
        backend=backends.get(choice.name, threads),
        choice=choice,
        threads=threads,
        seed=seed,
        resume=resume,
        write_model=lambda ensemble, path: write(replace(model, ensemble=ensemble), path),
        started=started,
    )
    return made, model


def features(
    params: Mapping[str, Any], rows: Any, weight: NDArray[np.float64] | None, start: Start | None, threads: int
) -> Features:
    """Columns and cuts: of the model to continue, of the Dataset, or chosen now.

    Raises
    ------
    InputError, RecipeError
        If the data cannot be learned from, or a parameter contradicts the Dataset.
    """
    check_max_bins(params["max_bins"])
    if start is not None:
        x = _named("init_model", lambda: numbers(rows, start.columns))
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
    return Features(dataset.x, dataset.columns, dataset.cuts, dataset)


def _agree(params: Mapping[str, Any], dataset: Dataset) -> None:
    """Refuse a parameter that the Dataset has decided otherwise."""
    if params["max_bins"] not in (MOST_BINS, dataset.max_bins):
        raise RecipeError(
            f"max_bins: the Dataset was cut into {dataset.max_bins} bins, the estimator asks for {params['max_bins']}; "
            "give it to the Dataset."
        )
    if not (isinstance(params["categorical_features"], str) and params["categorical_features"] == FROM_DTYPE):
        raise RecipeError("categorical_features: a Dataset has its columns decided; give it to the Dataset.")


def split(fraction: Any, seed: int, found: Features, goal: Goal) -> tuple[Features, Goal, tuple[Watched, ...]]:
    """Set a share of the rows aside to be watched; of classes, the same share of each.

    Raises
    ------
    RecipeError, InputError
        If it is not a share, or too few rows are there to be shared out.
    """
    from sklearn.model_selection import train_test_split  # slow to import, and few need it

    if isinstance(fraction, bool) or not isinstance(fraction, float) or not 0.0 < fraction < 1.0:
        raise RecipeError(f"validation_fraction: must be None or a share between 0 and 1; got {fraction!r}.")
    strata = None if goal.classes is None else goal.y
    try:
        learn, watch = train_test_split(
            np.arange(len(goal.y)), test_size=fraction, random_state=seed % 2**32, stratify=strata
        )
    except ValueError as error:
        raise InputError(
            f"validation_fraction: {fraction} of {len(goal.y)} rows cannot be set aside; {error}"
        ) from None
    learn, watch = np.sort(learn), np.sort(watch)

    def part(rows: NDArray[np.intp]) -> tuple[Any, NDArray[np.float64], NDArray[np.float64] | None]:
        weight = None if goal.weight is None else check_weight(goal.weight[rows], len(rows), "validation_fraction")
        return found.x[rows], goal.y[rows], weight

    x, y, weight = part(learn)
    return (
        replace(found, x=x, dataset=None),
        replace(goal, y=y, weight=weight),
        (Watched("validation_0", *part(watch)),),
    )


def watched(given: Any, columns: Columns, goal: Goal) -> tuple[Watched, ...]:
    """The eval sets as numbers.

    Raises
    ------
    InputError
        Naming the set that does not have the features or the kind of target of the training data.
    """

    def one(x: Any, y: Any, weight: Any) -> tuple[Any, NDArray[np.float64], NDArray[np.float64] | None]:
        if isinstance(x, Dataset):
            y = x.y if y is None else y
            weight = x.weight if weight is None else weight
        else:
            x = as_table(x)
        if y is None:
            raise InputError("y: a target is needed to be judged by.")
        rows = labelled(x, y, weight, x.shape[0])
        return numbers(x, columns), goal.encode(rows.y), rows.weight

    return tuple(
        Watched(name, *_named(f"eval_set: {name}", partial(one, x, y, weight)))
        for name, x, y, weight in eval_sets(given)
    )


def training_set(found: Features, goal: Goal) -> Callable[[Backend], TrainingSet]:
    """How a backend bins the rows; a Dataset remembers its bins."""

    def make(backend: Backend) -> TrainingSet:
        if found.dataset is None:
            return bin_rows(backend, found.x, found.cuts, goal.y, goal.weight)
        return found.dataset.training_set(backend.quantise, goal.y, goal.weight)

    return make


def seed_of(random_state: Any) -> int:
    """An int is the seed itself; None and a RandomState draw one.

    Raises
    ------
    RecipeError
        If it is anything else.
    """
    if isinstance(random_state, bool):
        random_state = "a bool"
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return int(random_state)
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    raise RecipeError(
        f"random_state: must be None, an integer of at least 0, or a numpy RandomState; got {random_state!r}."
    )


def _named(name: str, call: Callable[[], Any]) -> Any:
    """What ``call`` returns; an error that it raises says what it was about."""
    try:
        return call()
    except (GpuBoostError, ValueError) as error:
        raise InputError(f"{name}: {error}") from error
