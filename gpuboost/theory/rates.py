"""Closed forms, and the bounds of the theorems."""

from __future__ import annotations

from math import sqrt

from gpuboost.arguments import is_integer, is_real
from gpuboost.errors import InputError, shown


def _check_learners(p: int) -> None:
    if not is_integer(p, 1):
        raise InputError(f"p: must be a number of learners, an integer of at least 1; got {p!r}.")


def _check_not_negative(**numbers: float) -> None:
    for name, value in numbers.items():
        if not is_real(value, 0.0):
            raise InputError(f"{name}: must be a finite number, 0 or more; got {value!r}.")


def _check_positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not is_real(value) or value <= 0.0:
            raise InputError(f"{name}: must be a finite number above 0; got {value!r}.")


def step_share(nu: float) -> float:
    """2 nu - nu^2: the part of a full step's progress that nu / sigma makes for sure. InputError outside (0, 2)."""
    if not is_real(nu) or not 0.0 < nu < 2.0:
        raise InputError(f"nu: a step goes down for sure only between 0 and 2 times 1 / sigma; got {nu!r}.")
    return 2.0 * nu - nu * nu


def descent(projection: float, sigma: float, nu: float = 1.0) -> float:
    """Least decrease of the summed loss in a round: (nu - nu^2 / 2) / sigma |P r|^2.

    projection: |P r|^2, the squared length of the negative gradient within the learner that was taken. Holds for any
    learner that is a projection, however it was chosen, with leaf values of all rows.
    """
    _check_positive(sigma=sigma)
    _check_not_negative(projection=projection)
    return 0.5 * step_share(nu) / sigma * projection


def linear_factor(sigma: float, mu: float, xi: float, nu: float = 1.0) -> float:
    """Theorem 4.1: E(L - L*) is multiplied by at most 1 - (2 nu - nu^2) (mu / sigma) Xi a round. Xi may be Theta^2."""
    _check_positive(sigma=sigma)
    _check_not_negative(mu=mu, xi=xi)
    return 1.0 - step_share(nu) * (mu / sigma) * xi


def linear_bound(gap: float, rounds: int, sigma: float, mu: float, xi: float, nu: float = 1.0) -> float:
    """Theorem 4.1: E(L - L*) after this many rounds, from L - L* = gap."""
    _check_not_negative(gap=gap, rounds=rounds)
    factor = linear_factor(sigma, mu, xi, nu)
    if not -1.0 <= factor <= 1.0:
        raise InputError(
            f"mu, xi: the bound holds for mu <= sigma and xi <= 1; got mu {mu!r}, sigma {sigma!r}, xi {xi!r}."
        )
    return float(gap * factor**rounds)


def sublinear_bound(gap: float, rounds: int, sigma: float, dist: float, nu: float = 1.0) -> float:
    """Theorem 4.2: 1 / (1 / gap + M (2 nu - nu^2) / (2 sigma Dist^2)) after M rounds.

    For a loss that is smooth and convex and whose level set {L <= L_0} is bounded: Dist is its largest distance to the
    minimum, in the dual of the selection rule's norm. Plain logistic loss has no such set.
    """
    _check_positive(sigma=sigma, dist=dist)
    _check_not_negative(gap=gap, rounds=rounds)
    size = 2.0 * sigma * dist * dist
    if gap == 0.0 or size == 0.0:  # of a tiny distance
        return 0.0
    return 1.0 / (1.0 / gap + rounds * step_share(nu) / size)


def orthonormal_angle(p: int, t: int | None = None) -> float:
    """Theta of p orthonormal learners, t of them drawn (equation 18): min(t / p, 1 / sqrt(p)) exactly."""
    _check_learners(p)
    if t is not None and not is_integer(t, 1, p):
        raise InputError(f"t: must be None, or an integer from 1 to {p}; got {t!r}.")
    return min((p if t is None else t) / p, 1.0 / sqrt(p))


def orthonormal_edge(p: int) -> float:
    """Xi of p orthonormal learners: 1 / p, however many are drawn."""
    _check_learners(p)
    return 1.0 / p


def ternary_angle(p: int) -> float:
    """Theta of all vectors of -1, 0 and 1 in p dimensions but 0 (equation 20), all of which compete."""
    _check_learners(p)
    return 1.0 / sqrt(sum((sqrt(i) - sqrt(i - 1)) ** 2 for i in range(1, p + 1)))


def huber_distance(loss: float, delta: float, n: int) -> float:
    """Dist of theorem 4.2 for the Huber loss on n rows, B the identity and all of it competing: L_0 / d + n d / 2.

    For a summed loss L_0 of at least n d^2 / 2; distances are sums of absolute values.
    """
    _check_positive(delta=delta)
    _check_not_negative(loss=loss)
    if not is_integer(n, 1, 2**53):
        raise InputError(f"n: must be the number of rows, an integer of at least 1; got {shown(n)}.")
    return loss / delta + 0.5 * n * delta
