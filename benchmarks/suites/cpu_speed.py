"""Speed and memory on the CPU: equal rows, threads, bins, depth and rounds; binning, training and prediction apart."""

from __future__ import annotations

from gpuboost.benchmarks.data.synthetic import classes_like, higgs_like, one_hot, text_like, year_like
from gpuboost.benchmarks.harness.cases import Case, Setting, Suite

HIGGS = {"n": 1_000_000, "n_test": 100_000, "seed": 1}
SMALL = {"n": 20_000, "n_test": 5_000}
DENSE_PEERS = ("xgboost", "lightgbm", "lightgbm-quantised", "catboost", "sklearn")
START = {"n": 1_000, "n_test": 100, "seed": 7}

SUITE = Suite(
    name="cpu-speed",
    title="CPU: seconds for binning, training and prediction, and memory",
    kind="speed",
    repeats=3,
    cases=(
        Case(
            "higgs",
            "1,000,000 x 28 dense, binary, 100 trees of depth 6",
            higgs_like,
            HIGGS,
            Setting(trees=100),
            peers=DENSE_PEERS,
            small=SMALL,
            targets={"fit": 0.7, "train": 1.0, "memory": 1.2},
        ),
        Case(
            "year",
            "400,000 x 90 dense, regression, 100 trees of depth 6",
            year_like,
            {"n": 400_000, "n_test": 100_000, "seed": 2},
            Setting(trees=100),
            peers=DENSE_PEERS,
            small=SMALL,
            targets={"fit": 0.7, "train": 1.0},
        ),
        Case(
            "leafwise",
            "1,000,000 x 28 dense, binary, 50 leaf-wise trees of 255 leaves",
            higgs_like,
            HIGGS,
            Setting(trees=50, leaves=255),
            peers=DENSE_PEERS,
            small=SMALL,
            targets={"fit": 1.0, "train": 1.0},
        ),
        Case(
            "classes",
            "1,000,000 x 28 dense, seven classes, 20 rounds of depth 6",
            classes_like,
            HIGGS,
            Setting(trees=20),
            peers=DENSE_PEERS,
            small=SMALL,
            targets={"fit": 0.7, "memory": 1.0},
        ),
        Case(
            "higgs-11m",
            "11,000,000 x 28 dense, binary, 20 trees of depth 6",
            higgs_like,
            {"n": 11_000_000, "n_test": 100_000, "seed": 1},
            Setting(trees=20),
            peers=("xgboost", "lightgbm"),
            small=SMALL,
            targets={"fit": 0.7, "memory": 1.0},
        ),
        Case(
            "one-hot",
            "32,561 x 123 sparse, binary, 200 trees of depth 6 (scikit-learn: made dense)",
            one_hot,
            {"n": 32_561, "n_test": 100_000, "seed": 4},
            Setting(trees=200),
            small={"n": 5_000, "n_test": 5_000},
            targets={"fit": 1.0},
        ),
        Case(
            "text",
            "50,000 x 20,000 sparse (0.25 % filled), binary, 50 trees of depth 6",
            text_like,
            {"n": 50_000, "n_test": 100_000, "seed": 5},
            Setting(trees=50),
            peers=("xgboost", "lightgbm", "catboost"),
            small={"n": 2_000, "n_test": 2_000, "d": 2_000},
            targets={"fit": 1.0},
        ),
        Case(
            "predict",
            "prediction of 1,000,000 x 28 rows, 100 trees of depth 6 fitted to 100,000 rows",
            higgs_like,
            {"n": 100_000, "n_test": 1_000_000, "seed": 1},
            Setting(trees=100),
            small={"n": 20_000, "n_test": 20_000},
            targets={"predict": 1.0},
        ),
        Case(
            "start-cold",
            "import and first fit on 1,000 x 28 rows, no compiled kernel cached",
            higgs_like,
            START,
            Setting(trees=100, warm_up=False),
            kernels="empty",
        ),
        Case(
            "start-warm",
            "import and first fit on 1,000 x 28 rows, kernels compiled by an earlier process",
            higgs_like,
            START,
            Setting(trees=100, warm_up=False),
            kernels="primed",
        ),
    ),
)
