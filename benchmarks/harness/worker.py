"""One run of one library on one case, in a process of its own: ``python -m gpuboost.benchmarks.harness.worker JOB``.

JOB is a JSON object (suite, case, size, peer, threads, folder, and by_row: where to leave the deciding score of each
held-out row, or nothing). The last line of standard output is ``RESULT`` and a
JSON object: phases, scores, version.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpuboost.benchmarks.harness.cases import Case, suites
from gpuboost.benchmarks.harness.measure import Clock
from gpuboost.benchmarks.harness.peers import open_peer
from gpuboost.benchmarks.harness.results import deciding
from gpuboost.benchmarks.harness.scores import by_query, by_row, score
from gpuboost.benchmarks.harness.store import Data, load

MARK = "RESULT "


def run(case: Case, data: Data, peer_name: str, threads: int, by_row_to: str | None = None) -> dict[str, Any]:
    """Phases import, warm_up, bin, train, predict of one library, and how good its held-out predictions are."""
    clock = Clock()
    with clock.phase("import"):
        peer = open_peer(peer_name, data.task, case.setting, threads, data.y)
    x, x_test = peer.prepare(data.X), peer.prepare(data.X_test)
    if case.setting.warm_up:
        with clock.phase("warm_up"):
            _warm_up(case, data, peer_name, threads)
    clock.ready()
    with clock.phase("bin"):
        binned = peer.bin(x, data.y, data.weight, data.group)
    with clock.phase("train"):
        model = peer.train(binned)
    if peer.binning_seconds is not None:
        clock.phases["bin"]["seconds"] += peer.binning_seconds
        clock.phases["train"]["seconds"] -= peer.binning_seconds
    predicted = clock.repeated("predict", lambda: peer.predict(model, x_test))
    scores = score(data, predicted)
    if by_row_to is not None and data.task != "ranking":
        np.save(by_row_to, by_row(data, predicted, deciding(case, scores)))
    return {
        "version": peer.version,
        "rows": int(data.X.shape[0]),
        "features": int(data.X.shape[1]),
        "rows_test": int(data.X_test.shape[0]),
        "trees": case.setting.trees,
        "base_mb": round(clock.base_mb, 1),
        "phases": clock.phases,
        "disturbed": clock.disturbed(),
        "scores": scores,
        **({"by_query": by_query(data, predicted)} if data.task == "ranking" else {}),
    }


def _warm_up(case: Case, data: Data, peer_name: str, threads: int) -> None:
    """Two trees on the first rows: threads are started and kernels loaded, for every library alike."""
    few = slice(0, 5000)
    peer = open_peer(peer_name, data.task, replace(case.setting, trees=2), threads, data.y)
    weight, group = (None if vector is None else vector[few] for vector in (data.weight, data.group))
    x = peer.prepare(data.X[few])
    peer.predict(peer.train(peer.bin(x, data.y[few], weight, group)), x)


def main(job: dict[str, Any]) -> None:
    warnings.simplefilter("ignore")  # what other libraries deprecate is not measured
    case = suites()[job["suite"]].chosen((job["case"],))[0].sized(job["size"])
    if "trees" in job:
        case = replace(case, setting=replace(case.setting, trees=job["trees"]))
    result = run(case, load(Path(job["folder"])), job["peer"], job["threads"], job["by_row"])
    print(MARK + json.dumps(result), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
