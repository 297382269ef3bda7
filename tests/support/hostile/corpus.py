"""Small files of every kind that the library writes: models, checkpoints, logs; and the data they were made of."""

from __future__ import annotations

import json
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import gpuboost as gb

Array = np.ndarray

FEW: dict[str, Any] = {"n_estimators": 4, "max_depth": 3, "random_state": 0, "n_jobs": 1}


def rows(n: int = 60, d: int = 4, seed: int = 3) -> tuple[Array, Array]:
    """X with missing values and whole numbers in column 1, and a target."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[:, 1] = rng.integers(0, 5, n)
    y = x[:, 0] + (x[:, 1] % 2) + 0.1 * rng.normal(size=n)
    x[rng.random(x.shape) < 0.05] = np.nan
    return x, y


class Corpus:
    """Files by kind; ``x`` and ``y`` are the data of all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.x, self.y = rows()
        self.group = np.repeat(np.arange(6), 10)
        self.log: Path = folder / "workers.log.json"

    @cached_property
    def models(self) -> dict[str, str]:
        """Kind -> text of its model file."""
        with warnings.catch_warnings(action="ignore"):
            texts = {kind: self._written(model) for kind, model in self._fitted().items()}
            texts["checkpoint"] = self._checkpoint(gb.GradientBoostingRegressor(**FEW, sampling=0.7))
            workers = gb.Asynchronous(2)
            texts["checkpoint of workers"] = self._checkpoint(gb.GradientBoostingRegressor(**FEW, execution=workers))
        return texts

    @cached_property
    def logs(self) -> list[str]:
        """Texts of log files."""
        texts = []
        for execution in (gb.Asynchronous(2), gb.SimulatedWorkers(3, build_time=1.0, server_time=0.1)):
            with warnings.catch_warnings(action="ignore"):
                model = gb.GradientBoostingRegressor(**FEW, execution=execution).fit(self.x, self.y)
            assert model.log_ is not None
            model.log_.save(self.log)
            texts.append(self.log.read_text())
        return texts

    def _fitted(self) -> dict[str, Any]:
        learn, classes = gb.learners, np.array(["no", "yes"])[(self.y > 0.5).astype(int)]
        three, positive = np.digitize(self.y, [0.0, 1.0]), np.exp(self.y / 4)
        numbers: dict[str, tuple[dict[str, Any], Array]] = {
            "regressor": ({}, self.y),
            "categories": ({"categorical_features": [1], "min_child_weight": 0.0}, self.y),
            "oblivious": ({"growth": "oblivious"}, self.y),
            "leaf-wise": ({"growth": "leafwise", "max_leaves": 9, "max_depth": None}, self.y),
            "sign stump": ({"growth": "sign_stump", "max_depth": 1}, self.y),
            "monotonic": ({"monotonic_cst": [1, 0, 0, -1], "step": "gradient"}, self.y),
            "poisson": ({"loss": "poisson"}, positive),
            "quantile": ({"loss": gb.losses.Quantile(0.3)}, self.y),
            "distribution": ({"loss": "gaussian_nll"}, self.y),
            "chain": ({"langevin": gb.Langevin(), "posterior_samples": 2}, self.y),
            "sampled": ({"sampling": gb.MVS(0.5), "learners": gb.RandomGroups(2)}, self.y),
            "early stopping": ({"early_stopping_rounds": 2, "validation_fraction": 0.3}, self.y),
            "effects": ({"base_learner": [learn.Linear(), learn.Spline(), learn.Tree(2)]}, self.y),
            "surface": ({"base_learner": learn.TensorSpline(pairs=((0, 2),))}, self.y),
            "effects of categories": ({"base_learner": learn.CategoricalRidge(), "categorical_features": [1]}, self.y),
            "linear leaves": ({"base_learner": learn.LinearTree()}, self.y),
        }
        models = {kind: gb.GradientBoostingRegressor(**FEW | p).fit(self.x, y) for kind, (p, y) in numbers.items()}
        for kind, labels in (("classifier", classes), ("three classes", three), ("labels of truth", self.y > 0)):
            weight = "balanced" if kind == "classifier" else None
            models[kind] = gb.GradientBoostingClassifier(**FEW, class_weight=weight).fit(self.x, labels)
        models["ranker"] = gb.GradientBoostingRanker(**FEW).fit(self.x, three, group=self.group)
        return models

    def _written(self, model: Any) -> str:
        place = self.folder / "model.json"
        model.save_model(place)
        return place.read_text()

    def _checkpoint(self, model: Any) -> str:
        place = self.folder / "checkpoint.json"
        model.set_params(callbacks=[gb.callbacks.Checkpoint(place, every=3)]).fit(self.x, self.y)
        text = place.read_text()
        assert json.loads(text)["extra"]["run"]
        return text
