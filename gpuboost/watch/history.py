"""What each metric was in each round."""

from __future__ import annotations

from gpuboost.watch.record import Plan, Round


class History:
    """Collects ``evals_result``: ``{"validation_0": {"logloss": [0.61, 0.55, ...]}}``, one number a round."""

    def __init__(self) -> None:
        self.evals_result: dict[str, dict[str, list[float]]] = {}

    def __repr__(self) -> str:
        return f"History({', '.join(self.evals_result)})"

    def begin(self, plan: Plan) -> None:
        self.evals_result = {name: {metric: [] for metric in plan.metrics} for name in plan.eval_sets}

    def __call__(self, record: Round) -> bool:
        for name, values in record.evals.items():
            for metric, value in values.items():
                self.evals_result[name][metric].append(value)
        return False

    def end(self) -> None:
        """Nothing is held open."""
