# Written by tests/support/stubs.py from gpuboost/public.py.
from gpuboost.export.c_source import to_c as to_c
from gpuboost.export.onnx import to_onnx as to_onnx
from gpuboost.export.shap import to_shap_dict as to_shap_dict
from gpuboost.export.table import to_table as to_table
from gpuboost.export.treelite import to_treelite as to_treelite
from gpuboost.export.trees import trees_to_table as trees_to_table
from gpuboost.export.xgboost import to_xgboost as to_xgboost
