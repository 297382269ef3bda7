"""``gpuboost info``: installed versions, usable devices, and the reasons why others cannot be used."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gpuboost.cli.console import new_console

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "cupy-cuda12x", "cupy-cuda13x", "pandas", "pyarrow", "ray")


def run(options: argparse.Namespace) -> int:
    """Print the devices of this machine, and why a device is not usable."""
    from rich.markup import escape
    from rich.table import Table

    import gpuboost
    from gpuboost.backends.devices import kernel_cache, usable_threads

    console = new_console()
    about = {
        "gpuboost": gpuboost.__version__,
        "python": f"{platform.python_version()} on {platform.platform()}",
        "libraries": ", ".join(f"{name} {version}" for name in LIBRARIES if (version := _version(name))),
        "threads": str(usable_threads()),
        "kernel cache": kernel_cache(),
        "installed in": str(Path(gpuboost.__file__).parent),
    }
    for name, value in about.items():
        console.print(f"{name:<14}{value}", highlight=False, markup=False, soft_wrap=True)  # paths stay whole
    table = Table("device", "usable", "what it is", "why not", title="Devices", title_justify="left")
    for device in gpuboost.devices():
        table.add_row(device.name, "yes" if device.usable else "no", escape(device.description), escape(device.why_not))
    console.print(table, highlight=False)
    return 0


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
