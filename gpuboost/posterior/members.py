"""Rounds of one chain used as draws: a virtual ensemble (Malinin, Prokhorenkova and Ustimenko, ICLR 2021)."""

from __future__ import annotations

from math import ceil

from gpuboost.arguments import is_integer, is_real
from gpuboost.errors import InputError, shown

MOST_ROUNDS = 2**31 - 1
LEAST_SHARE = 1e-6
FORGOTTEN = 3.0  # autocorrelation times of burn-in, after which e^-3 of the start is left


def member_rounds(rounds: int, members: int, burn_in: float = 0.5) -> tuple[int, ...]:
    """The rounds after which the model is a member, evenly spaced over the part after ``burn_in``, the last included.

    Raises:
        InputError: if there are not as many rounds in that part, or an argument is out of its range.
    """
    if not is_real(burn_in) or not 0.0 <= burn_in < 1.0:
        raise InputError(f"burn_in: must be a share of the rounds, 0 or more and below 1; got {burn_in!r}.")
    if not is_integer(members, 1):
        raise InputError(f"samples: must be an integer of at least 1; got {members!r}.")
    if not is_integer(rounds, 0):
        raise InputError(f"rounds: must be an integer of at least 0; got {rounds!r}.")
    if rounds > MOST_ROUNDS:
        raise InputError(f"rounds: must be at most {MOST_ROUNDS}; got {shown(rounds)}.")
    thinning = int(rounds * (1.0 - burn_in)) // members
    if thinning < 1:
        raise InputError(
            f"samples: {members} members need {members} rounds after the burn-in; of {rounds} rounds, burn_in="
            f"{burn_in:g} leaves {int(rounds * (1.0 - burn_in))}. Ask for fewer, or raise n_estimators."
        )
    return tuple(rounds - thinning * (members - k) for k in range(1, members + 1))


def too_short(rounds: int, forgets: float, burn_in: float = 0.5) -> str:
    """Warning about a chain whose burn-in leaves too much of its start; empty if it is long enough.

    rounds: of the chain; forgets: share of the model that a round forgets, learning_rate times shrinkage; burn_in:
    share of the rounds. A chain without shrinkage has no such time, and none is judged.
    """
    if not forgets > 0.0 or burn_in * rounds * forgets >= FORGOTTEN:
        return ""
    share = burn_in if burn_in >= LEAST_SHARE else 0.5  # of less, the number of rounds would be absurd, or infinite
    needed = ceil(FORGOTTEN / (forgets * share))
    setting = f"burn_in={share:g}"
    return (
        f"n_estimators: the chain forgets its start in about {1.0 / forgets:.4g} rounds, 1 / (learning_rate x "
        f"shrinkage), and its burn-in is {burn_in * rounds:.4g}: draws may still be near the start, and intervals too "
        f"narrow. {needed} rounds with {setting} would do; or raise learning_rate, or shrinkage."
    )
