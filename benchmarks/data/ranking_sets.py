"""Lists to rank: two small real sets under GPUBOOST_DATA, and a seeded one of the size and shape of MSLR-WEB10K."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from gpuboost.benchmarks.data.real import _bytes
from gpuboost.benchmarks.harness.store import Array, Data

FEATURES = 136
SHARES = (0.52, 0.84, 0.97, 0.993)
"""Of the documents that are worth at most 0, 1, 2, 3: about those of MSLR-WEB30K."""


def lightgbm_rank(rows: int | None = None) -> Data:
    """3,005 and 768 documents of 201 and 50 queries, 300 features, labels 0 to 4; comes with LightGBM."""
    train, test = (_svmlight(f"lightgbm_rank/rank.{part}", 301) for part in ("train", "test"))
    sizes = [np.array(_bytes(f"lightgbm_rank/rank.{part}.query").split(), int) for part in ("train", "test")]
    groups = [np.repeat(np.arange(len(lengths)), lengths) for lengths in sizes]
    return _lists((train[0], train[1], groups[0]), (test[0], test[1], groups[1]), rows)


def mslr10k_5k(rows: int | None = None) -> Data:
    """The first 5,000 documents of training and test of MSLR-WEB10K, fold 1: 43 queries each, 136 features."""
    train, test = (_svmlight(f"mslr10k_5k/msn1.fold1.{part}.5k.txt", FEATURES + 1) for part in ("train", "test"))
    return _lists(train, test, rows)


def _svmlight(name: str, columns: int) -> tuple[Array, Array, Array]:
    """As in the file: column i is index i. Dense, since most entries are there."""
    from sklearn.datasets import load_svmlight_file

    x, y, query = load_svmlight_file(io.BytesIO(_bytes(name)), n_features=columns, zero_based=True, query_id=True)
    return x.toarray().astype(np.float32), y, query


def _lists(train: tuple[Any, ...], test: tuple[Any, ...], rows: int | None) -> Data:
    (x, y, group), (x_test, y_test, group_test) = (tuple(part[:rows] for part in parts) for parts in (train, test))
    return Data("ranking", x, y, x_test, y_test, group=group, group_test=group_test)


def letor_like(queries: int, queries_test: int, seed: int, typical: int = 95, most: int = 500) -> Data:
    """136 float32 columns: 26 of the query, 80 of the document, 30 of noise.

    Lists of 5 to ``most`` documents, half of them of ``typical`` or more: a mean of about 115.

    A document's worth depends on its own hidden factors, on how much the query asks for each of them, and on chance;
    labels cut it at the same thresholds in every list, so that some lists hold nothing but zeros.
    """
    rng = np.random.default_rng(seed)
    lengths = np.clip(typical * np.exp(0.65 * rng.standard_normal(queries + queries_test)), 5, most).astype(np.int64)
    group = np.repeat(np.arange(len(lengths)), lengths)
    n = len(group)
    asked = rng.standard_normal((len(lengths), 6)).astype(np.float32)
    factors = rng.standard_normal((n, 12), dtype=np.float32)
    z = _worth(rng, factors, asked[group])
    x = np.empty((n, FEATURES), np.float32)
    mixing = rng.standard_normal((6, 26)).astype(np.float32) / 2
    x[:, :26] = np.round(np.exp(asked @ mixing), 1)[group]
    shift = rng.standard_normal((len(lengths), 80)).astype(np.float32)
    x[:, 26:106] = factors @ (rng.standard_normal((12, 80)).astype(np.float32) / 3) + 0.5 * shift[group]
    x[:, 26:106] += 0.5 * rng.standard_normal((n, 80), dtype=np.float32)
    x[:, 26:38] = factors + 0.7 * rng.standard_normal((n, 12), dtype=np.float32)
    x[:, 66:106] = np.round(np.maximum(np.exp(x[:, 66:106]) - 1.0, 0.0), 2)  # counts and lengths: heavy tails, many 0
    x[:, 106:] = rng.standard_normal((n, 30), dtype=np.float32)
    y = np.digitize(z, np.quantile(z, SHARES)).astype(np.float64)
    cut = int(lengths[:queries].sum())
    return Data("ranking", x[:cut], y[:cut], x[cut:], y[cut:], group=group[:cut], group_test=group[cut:])


def _worth(rng: np.random.Generator, factors: Array, asked: Array) -> Array:
    """(n,) what a document is worth to its query."""
    worth = (
        1.2 * factors[:, 0] * (1.0 + np.tanh(asked[:, 0]))
        + np.maximum(factors[:, 1], factors[:, 2])
        + 0.9 * factors[:, 3] * (asked[:, 1] > 0)
        + 0.8 * np.sin(2.0 * factors[:, 4])
        - 0.6 * np.abs(factors[:, 5] - 0.5 * asked[:, 2])
        + 0.7 * factors[:, 6] * factors[:, 7]
        + 0.7 * asked[:, 3]
    )
    return worth + 1.3 * rng.standard_normal(len(factors))
