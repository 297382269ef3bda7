"""Old module names, so that pickles and deep imports of earlier versions go on working.

``import gpuboost.api.report`` finds ``gpuboost.reports.report``: the same module object, under both names.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # its import takes longer than that of all the modules here

MOVED = {
    "gpuboost.api.chains": "gpuboost.model_selection.chains",
    "gpuboost.api.cv": "gpuboost.model_selection.cv",
    "gpuboost.api.edges": "gpuboost.reports.edge",
    "gpuboost.api.guarantee": "gpuboost.reports.guarantee",
    "gpuboost.api.posterior_fit": "gpuboost.model_selection.posterior_fit",
    "gpuboost.api.report": "gpuboost.reports.report",
    "gpuboost.api.sampled": "gpuboost.reports.sampling",
    "gpuboost.backends.cuda.gpus": "gpuboost.backends.cuda.device.gpus",
    "gpuboost.backends.odds": "gpuboost.backends.numerics.probabilities",
    "gpuboost.composition.presets": "gpuboost.presets",
    "gpuboost.effects": "gpuboost.backends.prediction.effects",
    "gpuboost.losses.arrays": "gpuboost.losses.custom.arrays",
    "gpuboost.losses.unbiased_lambdamart": "gpuboost.losses.ranking",
    "gpuboost.measures": "gpuboost.metrics.formulas",
    "gpuboost.query_measures": "gpuboost.metrics.ranking",
}
"""Old name -> new name, of modules that pickles or documents of earlier versions name."""


class _Alias:
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(MOVED[spec.name])
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has replaced it by the alias's; the module has run already


class MovedModules:
    """Finds modules under the names that they had in earlier versions."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec whose module is the one at the new name; None for every other name."""
        return ModuleSpec(fullname, cast("Loader", _Alias())) if fullname in MOVED else None


def install() -> None:
    """Append the finder to ``sys.meta_path``, once for each process."""
    if not any(type(finder).__name__ == MovedModules.__name__ for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
