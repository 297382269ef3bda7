"""Garbage collection that waits while modules or a compiler are loaded."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """No garbage collection: numba makes a thousand lasting classes as it is loaded, and more as it compiles.

    Searching them for garbage again and again takes a third of the loading and a twentieth of the compilation, of
    the first function of numba.cuda, which loads most of that package, two fifths, and of the import of an estimator
    a tenth.
    """
    collecting, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if len(sys.modules) > modules:
                _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Move all objects to the oldest generation, without a search.

    Else the next collection of young objects, in the first fit, searches all that was loaded: an eighth of a second.
    Objects that the process has frozen stay so.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
