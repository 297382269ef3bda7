"""Published samplers, as settings of ``ImportanceSampling``."""

from __future__ import annotations

from gpuboost.sampling.importance import ImportanceSampling


def smart_first_order(
    rate: float | None = None, rho: float | None = None, *, paper: bool = False
) -> ImportanceSampling:
    """SMART, algorithm 2: p in proportion to |g|.

    ``paper``: as printed, without a floor and with leaf values of the sample; ``rho`` is its parameter.
    """
    control = "none" if paper else "leaf_refit"
    return ImportanceSampling(rate, rho, "gradient", 0.0 if paper else None, control)


def smart_second_order(
    rate: float | None = None, rho: float | None = None, *, paper: bool = False, variance_control: str = "node"
) -> ImportanceSampling:
    """SMART, algorithm 3: p in proportion to h, and the improved diagonal approximation.

    The paper does not state over which leaves it averages. "node" is the only consistent reading, at the cost of a
    pass over all rows at every node; "previous_leaf" is as cheap as the paper's timings, and training stalls;
    "leaf_refit" is this library's alternative. ``paper``: without a floor.
    """
    return ImportanceSampling(rate, rho, "hessian", 0.0 if paper else None, variance_control)


def MVS(  # noqa: N802, a name of the field's, beside GOSS
    rate: float, *, frozen_from: int | None = None
) -> ImportanceSampling:
    """Minimal variance sampling (Ibragimov and Gusev, NeurIPS 2019): p in proportion to sqrt(g^2 + 0.1 h^2).

    With one threshold for all rows. CatBoost solves for one in each block of 8,192 rows. ``frozen_from``: as of
    ``gb.ImportanceSampling``.
    """
    return ImportanceSampling(rate, frozen_from=frozen_from)
