"""Published algorithms as keyword arguments of the estimators, as their papers print them; and ``best``.

A preset is a dict: ``gb.GradientBoostingClassifier(**gb.presets.rgbm_paper(t=10))``. Its entries may be replaced, as by
``{**gb.presets.rgbm_paper(t=10), "n_estimators": 50}``. What a paper leaves open has the estimator's default, and each
deviation is named with the equation that it concerns.
"""

from gpuboost.presets.asynch_sgbdt import asynch_sgbdt_paper
from gpuboost.presets.best_settings import best
from gpuboost.presets.forest import random_forest
from gpuboost.presets.functional import functional_paper
from gpuboost.presets.rgbm import rgbm_paper
from gpuboost.presets.sglb import sglb_paper
from gpuboost.presets.smart import smart_paper

__all__ = [
    "asynch_sgbdt_paper",
    "best",
    "functional_paper",
    "random_forest",
    "rgbm_paper",
    "sglb_paper",
    "smart_paper",
]
