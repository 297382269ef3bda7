"""``gpuboost info``: what is installed, what it can run on, and why not on the rest."""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "cupy-cuda12x", "cupy-cuda13x", "pandas", "pyarrow", "ray")


def run(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    import gpuboost
    from gpuboost.backends.devices import usable_threads

    console = Console()
    about = {
        "gpuboost": gpuboost.__version__,
        "python": f"{platform.python_version()} on {platform.platform()}",
        "libraries": ", ".join(f"{name} {found}" for name in LIBRARIES if (found := _version(name))),
        "threads": str(usable_threads()),
        "kernel cache": _kernel_cache(),
        "installed in": str(Path(gpuboost.__file__).parent),
    }
    for name, value in about.items():
        console.print(f"{name:<14}{value}", highlight=False, markup=False, soft_wrap=True)  # paths stay whole
    table = Table("device", "usable", "what it is", "why not", title="Devices", title_justify="left")
    for device in gpuboost.devices():
        table.add_row(device.name, "yes" if device.usable else "no", device.description, device.why_not)
    console.print(table, highlight=False)
    return 0


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _kernel_cache() -> str:
    """Where numba keeps compiled kernels, by numba's own rule."""
    from importlib.util import find_spec

    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return f"{given} (NUMBA_CACHE_DIR)"
    spec = find_spec("gpuboost.kernels")
    beside = Path(str(spec.origin)).parent if spec else Path()
    if os.access(beside, os.W_OK):
        return f"{beside / '__pycache__'}"
    return "the user's cache folder of numba, since the installation is read-only"
