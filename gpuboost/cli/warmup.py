"""``gpuboost warmup``: compile kernels before they are needed."""

from __future__ import annotations

import argparse
import subprocess

from gpuboost.cli.console import new_console
from gpuboost.errors import InputError


def run(options: argparse.Namespace) -> int:
    """Compile the kernels of the named kinds of fits, or of all, and print the seconds and the folder, or the wheel."""
    import gpuboost
    from gpuboost.backends.devices import kernel_cache

    if options.wheel is not None:
        return _write_wheel(options)
    if options.cpu is not None:
        raise InputError(f"--cpu: names the processors of a wheel; got {options.cpu!r} without --wheel DIR. Give both.")
    console = new_console()
    for kind, seconds in gpuboost.warm_up(options.kinds or None).items():
        console.print(f"{kind:<16}{seconds:6.1f} s", highlight=False)
    console.print(f"kernel cache    {kernel_cache()}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _write_wheel(options: argparse.Namespace) -> int:
    from gpuboost.backends.cpu.compilation.kernel_wheel import build

    try:
        wheel = build(options.wheel, options.kinds, options.cpu or "host")
    except subprocess.CalledProcessError as error:  # the compiling process has said why
        return error.returncode
    size = f"{wheel.stat().st_size / 1e6:.1f} MB"
    new_console().print(f"wrote {wheel}, {size}", highlight=False, markup=False, soft_wrap=True)
    return 0
