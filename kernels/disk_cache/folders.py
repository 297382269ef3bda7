"""Folders of compiled kernels: the one that this process uses, and the removal of other versions' ones."""

import os
import re
import shutil
import stat
import sys
import time
import warnings
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile, gettempdir, mkdtemp

import numba
from platformdirs import user_cache_path

from gpuboost.kernels.disk_cache import prebuilt

UNUSED_DAYS = 30  # after which the kernels of another version are removed
_DAY = 86_400.0
_NAME = re.compile(r"kernels-[0-9a-f]{16}(-\w+)*")


def cache_folders():
    """Folders that may hold the compiled kernels of this source text, the preferred one first.

    In GPUBOOST_CACHE_DIR; NUMBA_CACHE_DIR itself; in the user's cache folder; in the temporary folder.

    Not beside the sources, numba's own choice: what lies there is left behind when the package is uninstalled. And
    numba looks at a kernel's own file only, while a kernel holds the code of those it calls: so the folder's name is
    a hash of all of them.
    """
    name = folder_name()
    folders = [Path(named) / name] if (named := os.environ.get("GPUBOOST_CACHE_DIR")) else []
    if numba.config.CACHE_DIR:
        folders.append(Path(numba.config.CACHE_DIR))
    user = user_cache_path("gpuboost", appauthor=False)
    if user.is_absolute():  # a process may have no home
        folders.append(user / name)
    if temporary := _temporary_folder():
        folders.append(temporary / name)
    return folders


def folder_name():
    """The name of the folder of this source text's kernels."""
    return f"kernels-{_digest()}"


def _temporary_folder():
    """The user's own folder among the temporary files; None if there is none, or if others could write into it.

    Machine code is loaded from there: a folder that another user made is not trusted.
    """
    try:
        folder = Path(gettempdir()) / f"gpuboost-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o022):
        return None
    return folder if stat.S_ISDIR(about.st_mode) else None


@cache  # asked eight times by a first fit, and two milliseconds each time
def _digest():
    folder = Path(__file__).parent.parent
    texts = sorted((path.relative_to(folder).as_posix(), path.read_bytes()) for path in folder.glob("*/*.py"))
    return sha256(b"".join(name.encode() + text for name, text in texts)).hexdigest()[:16]


def note(what):
    """Remember in the folder, if there is one, that this version's kernels for ``what`` are there."""
    if folder := usable_folder():
        (Path(folder) / noted_name(what)).touch()


def is_noted(what):
    """True if they were noted. Only a hint: another processor needs its own."""
    folder = usable_folder()
    return bool(folder) and (Path(folder) / noted_name(what)).exists()


def noted_name(what):
    """The name of the file that notes it. Two environments share the folder, but not what is in it."""
    return f"{what}-{_environment()}"


@cache
def _environment():
    """A hash of all by which numba finds a kernel again but the processor: text, place, numba and Python."""
    found_by = _digest(), str(Path(__file__).parent), numba.__version__, sys.implementation.cache_tag
    return sha256("\0".join(found_by).encode()).hexdigest()[:16]


def usable_folder():
    """The first of the folders in which files can be written, as text; "" if there is none.

    Its time of modification tells when it was last used. A process that finds none of its own, as a version's first
    one does, removes those of other versions that have not been used for long. Kernels in a preferred folder that is
    read-only, such as one that was filled when a container's image was built, are copied, and so are installed ones.
    """
    filled = None
    for folder in cache_folders():
        is_new = not _is_there(folder)
        if is_new:
            _fill(folder, filled)
        if not _can_write(folder):
            filled = filled or (None if is_new else folder)
            continue
        if str(folder) != numba.config.CACHE_DIR:
            _mark_used(folder)
            if is_new:
                remove_unused(folder)
        return str(folder)
    return ""


def warn_of_replacement(folder):
    """Warn if no folder could be written in (``folder`` is empty), or if it is not in GPUBOOST_CACHE_DIR as asked."""
    named = os.environ.get("GPUBOOST_CACHE_DIR")
    if not folder:
        tried = ", ".join(map(repr, map(str, cache_folders()))) or "the user's cache folder and the temporary folder"
        warnings.warn(
            f"gpuboost compiles its kernels in every process, which takes about ten seconds: nothing can be written "
            f"in {tried}. Name a folder that can be written in the environment variable GPUBOOST_CACHE_DIR.",
            stacklevel=2,
        )
    elif named and Path(named) != Path(folder).parent:
        warnings.warn(
            f"GPUBOOST_CACHE_DIR: nothing can be written in {named!r}; compiled kernels are in {folder!r}.",
            stacklevel=2,
        )


def _is_there(folder):
    try:
        return folder.is_dir()
    except OSError:
        return False


def _can_write(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _fill(folder, filled):
    """Make a new folder of the kernels in ``filled``, another one, or of installed ones, if there are any.

    All at once: another process never sees a half of it, nor saves code of its own into it meanwhile, under a file name
    that a copied index gives to other code. A kernel that is not there is compiled.
    """
    installed = None if filled is not None else prebuilt.installed(folder_name())
    if filled is None and installed is None:
        return
    with suppress(OSError, shutil.Error):
        folder.parent.mkdir(parents=True, exist_ok=True)
        room = Path(mkdtemp(dir=folder.parent, prefix=f"{folder.name}-filling_"))
        try:
            if installed is not None:
                prebuilt.copy(installed, room / "kernels", noted_name)
            else:
                shutil.copytree(filled, room / "kernels")
            (room / "kernels").rename(folder)
        finally:
            shutil.rmtree(room, ignore_errors=True)


def remove_unused(own):
    """Remove the folders beside ``own`` that hold kernels of other versions, unused for UNUSED_DAYS.

    Each is renamed before it is emptied, so that no process ever sees half of one; what is left of one if this process
    is killed meanwhile, the next one removes. A process that has been running all the time finds nothing where its
    folder was: numba then compiles, and makes the folder anew.
    """
    now = time.time()
    for folder in _folders_beside(own):
        try:
            if folder.is_symlink() or not folder.is_dir() or now - folder.stat().st_mtime < UNUSED_DAYS * _DAY:
                continue
            shutil.rmtree(folder.rename(f"{folder}-removed"), ignore_errors=True)
        except OSError:  # another process was quicker, or it is not ours to remove
            continue


def _folders_beside(kernel_folder):
    try:
        return [
            folder
            for folder in kernel_folder.parent.iterdir()
            if folder != kernel_folder and _NAME.fullmatch(folder.name)
        ]
    except OSError:
        return []


def _mark_used(folder):
    try:
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)
    except OSError:  # read-only: then it may be removed while it is in use, and is made anew
        return
