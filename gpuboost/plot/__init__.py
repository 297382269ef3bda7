"""Plots of fitted models. Every function draws on ``ax`` (a new one by default) and returns it.

Needs matplotlib: ``pip install gpuboosting[plot]``.
"""

from gpuboost.plot.dependence import dependence
from gpuboost.plot.effects import partial_effect
from gpuboost.plot.intervals import intervals
from gpuboost.plot.model import importance, metrics, staleness, timeline, tree
from gpuboost.plot.posterior import autocorrelation, calibration, trace, uncertainty
from gpuboost.plot.shap_summary import shap_summary

__all__ = [
    "autocorrelation",
    "calibration",
    "dependence",
    "importance",
    "intervals",
    "metrics",
    "partial_effect",
    "shap_summary",
    "staleness",
    "timeline",
    "trace",
    "tree",
    "uncertainty",
]
