"""Loss functions. ``get("huber")`` or ``Huber(delta=2.0)``; docs/losses.md has the table.

The classes are those of ``gpuboost.public.LOSSES``.
"""

from __future__ import annotations

from gpuboost._imports.lazy import lazy_names
from gpuboost.losses.base import BaseLoss, LossFacts
from gpuboost.losses.custom import Custom, CustomArrays, RankingArrays, SavedCustom, custom, custom_arrays
from gpuboost.losses.protocol import Loss
from gpuboost.losses.registry import NAMES, from_json, get, to_json
from gpuboost.public import LOSSES, modules_of

_classes = modules_of(LOSSES.values())
__getattr__, __dir__ = lazy_names(__name__, _classes)

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
