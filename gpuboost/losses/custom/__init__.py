"""Losses of a user's own functions: of a row (``functions``), or of whole arrays (``arrays``)."""

from gpuboost.losses.custom.arrays import CustomArrays, RankingArrays, custom_arrays
from gpuboost.losses.custom.functions import Custom, SavedCustom, custom

__all__ = ["Custom", "CustomArrays", "RankingArrays", "SavedCustom", "custom", "custom_arrays"]
