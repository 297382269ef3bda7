"""``n_estimators="auto"`` and ``learning_rate="auto"``: what is known of them before any fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboost.arguments import is_integer, is_real
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.errors import RecipeError, shown
from gpuboost.langevin import Langevin

AUTO = "auto"

MOST_ROUNDS = 5_000
"""Rounds of a fit that chooses their number, at most."""

SHARE = 0.2
"""Share of the rows, or queries, that a split sets aside, unless ``validation_fraction`` says otherwise."""

SPLITS = ((3_000, 3), (10_000, 2))
"""(rows, splits): data of fewer rows have so many splits, and one otherwise: the fewer rows, the noisier a score."""

LEAST_RATE, MOST_RATE = 0.03, 0.1
"""Bounds of the learning rate of a fit that chooses its rounds; the lower one is that of 1,000 rows."""

PRODUCT, OF_ROWS, STEEPEST = 10.0, 10_000, 0.3
"""Learning rate times number of rounds if that is given: of so many rows or fewer; and the highest such rate."""

PATIENCE = 3.0
"""Learning rate times the rounds to wait for a new best."""

LEAST_SHARE = 1e-5
"""Least gain of a new best while a fit waits for one, as a share of the first value: a few rows, or rows without noise,
are fitted better and better for thousands of rounds, by less and less."""


def is_auto(value: Any) -> bool:
    """True for the text ``"auto"``."""
    return isinstance(value, str) and value == AUTO


def is_asked(params: Mapping[str, Any]) -> bool:
    """True if one of the two parameters is ``"auto"``."""
    return is_auto(params["n_estimators"]) or is_auto(params["learning_rate"])


def provisional(params: Mapping[str, Any], n_rows: int) -> Mapping[str, Any]:
    """The parameters with numbers for ``"auto"``: the most rounds, and the learning rate of so many rows.

    Raises
    ------
    RecipeError
        If they are of a chain, or text other than ``"auto"``.
    """
    for name, rule in (("n_estimators", "an integer of at least 0"), ("learning_rate", "a finite number above 0")):
        if isinstance(params[name], str) and not is_auto(params[name]):
            raise RecipeError(f"{name}: must be {rule}, or 'auto'; got {shown(params[name])}.")
    if not is_asked(params):
        return params
    if isinstance(params.get("langevin"), Langevin):
        name = "n_estimators" if is_auto(params["n_estimators"]) else "learning_rate"
        raise RecipeError(
            f"{name}: 'auto' picks the best iterate by held-out rows, and a Langevin chain is not there to be stopped "
            "at its best: its draws come from rounds after the burn-in, at the step of its theorem. Give a number."
        )
    chosen = is_auto(params["n_estimators"])
    rounds, rate = MOST_ROUNDS if chosen else params["n_estimators"], params["learning_rate"]
    if is_auto(rate):
        fixed_rounds = None if chosen or not is_integer(rounds) else int(rounds)  # what is no integer is refused later
        rate = learning_rate(n_rows, fixed_rounds)
    return {**params, "n_estimators": rounds, "learning_rate": rate}


def n_splits(rows: RowMetadata) -> int:
    """Number of times that rows, or queries, are set aside."""
    units = rows.n_kept if rows.query_start is None else len(rows.query_start) - 1
    return next((splits for below, splits in SPLITS if units < below), 1)


def learning_rate(rows: int, rounds: int | None) -> float:
    """The learning rate of ``"auto"``. rounds: their number if it is given; None if it is chosen too.

    For chosen rounds the rate is from 0.03 to 0.1 and grows with the fifth root of the number of rows; such rates were
    compared on up to 20,000 rows (``defaults`` in benchmarks/README.md). For given rounds the product of rate and
    rounds is 10 up to 10,000 rows (0.1 for 100 rounds), and grows with the square root of the rows beyond. The growth
    of both with the rows is a rule of thumb.
    """
    if rounds is None:
        rate = min(MOST_RATE, LEAST_RATE * max(1.0, rows / 1_000) ** 0.2)
    else:
        rate = min(STEEPEST, PRODUCT * max(1.0, rows / OF_ROWS) ** 0.5 / max(1, rounds))
    return float(f"{rate:.4g}")  # powers differ in their last bit between machines


def patience(rate: Any) -> int:
    """Rounds without a new best after which a fit stops. rate: the learning rate; 0.1 if it is not a number."""
    step = float(rate) if is_real(rate, PATIENCE / MOST_ROUNDS) else MOST_RATE
    return max(20, round(PATIENCE / step))
