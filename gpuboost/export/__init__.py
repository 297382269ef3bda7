"""Models for other libraries. Each function takes a fitted estimator, or an ``Ensemble`` (scores only).

The decisions are the same as here, missing values and unknown categories included, for float32 input; what differs is
that most readers add up float32 numbers. Categorical columns hold the codes that the model was trained on.
"""

from gpuboost.export.onnx import to_onnx
from gpuboost.export.shap import to_shap_dict
from gpuboost.export.table import to_table
from gpuboost.export.treelite import to_treelite
from gpuboost.export.xgboost import to_xgboost

__all__ = ["to_onnx", "to_shap_dict", "to_table", "to_treelite", "to_xgboost"]
