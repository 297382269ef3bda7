"""Names that other libraries, and the estimators here, have for arguments of ``Dataset``."""

from gpuboost.arguments import explaining

OTHER_NAMES = {
    "base_margin": "init_score",
    "baseline": "init_score",
    "border_count": "max_bins",
    "cat_features": "categorical_features",
    "categorical_feature": "categorical_features",
    "data": "X",
    "group_id": "group",
    "label": "y",
    "max_bin": "max_bins",
    "qid": "group",
    "sample_weight": "weight",
}
"""Arguments that estimators here, ``lightgbm.Dataset``, ``xgboost.DMatrix`` and ``catboost.Pool`` call otherwise."""

explaining_unknown_arguments = explaining(OTHER_NAMES)
"""Decorator of ``Dataset``"""
