"""Requirements on a learning rate that changes from round to round."""

from __future__ import annotations

from gpuboost.composition.findings import Finding
from gpuboost.langevin import Dynamics, Langevin
from gpuboost.learning_rates import Rates


def rate_findings(rates: Rates, langevin: Dynamics) -> tuple[Finding, ...]:
    """Findings; () for one rate, which is rates = (). Bounds on the step are kept by the largest rate of the fit."""
    if not rates or not isinstance(langevin, Langevin):
        return ()
    why = (
        "learning_rate: the theorem of Langevin boosting is for one rate eps, which the noise sqrt(2 N / (eps beta)) "
        "and the shrinkage 1 - gamma eps of every round have in them; a rate that changes has another law. Use a "
        "number; gb.Langevin(schedule=) changes the temperature."
    )
    return (Finding("refused", why),)
