"""One way to write a file: aside first, then moved into its place, so that no reader ever sees half of one.

A symbolic link stays one, and the file that it names is written. A device or a pipe is written into, never replaced. A
file that is there keeps its permissions. Every OSError names the file that the caller asked for, or its missing folder.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from gpuboost.errors import InputError, shown

try:
    import fcntl
except ImportError:  # Windows: a leftover is known by its age alone
    fcntl = None  # type: ignore[assignment]

LEFTOVER_SECONDS = 60.0
"""Age at which a temporary file that no process has locked counts as left over by a killed process."""

UNLOCKED_SECONDS = 86_400.0
"""The same where files cannot be locked."""


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` to the file at ``path``.

    Raises:
        OSError: if the folder does not exist, or cannot be written to, or is full; ``filename`` is ``path``.
    """
    with writing(path) as file:
        file.write(content)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that takes the place of ``path`` when the block ends without an exception.

    Temporary files that killed processes left beside ``path`` are removed.

    Raises:
        InputError: if ``path`` is no path.
        OSError: if the folder does not exist, or cannot be written to, or is full; ``filename`` is ``path``.
    """
    place = Path(os.path.realpath(checked_path(path)))
    if not place.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place.parent))
    try:
        if place.exists() and not place.is_file():
            if place.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            with place.open("wb") as file:  # a device or a pipe
                yield file
            return
        _remove_leftovers(place)
        with _aside(place) as file:
            yield file
    except OSError as error:
        if error.errno is None:  # not of the operating system
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error


def checked_path(path: Any) -> Path:
    """The path of a file.

    Raises:
        InputError: if it is neither text nor a path, is empty, or holds what names of files cannot.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path: must be the path of a file; got {shown(path)}.")
    text = os.fspath(path)
    if not text or "\0" in str(text):
        raise InputError(f"path: must name a file; got {text!r}.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise InputError(f"path: must be text that names of files can have; got {text!r}.") from None
    return Path(path)


def same_file(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """True if both paths lead to one regular file, so that writing one would destroy the other."""
    try:
        return os.path.samefile(first, second) and Path(first).is_file()
    except OSError:  # one of them is not there
        return False


@contextmanager
def _aside(place: Path) -> Iterator[IO[bytes]]:
    """A temporary file beside ``place``, moved there at the end, removed on any exception."""
    handle, name = tempfile.mkstemp(prefix=_prefix(place), suffix=".part", dir=place.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            _lock(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
            _take_over(place, temporary)
            os.replace(temporary, place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _take_over(place: Path, temporary: Path) -> None:
    """Give the temporary file the mode, and as far as allowed the owner, of the file that it replaces."""
    try:
        old = place.stat()
    except FileNotFoundError:
        temporary.chmod(_usual_mode())
        return
    with suppress(OSError):
        if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(temporary, old.st_uid, old.st_gid)
    temporary.chmod(stat.S_IMODE(old.st_mode))


def _remove_leftovers(place: Path) -> None:
    """Remove temporary files of earlier writes to ``place`` whose processes are gone."""
    now = time.time()
    for leftover in place.parent.glob(f"{_escaped(_prefix(place))}*.part"):
        with suppress(OSError):
            age = now - leftover.stat().st_mtime
            if age > LEFTOVER_SECONDS and not leftover.is_symlink() and _is_free(leftover, age):
                leftover.unlink()


def _is_free(leftover: Path, age: float) -> bool:
    if fcntl is None:
        return age > UNLOCKED_SECONDS
    with leftover.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # its writer is still there
            return False
        except OSError:  # this file system has no locks
            return age > UNLOCKED_SECONDS
    return True


def _lock(file: IO[bytes]) -> None:
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _prefix(place: Path) -> str:
    return f".{place.name}."


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _usual_mode() -> int:
    """Permissions that ``open`` gives to a new file; those of a temporary file are narrower."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
