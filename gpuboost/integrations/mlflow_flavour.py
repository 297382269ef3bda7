"""A flavour of MLflow: models in the library's own JSON format, and autologging.

``save_model``, ``log_model``, ``load_model`` and ``autolog`` are those that MLflow's flavours have. What is saved holds
no pickle. ``mlflow.pyfunc.load_model`` reads it too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
from mlflow import pyfunc
from mlflow.entities import Metric
from mlflow.models import Model
from mlflow.utils.autologging_utils import autologging_integration, safe_patch
from mlflow.utils.environment import _PythonEnv

import gpuboost
from gpuboost.api import GradientBoostingClassifier, GradientBoostingRanker, GradientBoostingRegressor
from gpuboost.errors import InputError

FLAVOR_NAME = "gpuboost"
FILE = "model.json"
METHODS = ("predict", "predict_proba", "predict_contributions", "predict_interactions", "decision_function")
"""Values of the parameter ``predict_method`` of MLflow's ``pyfunc`` models."""
_BATCH = 1000  # metrics that the tracking server takes at once


def save_model(
    model: Any,
    path: str,
    mlflow_model: Any = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Write a fitted estimator as an MLflow model to a new folder.

    Parameters
    ----------
    model : fitted estimator
    path : folder, which must not exist
    mlflow_model : mlflow.models.Model, optional
    signature, input_example, metadata
        As for MLflow's own flavours.
    pip_requirements : list of str, optional
        None: gpuboosting in this version.
    """
    folder = Path(path)
    folder.mkdir(parents=True)
    record = Model() if mlflow_model is None else mlflow_model
    model.save_model(folder / FILE)
    if signature is not None:
        record.signature = signature
    if metadata is not None:
        record.metadata = metadata
    if input_example is not None:
        mlflow.models.utils._save_example(record, input_example, str(folder))
    requirements = pip_requirements or [f"gpuboosting=={gpuboost.__version__}"]
    (folder / "requirements.txt").write_text("\n".join(requirements) + "\n")
    _PythonEnv.current().to_yaml(str(folder / "python_env.yaml"))
    pyfunc.add_to_model(record, loader_module=__name__, data=FILE, python_env="python_env.yaml", model_code_path=None)
    record.add_flavor(FLAVOR_NAME, gpuboost_version=gpuboost.__version__, data=FILE)
    record.save(str(folder / "MLmodel"))


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Log a fitted estimator to the active run; options are those of ``save_model`` and of ``Model.log``."""
    return Model.log(artifact_path=None, name=name, flavor=_this_module(), model=model, **options)


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """The fitted estimator of a URI such as "models:/name/1", "runs:/.../model" or a folder.

    Raises
    ------
    InputError
        If it is no model of this flavour, or its file is damaged.
    """
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path))
    flavors = Model.load(str(folder / "MLmodel")).flavors
    if FLAVOR_NAME not in flavors:
        raise InputError(f"model_uri: {model_uri!r} has the flavours {sorted(flavors)}, and not {FLAVOR_NAME!r}.")
    return gpuboost.load_model(folder / flavors[FLAVOR_NAME]["data"])


def _this_module() -> Any:
    """This module, as ``Model.log`` takes a flavour."""
    return sys.modules[__name__]


class _Predictor:
    """Object that ``mlflow.pyfunc.load_model`` wraps: ``predict``, with probabilities if ``params`` asks for them."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        method = (params or {}).get("predict_method", "predict")
        if method not in METHODS:
            raise InputError(f"predict_method: must be a method that predicts; got {method!r}.")
        return getattr(self.model, method)(data)

    def get_raw_model(self) -> Any:
        """The estimator."""
        return self.model


def _load_pyfunc(path: str) -> _Predictor:
    """Called by ``mlflow.pyfunc.load_model``."""
    file = Path(path)
    return _Predictor(gpuboost.load_model(file / FILE if file.is_dir() else file))


@autologging_integration(FLAVOR_NAME)
def autolog(
    log_models: bool = True,
    log_importances: bool = True,
    disable: bool = False,
    exclusive: bool = False,
    disable_for_unsupported_versions: bool = False,
    silent: bool = False,
) -> None:
    """Log each ``fit`` of the three estimators: parameters, curves of all eval sets, importances and the model.

    Parameters
    ----------
    log_models, log_importances : bool
        Log the model in this flavour; log the shares of the features in the gain, as "feature_importance.json".
    disable, exclusive, disable_for_unsupported_versions, silent : bool
        As for MLflow's own flavours.
    """

    def fit(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        fitted = original(self, *args, **kwargs)
        _log(fitted, log_models=log_models, log_importances=log_importances)
        return fitted

    for kind in (GradientBoostingRegressor, GradientBoostingClassifier, GradientBoostingRanker):
        safe_patch(FLAVOR_NAME, kind, "fit", fit, manage_run=True)


def _log(model: Any, *, log_models: bool, log_importances: bool) -> None:
    mlflow.log_params(model.get_params(deep=False))
    run, now = mlflow.active_run().info.run_id, int(time.time() * 1000)
    points = [
        Metric(f"{data}-{metric}", float(value), now, round_)
        for data, of in model.evals_result_.items()
        for metric, curve in of.items()
        for round_, value in enumerate(curve)
    ]
    for start in range(0, len(points), _BATCH):
        mlflow.MlflowClient().log_batch(run, metrics=points[start : start + _BATCH])
    if model.best_iteration_ is not None:
        mlflow.log_metrics({"best_iteration": model.best_iteration_, "best_score": model.best_score_})
    if log_importances and hasattr(model, "feature_importances_"):
        names = getattr(model, "feature_names_in_", range(model.n_features_in_))
        shares = model.feature_importances_.tolist()
        mlflow.log_dict(
            {str(name): share for name, share in zip(names, shares, strict=True)}, "feature_importance.json"
        )
    if log_models:
        log_model(model)
