"""Posterior summaries of Langevin chains: uncertainty of predictions, and convergence diagnostics."""

from gpuboost.posterior.calibration import Calibration, calibration, separation
from gpuboost.posterior.diagnostics import (
    Diagnostics,
    autocorrelation_time,
    autocorrelations,
    diagnose,
    effective_sample_size,
    r_hat,
)
from gpuboost.posterior.intervals import crps, interval_calibration, interval_score
from gpuboost.posterior.members import member_rounds
from gpuboost.posterior.uncertainty import Uncertainty, check_coverage, interval, interval_outputs, uncertainty

__all__ = [
    "Calibration",
    "Diagnostics",
    "Uncertainty",
    "autocorrelation_time",
    "autocorrelations",
    "calibration",
    "check_coverage",
    "crps",
    "diagnose",
    "effective_sample_size",
    "interval",
    "interval_calibration",
    "interval_outputs",
    "interval_score",
    "member_rounds",
    "r_hat",
    "separation",
    "uncertainty",
]
