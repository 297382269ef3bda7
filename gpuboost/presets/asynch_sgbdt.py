"""Asynchronous boosting on a parameter server."""

from __future__ import annotations

from typing import Any

from gpuboost.execution import Asynchronous, Execution, SimulatedWorkers
from gpuboost.presets.keywords import PLAIN_TREES, Parameters
from gpuboost.sampling import UniformSampling


def asynch_sgbdt_paper(
    workers: int = 16,
    *,
    rate: float = 0.8,
    n_estimators: int = 400,
    max_leaves: int = 100,
    learning_rate: float = 0.01,
    loss: str | None = "logitboost",
    start: str | float = "mean",
    build_time: Any = None,
    server_time: Any = None,
) -> Parameters:
    """Asynchronous stochastic gradient boosting on a parameter server (Asynch-SGBDT), algorithm 3.

    F_0 is the mean label; a worker pulls sampled gradients of a version, builds a tree of at most ``max_leaves`` leaves
    on 80 % of the features with leaf values V (V'V)^-1 V' L'_random (equation 14, gradient step), and the server adds v
    times that tree, however old it is. The defaults are those of figure 6 (real-sim); figure 5 (Higgs): 1,000 trees of
    20 leaves.

    Parameters
    ----------
    workers : int
        Number of workers.
    rate : float
        Sampling rate R; the figures have 0.2, 0.4, 0.6, 0.8 and 5e-6.
    n_estimators, max_leaves, learning_rate
        Trees, leaves, and v.
    loss : str or None
        Logistic loss in half log-odds, on whose scale v = 0.01 is meant (0.04 in log-odds). None: the estimator's own.
    start : str or float
        F_0. "half_log_odds" is the constant of least loss, which the mean label is not.
    build_time, server_time : as of ``gb.SimulatedWorkers``, or None
        If one is given, the cluster is simulated with these times, to the same model every time.

    Notes
    -----
    Deviations. Trees are fitted to -g, the sign of equation 14 and not of algorithm 3. They see all rows, a row that
    was not drawn with a gradient of 0, as equation 14 has it (Horvitz-Thompson); for means of the drawn rows replace
    ``sampling`` by ``gb.UniformSampling(rate)``. Rows are drawn once per version, as printed
    (``sample_at="version"``). Above the stability limit of delayed gradients ``fit`` refuses; the bound of
    proposition 1 is far smaller than any step the paper runs.
    """
    rules: Parameters = {"leaf_values": "worker", "sample_at": "version"}
    execution: Execution = Asynchronous(workers, **rules)
    if build_time is not None or server_time is not None:
        times = {"build_time": build_time, "server_time": server_time}
        execution = SimulatedWorkers(
            workers, **{name: value for name, value in times.items() if value is not None}, **rules
        )
    loss_parameter = {} if loss is None else {"loss": loss}
    return {
        **loss_parameter,
        "n_estimators": n_estimators,
        "learning_rate": learning_rate,
        "growth": "leafwise",
        "max_depth": None,
        "max_leaves": max_leaves,
        "step": "gradient",
        "start": start,
        "sampling": UniformSampling(rate, variance_control="horvitz_thompson"),
        "learners": 0.8,
        "execution": execution,
        **PLAIN_TREES,
    }
