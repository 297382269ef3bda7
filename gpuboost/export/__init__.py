"""Models for other libraries. Each function takes a fitted estimator, or an ``Ensemble`` (scores only).

The decisions are the same as here, missing values and unknown categories included, for float32 input; what differs is
that most readers add up float32 numbers. Categorical columns hold the codes that the model was trained on.

The functions are those of ``gpuboost.public.EXPORTS``.
"""

from importlib import import_module

from gpuboost.public import EXPORTS

globals().update({name: getattr(import_module(module), name) for name, module in EXPORTS.items()})

__all__ = list(EXPORTS)
