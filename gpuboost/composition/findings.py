"""Verdicts on parts of a recipe, with their reasons."""

from __future__ import annotations

from typing import Literal

from gpuboost.records import dataclass

Kind = Literal["sound", "heuristic", "unproven", "refused"]

SEVERITY: tuple[Kind, ...] = ("sound", "heuristic", "unproven", "refused")


@dataclass(frozen=True, slots=True)
class Finding:
    """Verdict on one pair of pieces, and its reason."""

    kind: Kind
    why: str
    warns: bool = False  # True: a fit warns as it begins; False: only its report has it
    of_training: bool = True  # False: it is about rows to predict, and says nothing of the training loss


def worst(findings: tuple[Finding, ...]) -> Kind:
    """Kind of a composition: that of its worst pair."""
    return max((finding.kind for finding in findings), key=SEVERITY.index, default="sound")
