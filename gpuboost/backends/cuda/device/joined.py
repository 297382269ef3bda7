"""Launches that do the work of several lists of launches at once.

``Segments``: the launches of a round in parts that follow one another. A part has several lists, lanes, the launches of
which do not depend on other lanes: the outputs of a training have trees of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from gpuboost.backends.cuda.device.joint_kernels import joint_launch
from gpuboost.backends.cuda.device.launches import KernelLaunch, Launch
from gpuboost.backends.cuda.device.runtime import Runtime

T = TypeVar("T")
Lane: TypeAlias = Sequence[Launch]
Segments: TypeAlias = Sequence[Sequence[Lane]]


def joined(each: Sequence[Segments], runtime: Runtime) -> list[Launch]:
    """Launches that do the work of trainings, in the order of each. Alike ones of several lanes become one launch."""
    joint_launches: dict[tuple[Launch, ...], list[Launch]] = {}  # rounds that are repeated have the same launches
    every: list[Launch] = []
    for of_one_length in _grouped(each, len):
        for at_one_time in zip(*of_one_length, strict=True):
            for alike in _grouped(chain.from_iterable(at_one_time), _kinds):
                for launches in zip(*alike, strict=True):
                    if launches not in joint_launches:
                        joint_launches[launches] = list(_joined(launches, runtime))
                    every += joint_launches[launches]
    return every


def _joined(launches: Sequence[Launch], runtime: Runtime) -> Iterator[Launch]:
    """The same for one launch of each, which have a kernel in common."""
    for alike in _grouped(launches, _shape):
        kernels = [launch for launch in alike if isinstance(launch, KernelLaunch) and len(launch.grid) < 3]
        if len(alike) > 1 and len(kernels) == len(alike):
            yield joint_launch(kernels, runtime)
        else:
            yield from alike


def _kinds(launches: Sequence[Launch]) -> Any:
    return tuple(launch.kernel if isinstance(launch, KernelLaunch) else type(launch) for launch in launches)


def _shape(launch: Launch) -> Any:
    return (launch.grid, launch.block, launch.shared_mem) if isinstance(launch, KernelLaunch) else None


def _grouped(items: Iterable[T], key: Callable[[T], Any]) -> list[list[T]]:
    """The items by the value of ``key``, in the order in which they come."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())
