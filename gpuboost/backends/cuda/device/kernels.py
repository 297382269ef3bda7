"""Kernels that take their arguments by name, in the order of their own text.

    kernels = Kernels(runtime, "common/common.cuh", "leaves/leaves.cu")
    kernels("add_leaves")(grid, block, values=values, factor=factor, leaf_of_row=leaf_of_row, n=n, scores=scores)

Numbers are converted to the types that the kernel declares. The replay of a graph does not use this module.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, NoReturn, final

from gpuboost.backends.cuda.codegen.row_functions import called_by
from gpuboost.backends.cuda.device.parameters import parameters
from gpuboost.backends.cuda.device.runtime import Functions, Runtime
from gpuboost.backends.cuda.device.sources import source


@final
class Launcher:
    """One kernel of a module's text; see ``Runtime.kernel`` for the arguments and what is raised."""

    __slots__ = ("_launch", "_name", "_ordered", "_parameters", "_scalars")

    def __init__(
        self, runtime: Runtime, text: str, name: str, functions: Functions = (), *, shared_limit: int | None = None
    ) -> None:
        self._launch = runtime.kernel(text, name, functions=functions, shared_limit=shared_limit)
        self._name = name
        self._parameters = parameters(text)[name]
        names = [parameter.name for parameter in self._parameters]
        self._ordered = itemgetter(*names) if len(names) > 1 else lambda arguments: [arguments[key] for key in names]
        scalars = enumerate(parameter.scalar for parameter in self._parameters)
        self._scalars = [(i, scalar) for i, scalar in scalars if scalar is not None]

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], /, *, shared_mem: int = 0, **arguments: Any
    ) -> None:
        """Queue a launch.

        Args:
            grid: blocks in each direction; a 0 launches nothing.
            block: threads in each direction.
            shared_mem: dynamic shared memory of a block, in bytes.
            arguments: one for each parameter: arrays of the device and numbers.

        Raises:
            TypeError: if a parameter has no argument, or an argument has no parameter.
        """
        if len(arguments) != len(self._parameters):
            self._refuse(arguments)
        try:
            ordered = list(self._ordered(arguments))
        except KeyError:
            self._refuse(arguments)
        for i, scalar in self._scalars:
            ordered[i] = scalar(ordered[i])
        self._launch(grid, block, ordered, shared_mem)

    def _refuse(self, arguments: dict[str, Any]) -> NoReturn:
        names = [parameter.name for parameter in self._parameters]
        missing = [name for name in names if name not in arguments]
        unknown = [name for name in arguments if name not in names]
        raise TypeError(
            f"kernel {self._name}: no argument for {missing or 'none'}, no parameter for {unknown or 'none'}; "
            f"its parameters are {', '.join(names)}."
        )


@final
class Kernels:
    """The kernels of one group of files, each compiled at its first use.

    Args:
        runtime: runtime of the device that they run on.
        files: of ``gpuboost.kernels``, headers before what uses them.
        before: macro definitions in front of the files.
    """

    def __init__(self, runtime: Runtime, *files: str, before: str = "") -> None:
        self._runtime, self._files, self._before = runtime, files, before
        self._launchers: dict[tuple[str, str, Functions], Launcher] = {}

    def __call__(
        self, name: str, before: str = "", functions: Functions = (), *, shared_limit: int | None = None
    ) -> Launcher:
        """The kernel of that name; ``before``: further macro definitions; ``functions``: a loss's, which it calls."""
        key = name, before, functions
        if key not in self._launchers:
            text = source(*self._files, before=self._before + before)
            every = (*called_by(*self._files), *functions)
            self._launchers[key] = Launcher(self._runtime, text, name, every, shared_limit=shared_limit)
        return self._launchers[key]
