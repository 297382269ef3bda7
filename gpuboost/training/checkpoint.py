"""Checkpoints: the state from which an interrupted fit continues to the model that it would have made.

A model file holds the model. To continue to the same bytes takes more: the seed, the metrics so far, and the random
numbers that were used. A checkpoint holds these too, in the same file, so that they cannot be separated.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from numbers import Integral
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError, RecipeError
from gpuboost.execution import Execution, Log, log_of
from gpuboost.model import strict_json as strict
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass
from gpuboost.types import Built, DeviceMatrix, Pairs
from gpuboost.watch.history import History
from gpuboost.watch.record import Evals, Plan

MAY_DIFFER = ("n_estimators", "random_state")
"""Parameters that may change when a fit is resumed; ``random_state`` only if it is None."""

KEYS = {"seed", "first", "data", "evals", "log"}


NOTHING = Log(())

Fingerprint = tuple[int, int, int]
"""Rows, features, and a checksum of target and weights. X has a checksum of its own in the bits above the lowest 32, 0
if it is not known; that of a Langevin chain is one of target, weights and X."""

_LOW = 32  # bits of the checksum of target and weights
_HIGH = 30  # bits of that of X, so that both are below the largest number of a file, 2**62
_BLOCK = 1 << 18  # values of X that are converted at a time


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """The content of a checkpoint other than the model."""

    seed: int
    first: int  # rounds of the model that the fit began with
    data: Fingerprint
    evals: tuple[Evals, ...] = ()  # round by round
    log: Log = NOTHING

    @property
    def done(self) -> int:
        return len(self.log.applied)

    def to_json(self) -> dict[str, Any]:
        """JSON values; numbers that JSON cannot represent (NaN, inf) as text."""
        evals = [{name: {m: repr(v) for m, v in of.items()} for name, of in values.items()} for values in self.evals]
        log = self.log.to_json()
        return {"seed": self.seed, "first": self.first, "data": list(self.data), "evals": evals, "log": log}

    @classmethod
    def from_json(cls, found: Any) -> CheckpointState:
        """Inverse of ``to_json``.

        Raises
        ------
        InputError
            If the value is not such a state.
        """
        strict.record(found, "extra.run", tuple(KEYS))
        seed, first = (strict.integer(found[name], f"extra.run.{name}", 0, 2**64) for name in ("seed", "first"))
        rows, features, check = strict.integers(found["data"], "extra.run.data", 0, 2**62, 3).tolist()
        try:
            evals = tuple(
                {name: {m: float(v) for m, v in of.items()} for name, of in values.items()} for values in found["evals"]
            )
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise InputError(f"model file: extra.run.evals: found {str(found['evals'])[:80]!r}.") from None
        return cls(seed, first, (rows, features, check), evals, Log.from_json(found["log"]))

    def remaining(self, recipe: Recipe) -> Recipe:
        """The recipe with the number of rounds that remain.

        Raises
        ------
        RecipeError
            If more rounds were done already than ``n_estimators`` asks for.
        """
        if recipe.rounds < self.done:
            raise RecipeError(
                f"n_estimators: of a fit that goes on, those before the checkpoint count; it holds {self.done} rounds, "
                f"and {recipe.rounds} are asked for."
            )
        return replace(recipe, rounds=recipe.rounds - self.done) if self.done else recipe

    def check_watched(self, plan: Plan) -> None:
        """Raise RecipeError if eval sets or metrics differ from those of the interrupted fit."""
        if not self.evals:
            return
        then = {name: sorted(of) for name, of in self.evals[0].items()}  # files have keys in their own order
        now = dict.fromkeys(plan.eval_sets, sorted(plan.metrics))
        if then != now:
            raise RecipeError(f"resume_from: a fit goes on as it began; it watched {then}, and now {now}.")

    def check(self, then: Mapping[str, Any], now: Mapping[str, Any], random_state: Any) -> None:
        """Refuse parameters that could not give the same model as the interrupted fit.

        Parameters
        ----------
        then, now
            Parameters as they are written to model files.

        Raises
        ------
        RecipeError
            If a parameter differs.
        """
        differ = [name for name in sorted(then.keys() & now.keys()) if then[name] != now[name]]
        differ = [name for name in differ if name not in MAY_DIFFER]
        if differ:
            seen = "; ".join(f"{name} was {then[name]!r} and is {now[name]!r}" for name in differ)
            raise RecipeError(f"resume_from: a fit goes on as it began; {seen}. To change them, use init_model.")
        if isinstance(random_state, Integral) and int(random_state) != self.seed:
            raise RecipeError(
                f"random_state: the fit to go on with was begun with {self.seed}; got {random_state!r}. Pass None."
            )

    def check_data(self, *data: Fingerprint) -> None:
        """Refuse other data than those of the interrupted fit. data: its possible fingerprints, the likely one first.

        A checksum of X is compared if both have one: files of earlier versions have none.

        Raises
        ------
        InputError
            If the data differ.
        """
        then, found = _parts(self.data), [_parts(given) for given in data]
        if not any(then[:3] == now[:3] and (then[3] == now[3] or not (then[3] and now[3])) for now in found):
            names = ("rows", "features", "checksum of target and weights", "checksum of X")
            pairs = list(zip(names, then, found[0], strict=True))[: 4 if then[3] and found[0][3] else 3]
            seen = "; ".join(f"{name}: {a} then, {b} now" for name, a, b in pairs if a != b)
            raise InputError(f"resume_from: these are not the data that the fit began with; {seen}.")


@dataclass(slots=True)
class CheckpointRecorder:
    """Records of a fit, from which the state after any of its rounds is made."""

    state: CheckpointState
    execution: Execution
    history: History
    lines: list[Built] = field(default_factory=list)  # since this call of fit

    def state_after(self, rounds: int) -> CheckpointState:
        """The state after ``rounds`` rounds of the model."""
        log = log_of(self.execution, self.state.seed, (*self.state.log.lines, *self.lines)).before(rounds)
        return replace(self.state, evals=self.history.by_round[: len(log.applied)], log=log)


def fingerprint(
    n_features: int,
    y: NDArray[Any],
    weight: NDArray[Any] | None,
    offset: NDArray[Any] | None = None,
    pairs: Pairs | None = None,
    position: NDArray[Any] | None = None,
) -> Fingerprint:
    """``CheckpointState.data``: rows, features, and a checksum of target, weights, offsets, pairs and positions."""
    checksum = crc32(np.ascontiguousarray(y, np.float64).data)
    if weight is not None:
        checksum = crc32(np.ascontiguousarray(weight, np.float64).data, checksum)
    if offset is not None:
        checksum = crc32(np.ascontiguousarray(offset, np.float64).data, checksum)
    for part in (position, *(() if pairs is None else (pairs.winner, pairs.loser, pairs.weight))):
        checksum = checksum if part is None else crc32(part.data, checksum)
    return len(y), n_features, checksum


def _parts(data: Fingerprint) -> tuple[int, int, int, int]:
    """Rows, features, the checksum of target and weights, and that of X."""
    return data[0], data[1], data[2] % (1 << _LOW), data[2] >> _LOW


def fingerprint_beside_values(data: Fingerprint, x: Any, threads: int = 1) -> Fingerprint:
    """A fingerprint with a checksum of X beside the other one; without, if the rows are in files.

    Equal numbers have equal checksums, in any float dtype and order of memory, and on a GPU.

    x: (n, d) array, scipy CSR matrix or matrix on a device
    """
    if hasattr(x, "indptr"):
        parts = [(x.data, np.float64), (x.indices, np.int64), (x.indptr, np.int64)]
        blocks = [(part[top : top + _BLOCK], kind) for part, kind in parts for top in range(0, len(part), _BLOCK)]
        checksums = [_checksum(block.astype(kind)) for block, kind in blocks]
    elif isinstance(x, (np.ndarray, DeviceMatrix)):
        height = max(1, _BLOCK // x.shape[1])

        def checksum(top: int) -> int:
            end = min(top + height, x.shape[0])
            rows = x[top:end] if isinstance(x, np.ndarray) else x.host_rows(np.arange(top, end))
            return _checksum(np.array(rows, np.float64, order="C"))

        with ThreadPoolExecutor(threads if isinstance(x, np.ndarray) else 1) as pool:
            checksums = list(pool.map(checksum, range(0, x.shape[0], height)))
    else:
        return data
    of_x = crc32(np.array(checksums, np.int64).data)
    return data[0], data[1], data[2] | of_x % (1 << _HIGH) << _LOW


def _checksum(block: NDArray[Any]) -> int:
    """CRC-32 of an array that may be written to, as if it had one zero and one NaN."""
    if block.dtype.kind == "f":
        block += 0.0  # of -0.0, 0.0
        np.copyto(block, np.nan, where=np.isnan(block))
    return crc32(block.data)


def fingerprint_of_chain(data: Fingerprint, x: Any) -> Fingerprint:
    """A fingerprint whose checksum is of X too, where X is in the host's memory. x: array, or scipy sparse matrix.

    Model files of chains hold it.
    """
    parts = [getattr(x, name) for name in ("data", "indices", "indptr")] if hasattr(x, "indptr") else [x]
    if not all(isinstance(part, np.ndarray) for part in parts):
        return data
    checksum = data[2]
    for part in parts:
        checksum = crc32(np.ascontiguousarray(part).view(np.uint8).data, checksum)
    return *data[:2], checksum
