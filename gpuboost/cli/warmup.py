"""``gpuboost warmup``: compile kernels before they are needed."""

from __future__ import annotations

import argparse

from gpuboost.cli.console import new_console


def run(options: argparse.Namespace) -> int:
    """Compile the kernels of the named kinds of fits, or of all, and print the seconds and the folder."""
    import gpuboost
    from gpuboost.backends.devices import kernel_cache

    console = new_console()
    for kind, seconds in gpuboost.warm_up(options.kinds or None).items():
        console.print(f"{kind:<16}{seconds:6.1f} s", highlight=False)
    console.print(f"kernel cache    {kernel_cache()}", highlight=False, markup=False, soft_wrap=True)
    return 0
