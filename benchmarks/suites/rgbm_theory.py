"""Figures 2, 3 and 4 of the RGBM paper: chances of ranks, minimal cosine angles, orthogonal learners."""

from __future__ import annotations

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.harness.experiments import Finding, Options

COMPETING = 10  # t of figure 2
SIZES = (20, 40, 100)  # K of figure 2


def theory(options: Options) -> Finding:
    """The numbers behind the three figures, and how far figure 2's profiles are from their limit."""
    ranks, rows = {}, []
    for k in SIZES:
        q = np.arange(1, k + 1) / k
        density = k * gb.theory.rank_chances(k, COMPETING)
        limit = COMPETING * (1.0 - q) ** (COMPETING - 1)
        ranks[f"K = {k}"] = {"q": q.tolist(), "density": density.tolist()}
        rows.append(
            (f"figure 2, K = {k}", f"{np.abs(density - limit).max():.3f}", "of at most 10: distance to Beta(1, 10)")
        )
    q = np.linspace(0.0, 1.0, 60)
    ranks["Beta(1, 10)"] = {"q": q.tolist(), "density": (COMPETING * (1.0 - q) ** (COMPETING - 1)).tolist()}
    learners, squares, formula = [1, 2, 3, 4, 6, 10, 20], [], []
    for k in learners:
        turned = np.pi * np.arange(k) / k
        angle = gb.theory.minimal_cosine_angle(np.stack([np.cos(turned), np.sin(turned)])) if k > 1 else None
        squares.append(0.0 if angle is None else angle.value**2)  # one learner is at a right angle to half of the plane
        formula.append(float(np.cos(np.pi / (2 * k)) ** 2) if k > 1 else 0.0)
        rows.append((f"figure 3, {k} learners", f"{squares[-1]:.4f}", f"cos²(π / 2K) = {formula[-1]:.4f}"))
    orthogonal = {}
    for t in (1, 10, 100):
        sizes = [p for p in np.unique(np.logspace(0, 4, 60).astype(int)).tolist() if p >= t]
        angles = [gb.theory.orthonormal_angle(p, t) for p in sizes]
        orthogonal[f"t = {t}"] = {"p": sizes, "theta": angles}
        slope = np.polyfit(np.log(sizes[-10:]), np.log(angles[-10:]), 1)[0]
        rows.append((f"figure 4, t = {t}", f"{angles[-1]:.5f}", f"at p = {sizes[-1]:,}; slope {slope:.3f}"))
    numbers = {
        "ranks": ranks,
        "angles": {"learners": learners, "theta squared": squares, "formula": formula},
        "orthogonal": orthogonal,
    }
    return Finding("Figures 2 to 4, computed", ("figure", "value", ""), tuple(rows), (), numbers)
