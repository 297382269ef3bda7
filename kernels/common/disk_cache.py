"""Disk cache of compiled kernels: its folder, and the removal of other versions' folders."""

import os
import re
import shutil
import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import numba

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

UNUSED_DAYS = 30  # after which the kernels of another version are removed
_DAY = 86_400.0
_NAME = re.compile(r"kernels-[0-9a-f]{16}(-removed)*")


def cache_folder():
    """Folder of compiled kernels: NUMBA_CACHE_DIR if it is set, else a folder of the user's for this source text.

    Not beside the sources, numba's own choice: what lies there is left behind when the package is uninstalled. And
    numba looks at a kernel's own file only, while a kernel holds the code of those it calls: so the folder's name is
    a hash of all of them.
    """
    if numba.config.CACHE_DIR:
        return Path(numba.config.CACHE_DIR)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuboost" / f"kernels-{_digest()}"


def _digest():
    folder = Path(__file__).parent.parent
    texts = sorted((path.relative_to(folder).as_posix(), path.read_bytes()) for path in folder.glob("*/*.py"))
    return sha256(b"".join(name.encode() + text for name, text in texts)).hexdigest()[:16]


def save_one_at_a_time(compiled):
    """Have a compiled function save its machine code under a lock that all processes of the folder share.

    numba chooses a free file name, writes it into the function's index and then writes the file, under no lock of its
    own. Two processes that save two signatures of one function at the same moment may choose the same name, and either
    signature would then find the other's code. Where files cannot be locked, it saves as numba does.
    """
    cache_file = getattr(compiled._cache, "_cache_file", None)
    if fcntl is None or cache_file is None:
        return
    save = cache_file.save

    def locked(key, data):
        with _lock(Path(cache_file._cache_path)):
            save(key, data)

    cache_file.save = locked


@contextmanager
def _lock(folder):
    try:
        file = (folder / "saving.lock").open("w")
    except OSError:  # numba then says that it cannot write, or has its own place
        yield
        return
    with file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def note(what):
    """Remember in the folder that this version's kernels for ``what`` are there."""
    (cache_folder() / f"{what}-{_digest()}").touch()


def is_noted(what):
    """True if they were noted. Only a hint: another processor, or another numba, needs its own."""
    return (cache_folder() / f"{what}-{_digest()}").exists()


def usable_folder():
    """The folder as text, or "" (numba then looks for another place) if nothing can be written there.

    Its time of modification tells when it was last used. A process that finds none of its own, as a version's first
    one does, removes those of other versions that have not been used for long.
    """
    try:
        folder = cache_folder()
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or a read-only one
        return ""
    if not numba.config.CACHE_DIR:
        _mark_used(folder)
        if is_new:
            remove_unused(folder)
    return str(folder)


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


def _folders_beside(own):
    try:
        return [folder for folder in own.parent.iterdir() if folder != own and _NAME.fullmatch(folder.name)]
    except OSError:
        return []


def _mark_used(folder):
    try:
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)
    except OSError:  # read-only: then it may be removed while it is in use, and is made anew
        return
