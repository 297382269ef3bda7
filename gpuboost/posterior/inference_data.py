"""Draws of Langevin chains for ArviZ, whose diagnostics, summaries and plots read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_real
from gpuboost.errors import InputError, shown


def after_burn_in(traces: NDArray[np.float64], burn_in: float) -> tuple[NDArray[np.float64], int]:
    """The draws after the burn-in, and the number of those before. traces: (chains, rounds, ...).

    Raises
    ------
    InputError
        If ``burn_in`` is not a share of the rounds.
    """
    if not is_real(burn_in, 0.0) or not burn_in < 1.0:
        raise InputError(f"burn_in: must be a share of the rounds, 0 or more and below 1; got {shown(burn_in)}.")
    first = int(burn_in * traces.shape[1])
    return traces[:, first:], first


def inference_data(traces: NDArray[np.float64], burn_in: float, start: int = 0) -> Any:
    """An ``arviz.InferenceData`` whose posterior has the variable "score" of (chain, draw, output, row).

    A draw is numbered by its round, from 1. traces: (chains, rounds, k, n) scores after every round; start: rounds of
    the model before the first of them.

    Raises
    ------
    InputError
        If ``burn_in`` is not a share of the rounds, or ArviZ is not installed.
    """
    draws, first = after_burn_in(traces, burn_in)
    try:
        from arviz import from_dict
    except ModuleNotFoundError as error:
        raise InputError(f"to_inference_data: needs ArviZ; {error}. Install it: pip install 'arviz<1'.") from None
    rounds = np.arange(start + first + 1, start + first + 1 + draws.shape[1])
    return from_dict(
        posterior={"score": draws},
        coords={"draw": rounds, "output": np.arange(draws.shape[2]), "row": np.arange(draws.shape[3])},
        dims={"score": ["output", "row"]},
    )
