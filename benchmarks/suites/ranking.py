"""Learning to rank: quality with its error by query, and time. CatBoost's loss is YetiRank."""

from __future__ import annotations

from gpuboost.benchmarks.data.ranking_sets import letor_like, lightgbm_rank, mslr10k_5k
from gpuboost.benchmarks.harness.cases import Case, Setting, Suite

PEERS = ("xgboost", "lightgbm", "catboost")
REAL = Setting(trees=200, matched=False)

SUITE = Suite(
    name="ranking",
    title="Learning to rank: held-out NDCG with its error by query, and seconds of the fit",
    kind="quality",
    repeats=3,  # for the seconds; every library here is deterministic for a seed and a number of threads
    cases=(
        Case(
            "lightgbm-rank",
            "3,005 documents of 201 queries x 300, 200 trees of depth 6, the rest each library's defaults",
            lightgbm_rank,
            {},
            REAL,
            peers=PEERS,
            small={"rows": 1000},
            rivals=PEERS,
        ),
        Case(
            "mslr10k-5k",
            "5,000 documents of 43 queries x 136, 200 trees of depth 6, the rest each library's defaults",
            mslr10k_5k,
            {},
            REAL,
            peers=PEERS,
            small={"rows": 1000},
            rivals=PEERS,
        ),
        Case(
            "letor",
            "3,000 queries of about 115 documents x 136, 100 trees of depth 6",
            letor_like,
            {"queries": 3000, "queries_test": 1000, "seed": 8},
            Setting(trees=100),
            peers=PEERS,
            small={"queries": 150, "queries_test": 100},
            targets={"train": 1.0},
        ),
        Case(
            "long-lists",
            "20 queries of up to 10,000 documents (the most that LightGBM takes) x 136, 50 trees of depth 6",
            letor_like,
            {"queries": 20, "queries_test": 10, "seed": 9, "typical": 9000, "most": 10_000},
            Setting(trees=50),
            peers=PEERS,
            small={"queries": 2, "queries_test": 2},
            targets={"train": 1.0},
        ),
    ),
)
