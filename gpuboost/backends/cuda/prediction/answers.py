"""Answers to callers on a device: probabilities, labels and decisions, of scores that stay there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpuboost.backends.cuda.codegen.formulas import probability_formulas
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.scoring.answers import Answer
from gpuboost.types import Array

THREADS = 256
LINKS = {"identity": 0, "log": 1, "logistic": 2}  # as in links.cuh
OF_PROBABILITIES = ("common/common.cuh", "common/links.cuh", "prediction/probabilities.cu")
OF_LABELS = ("common/common.cuh", "prediction/labels.cu")


class CudaAnswers:
    """The verb ``answer``."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._probabilities, self._labels = (Kernels(runtime, *files) for files in (OF_PROBABILITIES, OF_LABELS))
        self._last: tuple[NDArray[Any], Array] | None = None  # classes, and their copy on the device
        self._answers: dict[str, Callable[[Answer, Array], Array]] = {
            "score": self._score,
            "rows": self._rows,
            "difference": self._difference,
            "predictions": self._predictions,
            "two_classes": self._two_classes,
            "classes": self._classes,
            "labels": self._chosen,
            "signs": self._signs,
        }

    def __call__(self, answer: Answer, scores: Array) -> Array:
        """See the verb."""
        assert answer.rule is not None, "the host computes this answer"
        return self._answers[answer.rule](answer, scores)

    def _score(self, answer: Answer, scores: Array) -> Array:
        return scores[0]

    def _rows(self, answer: Answer, scores: Array) -> Array:
        if scores.shape[0] == 1:
            return scores[0]
        return self._of_labels("write_rows", scores, scores.shape[::-1], np.float64, "rows", k=scores.shape[0])

    def _difference(self, answer: Answer, scores: Array) -> Array:
        return self._of_labels("write_differences", scores, scores.shape[1:], np.float64, "differences")

    def _signs(self, answer: Answer, scores: Array) -> Array:
        return self._of_labels("write_signs", scores, scores.shape[::-1], np.int64, "signs", k=scores.shape[0])

    def _chosen(self, answer: Answer, scores: Array) -> Array:
        classes, (k, n) = answer.classes, scores.shape
        assert classes is not None
        if self._last is None or self._last[0] is not classes:
            self._last = classes, self._runtime.upload(classes)
        out = self._runtime.empty(n, classes.dtype)
        self._labels("write_labels")(
            self._blocks(n), (THREADS,),
            scores=scores, n=n, k=k, classes=self._last[1].view(np.uint8), size=classes.dtype.itemsize,
            labels=out.view(np.uint8),
        )  # fmt: skip
        return out

    def _predictions(self, answer: Answer, scores: Array) -> Array:
        k, n = scores.shape
        shape, link = (n,) if k == 1 else (n, k), LINKS[answer.link]
        return self._linked("write_predictions", scores, shape, "predictions", k=k, link=link, scale=answer.scale)

    def _two_classes(self, answer: Answer, scores: Array) -> Array:
        shape = scores.shape[1], 2
        return self._linked("write_two_classes", scores, shape, "probabilities", scale=answer.scale)

    def _classes(self, answer: Answer, scores: Array) -> Array:
        return self._linked("write_classes", scores, scores.shape[::-1], "probabilities", k=scores.shape[0])

    def _of_labels(
        self, name: str, scores: Array, shape: tuple[int, ...], dtype: DTypeLike, result: str, **arguments: Any
    ) -> Array:
        n, out = scores.shape[1], self._runtime.empty(shape, dtype)
        self._labels(name)(self._blocks(n), (THREADS,), scores=scores, n=n, **arguments, **{result: out})
        return out

    def _linked(self, name: str, scores: Array, shape: tuple[int, ...], result: str, **arguments: Any) -> Array:
        n, out = scores.shape[1], self._runtime.empty(shape, np.float64)
        kernel = self._probabilities(name, *probability_formulas())
        kernel(self._blocks(n), (THREADS,), scores=scores, n=n, **arguments, **{result: out})
        return out

    def _blocks(self, n: int) -> tuple[int]:
        return (min(-(-n // THREADS), 16 * self._runtime.sm_count),)
