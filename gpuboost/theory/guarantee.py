"""Guarantees of a run."""

from __future__ import annotations

import warnings
from typing import Literal

from gpuboost.errors import InputError, OutsideTheoryWarning
from gpuboost.records import dataclass, restored
from gpuboost.theory.rates import linear_bound, sublinear_bound

GuaranteeKind = Literal["linear rate", "sublinear rate", "monotone descent", "stationary law", "none", "not known"]


Knowledge = Literal["computed", "bounded", "unknown"]

WEIGHTED = "of the weighted rows"
"""In the note of Xi, if L is a weighted loss."""


@dataclass(frozen=True, slots=True)
class TheoremConstant:
    """A constant of a theorem, and how its value for this run is known.

    "computed": the value is exact. "bounded": it is a bound, and the note says on which side. "unknown": it is None.
    """

    name: str
    value: float | None
    status: Knowledge
    note: str

    __setstate__ = restored

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value:.6g}"
        return f"{self.name}: {self.status}{value}, {self.note}"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The strongest statement whose assumptions the run of a fit met, and why it is not a stronger one.

    "linear rate": theorem 4.1 of RGBM, E(L_M - L*) <= (1 - (2 nu - nu^2) (mu / sigma) Xi)^M (L_0 - L*). "sublinear
    rate": theorem 4.2. "monotone descent": no round can raise, or raised, the training loss. "stationary law": Langevin
    boosting. "not known": of a model file without a guarantee.

    A rate counts from the first round of its own fit. Where a model was continued (``init_model``), ``parts`` has the
    guarantee of each fit, on the training rows of that fit, and ``kind`` is what holds for all of them.
    """

    kind: GuaranteeKind
    statement: str
    assumptions: tuple[str, ...] = ()  # that were used
    missing: tuple[str, ...] = ()  # of a stronger statement
    sigma: float | None = None
    mu: float = 0.0
    nu: float = 1.0  # the step, in units of 1 / sigma
    rounds: tuple[int, int] | None = None  # first and last round of the model that it is of, from 1; None: not known
    parts: tuple[Guarantee, ...] = ()  # one for each fit of a continued model, in order; () for a single fit
    constants: tuple[TheoremConstant, ...] = ()  # of the theorem that gives a rate or a law; () if none does

    __setstate__ = restored

    def bound(self, rounds: int, gap: float, *, xi: float | None = None, dist: float | None = None) -> float:
        """Bound of E(L - L*) after ``rounds`` rounds from L_0 - L* = ``gap``, in the units of the gap.

        Parameters
        ----------
        rounds : int
        gap : float
        xi : float, for a linear rate
            Xi of the learners under the selection rule: ``smallest_expected_edge(B, norm).lower``, or Theta^2. Of a fit
            with row weights it is that of ``sign_stumps(X, sample_weight=)``, of which an OutsideTheoryWarning reminds.
        dist : float, for a sublinear rate
            Diameter of the level set, see ``sublinear_bound``.

        Raises
        ------
        InputError
            If a constant that the theorem needs is not given, or there is no rate.
        """
        if self.sigma is not None and self.kind == "linear rate" and xi is not None:
            if any(WEIGHTED in constant.note for constant in self.constants):
                why = "xi: L is the weighted loss of this fit, and the bound holds for xi of the weighted rows only"
                warnings.warn(f"{why}: theory.sign_stumps(X, sample_weight=w).", OutsideTheoryWarning, stacklevel=2)
            return linear_bound(gap, rounds, self.sigma, self.mu, xi, self.nu)
        if self.sigma is not None and self.kind == "sublinear rate" and dist is not None:
            return sublinear_bound(gap, rounds, self.sigma, dist, self.nu)
        needed = {"linear rate": "xi", "sublinear rate": "dist"}.get(self.kind)
        if needed is None:
            raise InputError(f"guarantee: there is no rate to be had of {self.kind!r}.")
        raise InputError(f"{needed}: the bound of a {self.kind} needs it; see gpuboost.theory.")

    def __str__(self) -> str:
        of = f" Rounds {self.rounds[0]} to {self.rounds[1]}." if self.rounds and not self.parts else ""
        return self.statement + of + "".join(f" Not more: {why}" for why in self.missing[:1])
