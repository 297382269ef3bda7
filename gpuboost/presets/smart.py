"""Importance-sampled boosting."""

from __future__ import annotations

from gpuboost.errors import RecipeError
from gpuboost.presets.keywords import PLAIN_TREES, Parameters, check_one_of
from gpuboost.sampling import ImportanceSampling, smart_first_order, smart_second_order


def smart_paper(
    order: int = 1,
    *,
    rho: float = 1.0,
    loss: str | None = "logitboost",
    n_estimators: int = 100,
    learning_rate: float = 0.1,
    variance_control: str | None = None,
) -> Parameters:
    """SMART: importance-sampled boosting, algorithm 2 (order 1) or 3 (order 2).

    F_0 = 0; rows are drawn with p = min(1, rho |g|) or min(1, rho h) and weighted by 1 / p; splits and leaf values
    -sum g / sum h are of the drawn rows.

    Parameters
    ----------
    order : 1 or 2
        Probabilities by first or second derivatives.
    rho : float
        The tuning parameter, fixed for the whole run, so that the sample shrinks with the gradients.
    loss : str or None
        Logistic loss in half log-odds. None for the estimator's own, as for rankings.
    n_estimators, learning_rate
        Rounds, and nu, which the paper does not state.
    variance_control : "none", "node", "previous_leaf" or None
        Order 2 only: the reading of the mean l'(y) over a leaf in algorithm 3. None is "node", the leaf being built,
        the only consistent reading; it costs a pass over all rows at each node, which the paper's times exclude.

    Notes
    -----
    Deviations. Number of leaves, nu and rho are not stated, and are the estimator's defaults and these. Rows of g = 0
    have weight 0 and are never drawn (q / p is 0 / 0 in algorithm 2). Scores are not clapped as psi is in Lemma A.2:
    ``loss="logitboost"`` bounds g and h by itself. With neither a ridge nor a least weight, single leaves may be long.

    Raises
    ------
    RecipeError
        If the order is neither 1 nor 2, or variance_control is given for order 1.
    """
    check_one_of("order", order, (1, 2))
    if order == 1 and variance_control is not None:
        raise RecipeError(f"variance_control: is for order=2; got {variance_control!r}.")
    sampling: ImportanceSampling = (
        smart_first_order(rho=rho, paper=True)
        if order == 1
        else smart_second_order(rho=rho, paper=True, variance_control=variance_control or "node")
    )
    loss_parameter = {} if loss is None else {"loss": loss}
    return {
        **loss_parameter,
        "n_estimators": n_estimators,
        "learning_rate": learning_rate,
        "step": "newton",
        "start": 0.0,
        "sampling": sampling,
        **PLAIN_TREES,
    }
