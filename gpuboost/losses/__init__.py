"""Loss functions. ``get("huber")`` or ``Huber(delta=2.0)``; docs/losses.md has the table.

The classes are those of ``gpuboost.public.LOSSES``.
"""

from __future__ import annotations

from gpuboost.losses.arrays import CustomArrays, RankingArrays, custom_arrays
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.custom import Custom, SavedCustom, custom
from gpuboost.losses.protocol import Loss
from gpuboost.losses.registry import CLASSES, NAMES, from_json, get, to_json

_classes = {cls.__name__: cls for cls in CLASSES.values()}
globals().update(_classes)

__all__ = [
    "NAMES",
    "BaseLoss",
    "Custom",
    "CustomArrays",
    "Loss",
    "LossFacts",
    "RankingArrays",
    "SavedCustom",
    "custom",
    "custom_arrays",
    "from_json",
    "get",
    "to_json",
]
__all__ += list(_classes)
