"""Devices whose blocks have 64 KB of shared memory (compute capability 7.5): the same models, in two passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator import FakeCupy, require_compiler
from support.builders import model_bytes, random_case
from support.cuda_compiler import resources
from support.cuda_modules import name_of
from support.examples import crossed

from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.losses import SquaredError
from gpuboost.recipe import Recipe
from gpuboost.types import Limits

pytestmark = pytest.mark.slow

BLOCK = 64 << 10
GROWTHS = {
    "depth-wise": DepthWise(Limits(8, 3)),
    "leaf-wise, rows counted": LeafWise(Limits(6, 5, 3)),
    "oblivious": Oblivious(Limits(8, 3)),
}


class Noting:
    """A runtime that writes down how much shared memory kernels are launched with."""

    def __init__(self, runtime: CupyRuntime) -> None:
        self._runtime = runtime
        self.most: dict[tuple[str, Any, str], int] = {}  # (text, functions linked with it, kernel) -> bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def kernel(self, source: str, name: str, *, functions: Any = (), shared_limit: int | None = None) -> Any:
        launch = self._runtime.kernel(source, name, functions=functions, shared_limit=shared_limit)

        def noted(grid: Any, block: Any, args: Any, shared_mem: int = 0) -> None:
            key = source, functions, name
            self.most[key] = max(shared_mem, self.most.get(key, 0))
            launch(grid, block, args, shared_mem)

        return noted


@pytest.fixture
def runtime() -> Noting:
    require_compiler()
    return Noting(CupyRuntime(FakeCupy(shared_memory=BLOCK), name="emulated"))


@pytest.mark.parametrize(("growth", "most_cuts", "passes"), crossed([*GROWTHS], [(254, 2), (100, 1)]))
def test_the_same_model(runtime: Noting, growth: str, most_cuts: int, passes: int) -> None:
    case = random_case(2, 700, 35, most_cuts=most_cuts, full=True, categorical=0.1 if passes == 2 else 0.0)
    recipe, backend = Recipe(SquaredError(), 3, 0.5, GROWTHS[growth]), Cuda(runtime)
    found, expected = boost(recipe, case.data, backend), boost(recipe, case.data, Reference())
    assert model_bytes(found) == model_bytes(expected)
    assert backend.predict(found, case.x).tobytes() == Reference().predict(expected, case.x).tobytes()
    split = [tree.nodes.bin[~tree.nodes.is_leaf] for tree in expected.trees]
    assert (np.concatenate(split) >= 128).any() == (passes == 2)  # bins of the second pass decide
    names = {name_of(text) for text, _, _ in runtime.most}
    assert {f"PASSES {passes}" in macros for file, macros in names if file == "histograms/histogram.cu"} == {True}


def test_every_kernel_fits_into_a_block(runtime: Noting) -> None:
    """What is asked for at launch, and what the kernel has besides, as the compiler for that device says."""
    case = random_case(2, 300, 35, most_cuts=254, full=True, categorical=0.0)
    for limits in (Limits(4, 2), Limits(4, 2, 3)):
        backend = Cuda(runtime)
        backend.predict(boost(Recipe(SquaredError(), 1, 0.5, DepthWise(limits)), case.data, backend), case.x)
    assert max(runtime.most.values()) > 32 << 10
    for (text, functions, kernel), asked in runtime.most.items():
        taken = resources(text, 75, functions)[kernel]
        assert taken.shared + asked <= BLOCK, (name_of(text), kernel, taken.shared, asked)
