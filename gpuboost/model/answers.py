"""The predictions of each kind of model as answers: functions of its scores, with the rules of a device."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.losses.base import link_of
from gpuboost.losses.per_output import MULTILABEL, PerOutput
from gpuboost.losses.protocol import Loss
from gpuboost.model.outputs import decision, labels, probabilities
from gpuboost.scoring.answers import Answer
from gpuboost.types import Array

WIDEST_LABEL = 8  # bytes


def first_score(scores: Array) -> NDArray[np.float64]:
    """(n,) of (k, n) scores."""
    return np.asarray(scores[0])


FIRST_SCORE = Answer(first_score, "score")


def predictions_answer(loss: Loss) -> Answer:
    """(n,) or (n, k) predictions of the quantity that the loss estimates: its ``inverse_link``."""
    link, scale = link_of(loss)
    if link in ("other", "softmax"):
        return Answer(loss.inverse_link)
    if link == "identity" and not isinstance(loss, PerOutput):
        return Answer(loss.inverse_link, "score")
    return Answer(loss.inverse_link, "rows" if link == "identity" else "predictions", link, scale)


def probabilities_answer(loss: Loss) -> Answer:
    """(n, K) probabilities: ``outputs.probabilities``."""
    link, scale = link_of(loss)
    of_scores = partial(probabilities, loss)
    if link == "softmax":
        return Answer(of_scores, "classes")
    if link == "logistic":
        return Answer(of_scores, "predictions" if loss.task == MULTILABEL else "two_classes", link, scale)
    return Answer(of_scores)


def labels_answer(loss: Loss, classes: NDArray[Any]) -> Answer:
    """(n,) classes, or (n, k) labels: ``outputs.labels``. Text stays on the host."""
    of_scores = partial(labels, loss, classes)
    if loss.task == MULTILABEL:
        return Answer(of_scores, "signs")
    kind = classes.dtype
    on_device = kind.kind in "biuf" and kind.isnative and kind.itemsize <= WIDEST_LABEL
    return Answer(of_scores, "labels", classes=classes) if on_device else Answer(of_scores)


def decision_answer(loss: Loss) -> Answer:
    """(n,) or (n, K) scores: ``outputs.decision``."""
    of_scores = partial(decision, loss)
    if loss.n_outputs > 2 or loss.task == MULTILABEL:
        return Answer(of_scores, "rows")
    return Answer(of_scores, "score" if loss.n_outputs == 1 else "difference")
