"""Metrics: named functions of targets and scores, for early stopping and evaluation."""

from gpuboost.metrics.means import mean
from gpuboost.metrics.metric import Metric
from gpuboost.metrics.registry import (
    NAMES,
    RANKINGS,
    default_metric,
    get,
    mean_average_precision,
    mean_reciprocal_rank,
    ndcg,
    precision,
    recall,
)

__all__ = [
    "NAMES",
    "RANKINGS",
    "Metric",
    "default_metric",
    "get",
    "mean",
    "mean_average_precision",
    "mean_reciprocal_rank",
    "ndcg",
    "precision",
    "recall",
]
