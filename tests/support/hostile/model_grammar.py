"""Random documents of the language of docs/model_file.md: every kind of model, with odd and extreme numbers."""

from __future__ import annotations

import copy
from dataclasses import asdict
from typing import Any

import numpy as np

from gpuboost import losses
from gpuboost.losses.per_output import PerOutput

Json = dict[str, Any]

REGRESSOR, CLASSIFIER, RANKER = "GradientBoostingRegressor", "GradientBoostingClassifier", "GradientBoostingRanker"
LOSSES = {
    REGRESSOR: (
        losses.SquaredError(),
        losses.AbsoluteError(),
        losses.Huber(0.5),
        losses.Quantile(0.9),
        losses.Quantile([0.25, 0.5]),
        losses.Expectile(0.1),
        losses.Poisson(),
        losses.CrossEntropy(),
        losses.AFT("extreme", 0.5),
        losses.GaussianNLL(),
        losses.GammaNLL(),
        PerOutput(losses.Huber(2.0), 3),
        PerOutput(losses.Poisson(), 2),
    ),
    CLASSIFIER: (
        losses.Logistic(),
        losses.Exponential(),
        losses.LogitBoost(),
        losses.Softmax(2),
        losses.Softmax(4),
        PerOutput(losses.Logistic(0.5), 2),
    ),
    RANKER: (
        losses.LambdaMART(),
        losses.LambdaMART(metric="map"),
        losses.PairwiseLogistic(),
        losses.StochasticRank(samples=2, scale_free=True),
        losses.XENDCG(),
        losses.UnbiasedLambdaMART(bias_norm=0.5),
        losses.PairLogit(2.0),
    ),
}
LABELS = {
    "bool": [False, True],
    "int64": [-3, 0, 5, 2**40],
    "float64": [-0.5, 0.25, 3.0, 1e300],
    "str": ["", "a", "b", "\u00fc"],
    "object": ["no", "perhaps", "some", "yes"],
}
NUMBERS = (0.0, -0.0, 1.0, -2.5, 1e-300, 5e-324, 0.1, 1e15, 1e100, -1e100)


def _named(loss: Any) -> Json:
    """A loss as files hold it."""
    if isinstance(loss, PerOutput):
        return {"name": loss.name, "loss": _named(loss.loss), "outputs": loss.n_outputs}
    return {"name": loss.name, **asdict(loss)}


class Grammar:
    """Draws one document."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def document(self) -> Json:
        """A valid model file, as the value of its JSON."""
        kind = self.one_of(list(LOSSES))
        loss = self.one_of(LOSSES[kind])
        columns, features = self.columns()
        k, rounds = loss.n_outputs, self.count(0, 4)
        version = 1
        if columns["categories"] and self.rng.random() < 0.4:
            several = isinstance(loss, PerOutput) or kind == CLASSIFIER
            columns["statistics"] = self.statistics(columns["categories"], k if several else 1)
            version = 5 if isinstance(columns["statistics"]["prior_weight"], list) else 3
            features = self.features_of_statistics(columns)
        self.features = features
        document = {
            "format": "gpuboost",
            "version": version,
            "loss": _named(loss),
            "columns": columns,
            "parameters": self.parameters(),
            "extra": self.extra(kind, k, rounds),
            "bias": [self.number() for _ in range(k)],
            "scale": self.scale(rounds),
            "features": features,
        }
        if kind == CLASSIFIER and isinstance(loss, PerOutput):
            document["extra"]["classes"] = {"dtype": "int64", "values": list(range(k))}
        if version >= 3 or self.rng.random() < 0.5:
            trees = [self.tree(output) for _ in range(rounds) for output in range(k)]
            if k > 1 and rounds and self.rng.random() < 0.4:
                document["version"] = max(version, 4)
                trees = [tree for first in range(0, len(trees), k) for tree in self.sharing(trees[first : first + k])]
            return document | {"trees": trees}
        spaces = [self.space() for _ in range(self.count(1, 3))]
        components = [self.component(output, spaces) for _ in range(rounds) for output in range(k)]
        centres = [[float(c) for c in self.rng.normal(size=256)] for _ in features]
        if not any(component["kind"] == "lines" for component in components):
            centres = []
        return document | {"version": 2, "spaces": spaces, "centres": centres, "components": components}

    def columns(self) -> tuple[Json, list[Json]]:
        d = self.count(1, 4)
        shares_columns = self.rng.random() < 0.2
        categories: dict[str, list[Any]] = {}
        features: list[Json] = []
        for column in range(d):
            if self.rng.random() < 0.35:
                table = self.table()
                categories[str(column)] = table
                for codes in self.codes(len(table), shares_columns):
                    features.append({"column": column, "categories": codes})
            else:
                features.append({"column": column, "thresholds": self.thresholds()})
        if not shares_columns:
            features = [{name: value for name, value in feature.items() if name != "column"} for feature in features]
        names = [f"column {f}" for f in range(d)] if self.rng.random() < 0.3 else None
        return {"n_features": d, "names": names, "categories": categories}, features

    def statistics(self, categories: dict[str, list[Any]], k: int) -> Json:
        """Target statistics of some of the categorical columns, and of a combination. k: number of means of a key."""
        sizes = {int(column): len(table) for column, table in categories.items()}
        chosen = [f for f in sizes if self.rng.random() < 0.8] or list(sizes)
        listed = [[f] for f in chosen] + ([chosen[:2]] if len(chosen) > 1 else [])
        return {
            "prior": [self.number() for _ in range(k)],
            "prior_weight": self.prior_weight(len(listed), k),
            "counts": self.one_of([True, False]),
            "permutations": self.count(1, 3),
            "tables": [self.statistics_table(columns, sizes, k) for columns in listed],
        }

    def prior_weight(self, n_tables: int, k: int) -> float | list[list[float]]:
        """One number for all tables, or numbers of each that are not all the same."""
        weights = [[self.one_of([1.0, 0.3, 1e-3, 50.0]) for _ in range(k)] for _ in range(n_tables)]
        return weights if len({weight for of in weights for weight in of}) > 1 else weights[0][0]

    def statistics_table(self, columns: list[int], sizes: dict[int, int], k: int) -> Json:
        every = int(np.prod([sizes[f] + 1 for f in columns]))
        keys = sorted(int(key) for key in self.rng.choice(every, self.count(0, min(every, 9)), replace=False))
        weight = [self.one_of([0, 1, 3, 0.1, 2.7]) for _ in keys]
        return {
            "columns": columns,
            "keys": keys,
            "weight": weight,
            "sums": [[self.number() for _ in keys] for _ in range(k)],
        }

    def features_of_statistics(self, columns: Json) -> list[Json]:
        """A feature for each column that trees see, and one for each permutation of a mean."""
        statistics, tables = columns["statistics"], columns["categories"]
        means = {table["columns"][0] for table in statistics["tables"] if len(table["columns"]) == 1}
        kinds = [
            "mean" if f in means else "set" if str(f) in tables else "number" for f in range(columns["n_features"])
        ]
        for table in statistics["tables"]:
            kinds += ["mean"] * (len(statistics["prior"]) - (len(table["columns"]) == 1))
            kinds += ["number"] * statistics["counts"]
        features: list[Json] = []
        for column, kind in enumerate(kinds):
            if kind == "set":
                features.append({"column": column, "categories": self.codes(len(tables[str(column)]), False)[0]})
            else:
                for _ in range(statistics["permutations"] if kind == "mean" else 1):
                    features.append({"column": column, "thresholds": self.thresholds()})
        if len(features) == len(kinds):
            features = [{name: value for name, value in feature.items() if name != "column"} for feature in features]
        return features

    def table(self) -> list[Any]:
        size = self.count(0, 6)
        if self.rng.random() < 0.5:
            return ["", "b", "c\u00e9", "d d", "x", "y"][:size]
        return [-2, 0, 1.5, 7, 10**9, 2**50][:size]

    def codes(self, size: int, shared: bool) -> list[list[int]]:
        """Positions in a table of that size: those of one feature, or divided among two."""
        codes = [int(code) for code in self.rng.permutation(size)[: self.count(0, size)]]
        half = len(codes) // 2
        return [codes[:half], codes[half:]] if shared else [codes]

    def thresholds(self) -> list[float]:
        size = self.one_of([0, 1, 2, 5, 254])
        values = {self.number() + 0.0 for _ in range(3)} | {float(v) for v in self.rng.normal(size=size)}
        return sorted(values)[:254]

    def parameters(self) -> Json:
        every = {"n_estimators": 5, "learning_rate": 0.3, "max_depth": 3, "random_state": 7, "sampling": 0.5}
        return {name: value for name, value in every.items() if self.rng.random() < 0.5}

    def extra(self, kind: str, k: int, rounds: int) -> Json:
        best = self.count(0, rounds - 1) if rounds and self.rng.random() < 0.3 else None
        dtype = self.one_of([name for name, labels in LABELS.items() if len(labels) >= max(2, k)])
        classes = {"dtype": dtype, "values": LABELS[dtype][: max(2, k)]} if kind == CLASSIFIER else None
        return {"estimator": kind, "classes": classes, "best_iteration": best, "best_score": None}

    def scale(self, rounds: int) -> Any:
        if not rounds or self.rng.random() < 0.6:
            return self.one_of([1.0, 1.0, 0.5, 1e-5, 100.0])
        return sorted((float(s) for s in self.rng.uniform(0.2, 1.0, rounds)), reverse=True)

    def tree(self, output: int) -> Json:
        """Random nodes, children after their parents."""
        nodes: list[Json] = []
        self.grow(nodes, self.count(0, 4))
        entries = ("feature", "bin", "missing_left", "left", "right", "gain", "cover", "count", "value")
        line = {"output": output, "version": self.count(-1, 3), "factor": self.number(3.0)}
        line |= {name: [node[name] for node in nodes] for name in entries}
        return line | {"sets": [[i, node["set"]] for i, node in enumerate(nodes) if "set" in node]}

    def sharing(self, trees: list[Json]) -> list[Json]:
        """The trees of a round, of which the last and perhaps others have the nodes of the first."""
        first, *others = trees
        kept = [tree if self.rng.random() < 0.3 else self.shared(first, tree) for tree in others[:-1]]
        return [first, *kept, self.shared(first, others[-1])]

    def shared(self, first: Json, tree: Json) -> Json:
        values = [0.0 if f >= 0 else self.number(3.0) for f in first["feature"]]
        return {name: tree[name] for name in ("output", "version", "factor")} | {"value": values}

    def grow(self, nodes: list[Json], depth: int) -> int:
        """Append a subtree; returns the number of its root."""
        number = len(nodes)
        node: Json = {"feature": -1, "bin": 0, "missing_left": 0, "left": 0, "right": 0, "gain": 0.0, "value": 0.0}
        node |= {"cover": float(self.rng.gamma(1.0)), "count": self.count(0, 9)}
        nodes.append(node)
        if depth == 0 or self.rng.random() < 0.2:
            node["value"] = self.number(3.0)
            return number
        f = self.count(0, len(self.features) - 1)
        node |= {"feature": f, "missing_left": self.count(0, 1), "gain": self.number(3.0)}
        if "categories" in self.features[f]:
            places = len(self.features[f]["categories"])
            node["set"] = [i for i in range(places) if self.rng.random() < 0.5]
        else:
            node["bin"] = self.count(0, len(self.features[f]["thresholds"]))
        node["left"] = self.grow(nodes, depth - 1)
        node["right"] = self.grow(nodes, depth - 1)
        return number

    def space(self) -> Json:
        features = [int(f) for f in self.rng.choice(len(self.features), self.count(1, min(2, len(self.features))))]
        n_cells, q, width = self.count(1, 9), self.count(1, 5), self.count(1, 3)
        most = (n_cells - 1) // len(features)
        return {
            "family": self.one_of(["linear", "spline", "tensor", "categorical"]),
            "features": features,
            "cells": [[int(c) for c in self.rng.integers(0, most + 1, 256)] for _ in features],
            "n_cells": n_cells,
            "first": [self.count(0, q - 1) for _ in range(n_cells - 1)],
            "basis": [[self.number(1.0) for _ in range(width)] for _ in range(n_cells - 1)],
            "mean": [self.number(1.0) for _ in range(q)],
        }

    def component(self, output: int, spaces: list[Json]) -> Json:
        kind = self.one_of(["smooth", "smooth", "nothing", "tree", "lines"])
        head = {"kind": kind, "output": output, "version": self.count(-1, 3), "factor": self.number(3.0)}
        if kind == "nothing":
            return head
        if kind == "smooth":
            space = self.count(0, len(spaces) - 1)
            coefficients = [self.number(2.0) for _ in spaces[space]["mean"]]
            return head | {"space": space, "coefficients": coefficients}
        tree = {"kind": kind, **self.tree(output)}
        if kind == "tree":
            return tree
        v, width = len(tree["feature"]), self.count(1, 2)
        along = [[self.count(-1, len(self.features) - 1) for _ in range(width)] for _ in range(v)]
        slopes = [[0.0 if f < 0 else self.number(1.0) for f in row] for row in along]
        return tree | {"along": along, "slopes": slopes}

    def rows(self, document: Json, n: int = 12) -> list[list[Any]]:
        """Rows: thresholds and their neighbours, known and unknown categories, missing and huge values."""
        tables = document["columns"]["categories"]
        return [
            [
                self.category(tables[str(f)]) if str(f) in tables else self.value(document, f)
                for f in range(document["columns"]["n_features"])
            ]
            for _ in range(n)
        ]

    def category(self, table: list[Any]) -> Any:
        if table and self.rng.random() < 0.8:
            return self.one_of(table)
        unknown = "unknown" if table and isinstance(table[0], str) else 12345
        return self.one_of([unknown, None])

    def value(self, document: Json, column: int) -> float:
        thresholds = [
            threshold
            for f, feature in enumerate(document["features"])
            if feature.get("column", f) == column
            for threshold in feature.get("thresholds", ())
        ]
        if thresholds and self.rng.random() < 0.5:
            threshold = self.one_of(thresholds)
            return float(self.one_of([threshold, np.nextafter(threshold, np.inf), np.nextafter(threshold, -np.inf)]))
        return float(self.one_of([np.nan, 1e300, -1e300, 0.0, self.rng.normal()]))

    def number(self, deviation: float = 1.0) -> float:
        """A normal number mostly; or an odd one of at most ``deviation`` to the tenth."""
        if self.rng.random() < 0.9:
            return float(self.rng.normal() * deviation)
        return float(self.one_of([number for number in NUMBERS if abs(number) <= 1e16]))

    def count(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def one_of(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]


def mutated(document: Json, seed: int) -> Json:
    """The document with one to three entries changed, somewhere."""
    rng = np.random.default_rng([seed, 1])
    document = copy.deepcopy(document)
    for _ in range(int(rng.integers(1, 4))):
        holder, key = _place(document, rng)
        value = holder[key]
        change = int(rng.integers(5))
        if change == 0 and isinstance(value, (int, float)) and not isinstance(value, bool):
            holder[key] = [value + 1, value - 1, -value, value * 1e10, float(value), value / 3][int(rng.integers(6))]
        elif change == 1:
            del holder[key]
        elif change == 2 and isinstance(value, list) and value:
            holder[key] = [value[::-1], value[:-1], value + value[-1:], [value]][int(rng.integers(4))]
        elif change == 3:
            other, place = _place(document, rng)
            holder[key] = copy.deepcopy(other[place])
        else:
            holder[key] = copy.deepcopy(ODD[int(rng.integers(len(ODD)))])
    return document


ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 256, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, -1e308, 1e-320, 0.5),
    *("", "x", "softmax", [], {}, [0], [[0]], [None], {"name": "custom", "function": "f"}, [1e308] * 3),
)
"""Values to put in the place of others."""


def _place(document: Json, rng: np.random.Generator) -> tuple[Any, Any]:
    """A random entry at a random depth."""
    holder: Any = document
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if holder is document and rng.random() < 0.95:
            keys = [key for key in keys if key not in ("format", "version")]
        key = keys[int(rng.integers(len(keys)))]
        if not (isinstance(holder[key], (dict, list)) and holder[key]) or rng.random() < 0.15:
            return holder, key
        holder = holder[key]
