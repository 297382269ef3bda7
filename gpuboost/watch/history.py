"""Values of each metric by round."""

from __future__ import annotations

from gpuboost.watch.record import Evals, Plan, Round


class History:
    """Collects ``evals_result``: ``{"validation_0": {"logloss": [0.61, 0.55, ...]}}``, one number a round."""

    def __init__(self) -> None:
        self.evals_result: dict[str, dict[str, list[float]]] = {}

    def __repr__(self) -> str:
        return f"History({', '.join(self.evals_result)})"

    @property
    def by_round(self) -> tuple[Evals, ...]:
        """The same, one record a round."""
        rounds = min((len(values) for of in self.evals_result.values() for values in of.values()), default=0)
        return tuple(
            {name: {metric: values[i] for metric, values in of.items()} for name, of in self.evals_result.items()}
            for i in range(rounds)
        )

    def begin(self, plan: Plan) -> None:
        self.evals_result = {name: {metric: [] for metric in plan.metrics} for name in plan.eval_sets}

    def __call__(self, record: Round) -> bool:
        for name, values in record.evals.items():
            for metric, value in values.items():
                self.evals_result[name][metric].append(value)
        return False

    def end(self) -> None:
        """Do nothing: no resource is held."""
