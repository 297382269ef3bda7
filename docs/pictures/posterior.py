"""The picture of README.md: models drawn from a posterior agree where there are rows, and disagree elsewhere.

``python docs/pictures/posterior.py`` fits the models (half a minute) and writes ``docs/pictures/posterior.png``. It
needs matplotlib: ``pip install 'gpuboosting[plot]'``.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import make_moons

import gpuboost as gb

PICTURE = Path(__file__).with_suffix(".png")
INK, GREY, BLUE, RED = "#22303c", "#6b7782", "#1f5fa8", "#c8442e"
SAND = LinearSegmentedColormap.from_list("sand", ["#ffffff", "#fbe3b0", "#eeb45a", "#c9752b", "#7a3a16"])
NOISE = 0.25  # standard deviation of the targets around the curve
GAP = (-0.4, 1.3)  # no row lies between


def curve(x: np.ndarray) -> np.ndarray:
    """The mean of the target, which the regression is to find."""
    return np.asarray(np.sin(1.7 * x) + 0.15 * x)


def regression() -> tuple[np.ndarray, np.ndarray, gb.GradientBoostingRegressor]:
    """Rows with a gap among them, and a chain of models; its trees may split in the gap, too."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(-3.0, GAP[0], 90), rng.uniform(GAP[1], 3.2, 70)])
    y = curve(x) + NOISE * rng.normal(size=len(x))
    data = gb.Dataset(x[:, None], y, cuts={0: np.linspace(-4.0, 4.0, 161)[1:-1]})
    model = gb.GradientBoostingRegressor(
        n_estimators=12_000,
        learning_rate=0.3,
        max_depth=4,
        posterior_samples=420,
        random_state=0,
        langevin=gb.Langevin(inverse_temperature=len(x) / NOISE**2, shrinkage=0.004, random_from=0),
    )
    return x, y, model.fit(data)


def classification() -> tuple[np.ndarray, np.ndarray, gb.GradientBoostingClassifier]:
    """Two moons, and a chain of classifiers."""
    X, label = make_moons(300, noise=0.2, random_state=1)
    cuts = {0: np.linspace(-3.0, 4.0, 141)[1:-1], 1: np.linspace(-2.5, 3.0, 111)[1:-1]}
    model = gb.GradientBoostingClassifier(
        n_estimators=12_000,
        learning_rate=1.0,
        max_depth=6,
        posterior_samples=400,
        random_state=0,
        langevin=gb.Langevin(shrinkage=0.01, random_from=0),
    )
    return X, label, model.fit(gb.Dataset(X, label, cuts=cuts))


def draw_regression(panel: Any) -> None:
    """Draw each model as a thin line, and their mean, interval and rows."""
    x, y, model = regression()
    grid = np.linspace(-3.6, 3.6, 721)
    models = model.posterior_members(grid[:, None])[:, 0]  # (420, 721)
    low, high = model.predict_interval(grid[:, None], coverage=0.9).T
    panel.axvspan(*GAP, color="#f2f4f6", lw=0)
    panel.fill_between(grid, low, high, color=BLUE, alpha=0.14, lw=0)
    panel.plot(grid, models[::7].T, color=BLUE, lw=0.5, alpha=0.22)
    panel.plot(grid, models.mean(axis=0), color=BLUE, lw=2.2, label="mean and 90 % interval")
    panel.plot(grid, curve(grid), color=RED, lw=1.6, ls=(0, (4, 2)), label="true curve")
    panel.plot(x, y, "o", color=INK, ms=2.6, alpha=0.75, mew=0, label="training rows")
    panel.text(np.mean(GAP), -2.15, "no rows here", color=GREY, ha="center", fontsize=9)
    panel.set(xlim=(grid[0], grid[-1]), ylim=(-2.4, 2.6))
    panel.legend(loc="upper left", frameon=False, fontsize=8.5, labelcolor=INK, ncols=3, columnspacing=1.2)
    panel.set_title("Regression: 60 of the models that one fit draws", loc="left", fontsize=11, color=INK)


def draw_classification(figure: Any, panel: Any) -> None:
    """Draw the disagreement of the models as a colour, the border between the classes as a line."""
    X, label, model = classification()
    u, v = np.meshgrid(np.linspace(-2.0, 3.0, 301), np.linspace(-1.5, 2.0, 211))
    answer = model.predict_uncertainty(np.column_stack([u.ravel(), v.ravel()]))
    knowledge, probability = answer.knowledge.reshape(u.shape), answer.mean[:, 1].reshape(u.shape)
    shown = panel.pcolormesh(u, v, knowledge, cmap=SAND, vmin=0.0, shading="nearest")
    panel.contour(u, v, np.where(knowledge < 0.12, probability, np.nan), levels=[0.5], colors=INK, linewidths=1.2)
    panel.scatter(*X.T, c=np.where(label, BLUE, RED), s=14, edgecolors="white", linewidths=0.5)
    panel.set(xlim=(-2.0, 3.0), ylim=(-1.5, 2.0))
    panel.set_title("Two classes: the darker, the less the models agree", loc="left", fontsize=11, color=INK)
    bar = figure.colorbar(shown, ax=panel, pad=0.015, aspect=28)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8, labelcolor=GREY)
    bar.set_label("knowledge uncertainty, nats", fontsize=8.5, color=GREY)


def main() -> None:
    """Write the picture, with 192 colours, so that it stays small."""
    figure = Figure(figsize=(11.5, 4.1), layout="constrained", dpi=130)
    left, right = figure.subplots(1, 2, width_ratios=(1.08, 1))
    draw_regression(left)
    draw_classification(figure, right)
    for panel in (left, right):
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0, labelsize=8, labelcolor=GREY)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(192).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
