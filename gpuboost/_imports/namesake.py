"""Another project is called gpuboost on the package index; both would install into one folder."""

from __future__ import annotations

import warnings
from pathlib import Path


def warn_of_another_distribution(package: Path) -> None:
    """Warn if a distribution ``gpuboost`` is installed beside the package, whose distribution is ``gpuboosting``.

    package: the folder of the imported package.
    """
    others = sorted(folder.name for folder in package.parent.glob("gpuboost-*.dist-info"))
    if others:
        warnings.warn(
            f"gpuboost: the distribution {others[0].removesuffix('.dist-info')!r} is installed in {package.parent}, "
            "and may have overwritten files of gpuboosting, the gradient boosting library of the same import name. "
            "pip uninstall gpuboost, then pip install --force-reinstall gpuboosting.",
            stacklevel=3,
        )
