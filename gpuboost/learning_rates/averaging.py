"""Random-forest mode: a model that is the mean of its rounds."""

from __future__ import annotations

from gpuboost.records import dataclass


@dataclass(frozen=True, slots=True)
class Averaging:
    """Random-forest mode: all trees are fitted at the start score, and the model is their mean (Breiman 2001).

    Round t adds 1 / (t + 1) of its tree and shrinks the model before it to t / (t + 1), so after every round F is the
    start plus the mean of the trees, also of the first k of them (LightGBM: ``boosting_type="rf"``, XGBoost:
    ``num_parallel_tree``). Trees differ by drawn rows and features only; ``gb.presets.random_forest`` has both.
    """

    def __call__(self, round: int, /) -> float:
        return 1.0 / (round + 1.0)
