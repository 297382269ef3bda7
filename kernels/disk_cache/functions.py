"""Compiled functions in the folder: saved under a lock, and found again by what they close over."""

import pickle
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from types import CellType, FunctionType

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


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


def name_by_closure(function):
    """Give a function that closes over others, or over constants, a name of its own.

    Machine code that several processes kept is linked by the names and the types of functions. Of two functions of one
    name, one would be called in place of both, and a loss would have the derivatives of another.
    """
    if function.__closure__:
        content = pickle.dumps(_taken_apart(_closed_over(function)), protocol=4)
        function.__qualname__ += f"_{sha256(content).hexdigest()[:12]}"


def know_in_every_process(compiled):
    """Have a compiled function that closes over others found on disk by other processes.

    numba's key of a function holds its closure pickled, and in it each compiled function with a number that every
    process draws anew. Here the key has their code and what they close over themselves.
    """
    function = compiled.py_func
    if function.__closure__ is not None and hasattr(compiled._cache, "_py_func"):
        compiled._cache._py_func = FunctionType(
            function.__code__, function.__globals__, closure=tuple(map(CellType, _taken_apart(_closed_over(function))))
        )


def _closed_over(function):
    return tuple(cell.cell_contents for cell in function.__closure__ or ())


def _taken_apart(value):
    if isinstance(value, tuple):
        return tuple(map(_taken_apart, value))
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType):
        return value
    return function.__module__, function.__qualname__, function.__code__.co_code, _taken_apart(_closed_over(function))


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
