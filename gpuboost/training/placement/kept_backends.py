"""Backends that predict, kept between the calls of an estimator."""

from __future__ import annotations

import os
import threading
from weakref import WeakKeyDictionary

from gpuboost import backends
from gpuboost.backends.protocol import Backend


class _Kept(threading.local):
    """Backend of an estimator, per thread, since a backend serves one caller at a time; freed with the estimator."""

    def __init__(self) -> None:
        self.machines: WeakKeyDictionary[object, tuple[tuple[str, int], Backend]] = WeakKeyDictionary()


_kept = _Kept()


def kept_backend(owner: object, device: str, threads: int) -> Backend:
    """The backend of that kind that ``owner`` used last in this thread, or a new one."""
    held = _kept.machines.get(owner)
    if held is None or held[0] != (device, threads):
        held = (device, threads), backends.get(device, threads)
        _kept.machines[owner] = held
    return held[1]


def _forget() -> None:
    _kept.machines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # a backend's threads do not exist in a forked child
