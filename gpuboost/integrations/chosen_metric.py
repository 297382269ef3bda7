"""The metric of an eval set that a callback follows."""

from __future__ import annotations

from gpuboost.arguments import is_one_of
from gpuboost.errors import RecipeError, shown
from gpuboost.watch.record import Plan


def chosen(plan: Plan, metric: str | None, data: str | None) -> tuple[str, str]:
    """Names of the eval set and of the metric; None stands for the last set and the first metric.

    Raises
    ------
    RecipeError
        If the fit has no eval set, or none of these names.
    """
    if not plan.eval_sets:
        raise RecipeError("callbacks: this one follows a metric, and the fit has no eval set. Pass eval_set to fit.")
    data = plan.eval_sets[-1] if data is None else data
    metric = next(iter(plan.metrics)) if metric is None else metric
    for argument, name, known in (("data", data, plan.eval_sets), ("metric", metric, plan.metrics)):
        if not is_one_of(name, [*known]):
            raise RecipeError(f"{argument}: the fit has no {shown(name)}; it has {[*known]}.")
    return data, metric
