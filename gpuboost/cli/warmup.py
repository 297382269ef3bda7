"""``gpuboost warmup``: compile kernels before they are needed."""

from __future__ import annotations

import argparse

from gpuboost.cli.console import new_console


def run(options: argparse.Namespace) -> int:
    """Compile the kernels of the named kinds of fits, or of all, and print the seconds and the folder, or the wheel."""
    import gpuboost
    from gpuboost.backends.devices import kernel_cache

    console = new_console()
    if options.wheel is not None:
        from gpuboost.backends.cpu.compilation.kernel_wheel import build

        wheel = build(options.wheel, options.kinds, options.cpu)
        console.print(
            f"wrote {wheel}, {wheel.stat().st_size / 1e6:.1f} MB", highlight=False, markup=False, soft_wrap=True
        )
        return 0
    for kind, seconds in gpuboost.warm_up(options.kinds or None).items():
        console.print(f"{kind:<16}{seconds:6.1f} s", highlight=False)
    console.print(f"kernel cache    {kernel_cache()}", highlight=False, markup=False, soft_wrap=True)
    return 0
