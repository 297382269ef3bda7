"""Seeded data sets with the shapes and marginals of well-known ones: a function of the arguments alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.benchmarks.harness.store import Array, Data, Task

Rng = np.random.Generator


def _split(task: Task, x: Any, y: Array, n: int) -> Data:
    return Data(task, X=x[:n], y=y[:n], X_test=x[n:], y_test=y[n:])


def _sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def higgs_like(n: int, n_test: int, seed: int) -> Data:
    """28 float32 columns: 21 of mixed marginals and 7 nonlinear combinations of them; binary."""
    rng = np.random.default_rng(seed)
    x, z = _collisions(rng, n + n_test)
    y = rng.random(len(x)) < _sigmoid(1.3 * (z - np.median(z)))
    return _split("binary", x, y, n)


def classes_like(n: int, n_test: int, seed: int) -> Data:
    """The columns of ``higgs_like``; seven classes of equal frequency, by the same signal with noise."""
    rng = np.random.default_rng(seed)
    x, z = _collisions(rng, n + n_test)
    z = z + rng.standard_normal(len(x))
    y = np.searchsorted(np.quantile(z, np.arange(1, 7) / 7), z)
    return _split("multiclass", x, y, n)


def _collisions(rng: Rng, total: int) -> tuple[Array, Array]:
    """(total, 28) columns, and the signal."""
    low = np.empty((total, 21), np.float32)
    for j in range(21):
        low[:, j] = _low_level_column(rng, j, total)
    high = _combinations(low)
    high += 0.1 * rng.standard_normal(high.shape, dtype=np.float32)
    z = (
        1.2 * np.tanh(high[:, 0] - 1.5)
        - 0.8 * np.abs(high[:, 1])
        + 0.9 * np.sin(2.5 * high[:, 2])
        + 0.7 * high[:, 3] * (low[:, 3] > 0)
        + 0.8 * high[:, 4] * low[:, 1]
        - 0.3 * high[:, 5]
        + 0.5 * high[:, 6] * np.cos(low[:, 20])
        + 0.6 * (low[:, 11] * low[:, 19] > 0.2)
        + 0.4
    )
    return np.hstack([low, high]), z


def _low_level_column(rng: Rng, j: int, n: int) -> Array:
    match j % 4:
        case 0:
            return rng.exponential(1.0, n)
        case 1:
            return rng.standard_normal(n)
        case 2:
            return rng.uniform(-1.7, 1.7, n)
    if j % 8 == 3:
        return rng.standard_normal(n)
    return rng.choice(np.array([0, 1.1, 2.2], np.float32), n, p=[0.5, 0.25, 0.25])


def _combinations(low: Array) -> Array:
    c = low.T
    return np.column_stack(
        [
            np.sqrt(c[0] ** 2 + c[4] ** 2 + 2 * c[0] * c[4] * np.cos(c[2])),
            c[1] * c[5],
            np.sqrt(np.abs(c[8] * c[12]) + 0.1) * (1 + 0.3 * np.sin(2 * c[6])),
            c[9] * np.sign(c[13]) + 0.5 * c[7],
            np.log1p(c[0] + c[8]) - np.log1p(c[16]),
            (c[10] - c[14]) ** 2,
            np.maximum(c[17], c[5]) * c[18],
        ]
    ).astype(np.float32)


def year_like(n: int, n_test: int, seed: int) -> Data:
    """90 correlated float32 columns from 20 hidden factors, a third of them heavy-tailed; regression."""
    rng, total = np.random.default_rng(seed), n + n_test
    factors = rng.standard_normal((total, 20), dtype=np.float32)
    mixing = (rng.standard_normal((20, 90)) / 3).astype(np.float32)
    x = factors @ mixing + 0.6 * rng.standard_normal((total, 90), dtype=np.float32)
    x[:, 12:60] = np.sign(x[:, 12:60]) * x[:, 12:60] ** 2 * 20
    z = (
        4 * np.sin(1.5 * factors[:, 0])
        + 3 * factors[:, 1] * factors[:, 2]
        + 2 * np.abs(factors[:, 3])
        + 3 * np.maximum(x[:, 0], x[:, 1])
        + 2 * x[:, 2] * (x[:, 3] > 0)
        - 2 * np.log1p(np.abs(x[:, 20]))
        + 1.5 * factors[:, 4] ** 2
    )
    return _split("regression", x, 1998 + z + 3 * rng.standard_normal(total), n)


def one_hot(n: int, n_test: int, seed: int) -> Data:
    """a9a's shape: 14 one-hot blocks, 123 columns, 14 ones a row, float32 CSR; binary, 24 % positive."""
    from scipy.sparse import csr_matrix

    rng, total = np.random.default_rng(seed), n + n_test
    sizes = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)
    hidden, z, codes = rng.standard_normal((total, 4)), np.zeros(total), []
    for size in sizes:
        share = np.log(rng.dirichlet(np.full(size, 0.7)) + 1e-3)
        logits = share + hidden @ (0.7 * rng.standard_normal((4, size)))
        code = np.argmax(logits + rng.gumbel(size=(total, size)), axis=1)
        z += (0.5 * rng.standard_normal(size))[code]
        codes.append(code)
    for a, b in ((0, 3), (5, 7), (1, 6), (9, 3), (2, 13), (4, 8)):
        z += (0.9 * rng.standard_normal((sizes[a], sizes[b])))[codes[a], codes[b]]
    y = rng.random(total) < _sigmoid(2 * (z - np.quantile(z, 0.76)))
    starts = np.cumsum((0, *sizes[:-1]))
    indices = (np.column_stack(codes) + starts).astype(np.int32).ravel()
    rows = np.arange(0, total * 14 + 1, 14, dtype=np.int32)
    return _split("binary", csr_matrix((np.ones(total * 14, np.float32), indices, rows), shape=(total, 123)), y, n)


def text_like(n: int, n_test: int, seed: int, d: int = 20_000, per_row: int = 50) -> Data:
    """TF-IDF of ten topics: power-law column frequencies, rows of length 1, density 0.25 %, float32 CSR; binary."""
    from scipy.sparse import csr_matrix

    rng, total = np.random.default_rng(seed), n + n_test
    frequency = 1 / (np.arange(d) + 30.0) ** 0.9
    frequency /= frequency.sum()
    topics = rng.integers(0, 10, total)
    indptr, indices = _words(rng, frequency, topics, per_row)
    values = (1 + rng.exponential(0.5, indices.size)).astype(np.float32)
    values *= np.log(1 / (frequency + 1e-6)).astype(np.float32)[indices]
    lengths = np.sqrt(np.add.reduceat(values**2, indptr[:-1])) + 1e-9
    values /= np.repeat(lengths, np.diff(indptr)).astype(np.float32)
    x = csr_matrix((values, indices, indptr), shape=(total, d))
    y = rng.random(total) < _sigmoid(_topic_scores(rng, x, topics))
    return _split("binary", x, y, n)


def _words(rng: Rng, frequency: Array, topics: Array, per_row: int) -> tuple[Array, Array]:
    """Row starts and the sorted, distinct columns of every row: 40 % of the words from its topic."""
    d, total = len(frequency), len(topics)
    own_words = rng.permuted(np.tile(np.arange(d), (10, 1)), axis=1)
    drawn = rng.choice(d, size=(total, int(per_row * 1.4)), p=frequency)
    drawn = np.where(rng.random(drawn.shape) < 0.4, own_words[topics[:, None], drawn], drawn)
    drawn.sort(axis=1)
    keep = np.ones(drawn.shape, bool)
    keep[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
    keep &= rng.random(drawn.shape) < per_row / keep.sum(1).mean()  # thinned to about per_row words
    keep[:, 0] |= ~keep.any(axis=1)  # no empty row
    return np.concatenate([[0], np.cumsum(keep.sum(1))]).astype(np.int32), drawn[keep].astype(np.int32)


def _topic_scores(rng: Rng, x: Any, topics: Array) -> Array:
    d = x.shape[1]
    effect = np.zeros(d, np.float32)
    effect[rng.choice(d // 5, 3 * d // 100, replace=False)] = rng.standard_normal(3 * d // 100) * 4
    there = (x > 0).astype(np.float32)
    z = np.asarray(there @ effect).ravel() / 3 + 1.5 * np.sign(rng.standard_normal(10))[topics]
    few, more = (np.asarray(there[:, part].sum(1)).ravel() for part in (slice(0, 40), slice(40, 120)))
    z += 1.5 * ((few > np.median(few)) ^ (more > np.median(more)))
    return z - np.median(z)


def categories(n: int, n_test: int, k: int, seed: int, *, zipf: bool = False) -> Data:
    """One column of k categories, of equal or Zipf frequency, with normal effects and noise; regression."""
    import pandas as pd

    rng, total = np.random.default_rng(seed), n + n_test
    frequency = 1.0 / np.arange(1, k + 1) if zipf else np.ones(k)
    code = rng.choice(k, total, p=frequency / frequency.sum())
    y = rng.normal(size=k)[code] + (0.8 if zipf else 0.3) * rng.normal(size=total)
    return _split("regression", pd.DataFrame({"category": pd.Categorical(code, categories=range(k))}), y, n)
