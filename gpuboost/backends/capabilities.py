"""Declared capabilities of a machine: the parts of a recipe that it runs.

Every machine has a record of them, ``offers``. A recipe that asks for more is refused before its fit begins: by
``gpuboost.composition`` where the execution alone decides on the machine, else by ``gpuboost.training``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a machine beyond growing trees from all rows. By default, all of them."""

    sampling: bool = True  # rows drawn for each tree: ``sample``, ``draw``, ``losses``, ``weigh``, ``ControlVariates``
    langevin: bool = True  # ``noise``, and ``grow`` with a key
    line_search: bool = True  # ``line_search`` and ``length_along``
    base_learners: bool = True  # base learners other than trees: ``smoothing``
    list_losses: bool = True  # losses of whole queries
    worker_streams: bool = False  # ``slots``: an execution context for each of several workers beside the server


CPU_SHARDS = Capabilities(line_search=False, base_learners=False)
GPU_SHARDS = Capabilities(sampling=False, langevin=False, line_search=False, base_learners=False, list_losses=False)
