"""Another project is called gpuboost on the package index; both would install into one folder."""

from __future__ import annotations

import os
import warnings

_END = ".dist-info"


def warn_of_another_distribution(package: str | os.PathLike[str]) -> None:
    """Warn if a distribution ``gpuboost`` is installed beside the package, whose distribution is ``gpuboosting``.

    package: the folder of the imported package.
    """
    beside = os.path.dirname(os.fspath(package))
    names = os.listdir(beside) if os.path.isdir(beside) else []  # it may be a zip file
    others = sorted(name for name in names if name.startswith("gpuboost-") and name.endswith(_END))
    if others:
        warnings.warn(
            f"gpuboost: the distribution {others[0].removesuffix(_END)!r} is installed in {beside}, "
            "and may have overwritten files of gpuboosting, the gradient boosting library of the same import name. "
            "pip uninstall gpuboost, then pip install --force-reinstall gpuboosting.",
            stacklevel=3,
        )
