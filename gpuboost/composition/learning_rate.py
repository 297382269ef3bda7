"""Requirements on a learning rate that changes from round to round."""

from __future__ import annotations

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.langevin import Langevin


def findings(recipe: Pieces) -> tuple[Finding, ...]:
    """Findings; () for one rate, which is rates = (). Bounds on the step are kept by the largest rate of the fit."""
    if not recipe.rates or not isinstance(recipe.langevin, Langevin):
        return ()
    why = (
        "learning_rate: the theorem of Langevin boosting is for one rate eps, which the noise sqrt(2 N / (eps beta)) "
        "and the shrinkage 1 - gamma eps of every round have in them; a rate that changes has another law. Use a "
        "number; gb.Langevin(schedule=) changes the temperature."
    )
    return (Finding("refused", why),)
