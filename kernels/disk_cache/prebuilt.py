"""Kernels that were compiled on another machine, and installed as a package.

``gpuboost warmup --wheel`` makes the package: the folder of compiled kernels, and the processor that they are for. A
process that finds no folder of kernels of its own begins with a copy of it, if this processor can run them.
"""

import importlib.util
import json
import shutil
from contextlib import suppress
from pathlib import Path

import llvmlite.binding as llvm
from numba.core.caching import UserProvidedCacheLocator

PACKAGE = "gpuboost_kernels"
ABOUT = "target.json"  # in the folder: {"target": [triple, processor, features], "requires": [feature, ...]}

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
PROCESSORS = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4, "generic": ()}
"""Names of LLVM for families of processors -> the features that a processor of the family has; "generic": the least"""


def installed(name):
    """The folder ``name`` of the installed package; None if it has no such kernels, or not for this processor."""
    with suppress(ImportError, ValueError):  # a package of that name that is something else
        spec = importlib.util.find_spec(PACKAGE)
        for place in (spec and spec.submodule_search_locations) or ():
            folder = Path(place) / name
            if (about := _about(folder)) is not None and _is_host(about):
                return folder
    return None


def copy(source, destination, noted_name):
    """Copy an installed folder, whose groups of kernels and notes have plain names, to where they are looked for."""
    destination.mkdir()
    for path in source.iterdir():
        if path.is_dir():
            shutil.copytree(path, destination / subfolder(path.name))
        else:
            shutil.copy2(path, destination / (path.name if path.suffix else noted_name(path.name)))


def subfolder(group):
    """numba's name for the folder of the kernels of a folder of sources: it has a hash of where that is."""
    return UserProvidedCacheLocator.get_suitable_cache_subpath(str(Path(__file__).parent.parent / group / "any.py"))


def target_of(folder):
    """(triple, processor, features) of the installed kernels that a folder began with; None if it began empty."""
    about = _about(Path(folder)) if folder else None
    return None if about is None else tuple(about["target"])


def load_also(compiled, target):
    """Have a compiled function load code for ``target`` where there is none for this very processor."""
    cache_file = getattr(compiled._cache, "_cache_file", None)
    if cache_file is None:
        return
    load = cache_file.load

    def load_either(key):
        signature, _, content = key
        overload = load(key)
        return load((signature, target, content)) if overload is None else overload

    cache_file.load = load_either


def _about(folder):
    try:
        return json.loads((folder / ABOUT).read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _is_host(about):
    return about["target"][0] == llvm.get_process_triple() and _has(about["requires"])


def _has(features):
    """True if this processor has all of the features."""
    host_features = llvm.get_host_cpu_features()
    return all(host_features.get(name, False) for name in features)
