"""Size of what numba-cuda brings beside the packages that gpuboost, CuPy and NVRTC need in any case."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement

ASKED = "numba-cuda[cu13]"
OTHERS = ("numba", "cuda-pathfinder", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "packaging")
"""Packages that gpuboost, CuPy and NVRTC bring, with what these need"""


def sizes() -> dict[str, float]:
    """Package -> megabytes of its installed files, the largest first."""
    known = {name for other in OTHERS for name in _required(other)}
    found = {name: _megabytes(name) for name in _required(ASKED) if name not in known}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _required(requirement: str) -> Iterator[str]:
    """The package and all that it requires."""
    asked = [Requirement(requirement)]
    for one in asked:  # grows meanwhile
        yield one.name.lower()
        for text in metadata.distribution(one.name).requires or []:
            needed = Requirement(text)
            wanted = needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in one.extras or {""}
            )
            if wanted and str(needed) not in map(str, asked):
                asked.append(needed)


def _megabytes(name: str) -> float:
    files = (file.locate() for file in metadata.distribution(name).files or [])
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6
