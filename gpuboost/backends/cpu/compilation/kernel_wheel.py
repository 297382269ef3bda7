"""A wheel of compiled kernels: ``gpuboost warmup --wheel`` compiles for a family of processors and packs the result.

Where it is installed beside the library, the first fit on a machine compiles nothing. It serves one version of the
library, of Python and of numba, and one operating system.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpuboost._version import __version__
from gpuboost.errors import InputError
from gpuboost.kernels.disk_cache import prebuilt
from gpuboost.kernels.disk_cache.folders import folder_name

DISTRIBUTION = "gpuboosting_kernels"


def build(destination: Path, kinds: Sequence[str], processor: str) -> Path:
    """Compile in a process of its own, which prints what it compiles, and write the wheel.

    destination: a folder, made if it is not there. kinds: as of ``gpuboost.warm_up``, all if empty.
    processor: a family in ``prebuilt.PROCESSORS``, or "host".

    Raises:
        InputError: if the family is unknown, or LLVM or this machine cannot compile and run code for it.
        CalledProcessError: if the compilation fails, after its own message.
    """
    environment, requires = _processor(processor)
    destination.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        environment = os.environ | {"GPUBOOST_CACHE_DIR": scratch} | environment
        environment.pop("NUMBA_CACHE_DIR", None)
        asked = [sys.executable, "-c", f"from {__name__} import print_target; print_target()"]
        target = subprocess.run(asked, env=environment, check=True, capture_output=True, text=True).stdout
        subprocess.run([sys.executable, "-m", "gpuboost", "warmup", *kinds], env=environment, check=True)
        about = {"target": json.loads(target), "requires": requires}
        return _write(destination, Path(scratch) / folder_name(), about)


def _processor(name: str) -> tuple[dict[str, str], list[str]]:
    """Environment variables with which numba compiles for a family of processors, and the features that it needs."""
    features = prebuilt.llvm.get_host_cpu_features()
    if name == "host":
        return {}, sorted(feature for feature, has in features.items() if has)
    if name not in prebuilt.PROCESSORS:
        known = ", ".join(["host", *prebuilt.PROCESSORS])
        raise InputError(f"--cpu: must be one of {known}; got {name!r}.")
    requires = prebuilt.PROCESSORS[name]
    missing = [feature for feature in requires if not features.get(feature, False)]
    if missing:
        raise InputError(
            f"--cpu: this machine cannot run code for {name!r}: its processor, {prebuilt.llvm.get_host_cpu_name()}, "
            f"has no {missing[0]}. Use 'host' or 'generic'."
        )
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""}, list(requires)


def print_target() -> None:
    """Print (triple, processor, features) that numba compiles for in this process, as JSON."""
    from numba.core.registry import cpu_target

    print(json.dumps(cpu_target.target_context.codegen().magic_tuple()))


def _write(destination: Path, compiled: Path, about: dict[str, Any]) -> Path:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    wheel = destination / f"{DISTRIBUTION}-{__version__}-{tag}-{tag}-{system}.whl"
    files = dict(_files(compiled, about))
    information = f"{DISTRIBUTION}-{__version__}.dist-info"
    files[f"{information}/METADATA"] = _metadata().encode()
    lines = ["Wheel-Version: 1.0", "Generator: gpuboost", "Root-Is-Purelib: false", f"Tag: {tag}-{tag}-{system}", ""]
    files[f"{information}/WHEEL"] = "\n".join(lines).encode()
    record = [f"{name},sha256={_hash(content)},{len(content)}" for name, content in files.items()]
    files[f"{information}/RECORD"] = "\n".join([*record, f"{information}/RECORD,,", ""]).encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return wheel


def _files(compiled: Path, about: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Names in the wheel, and contents: groups of kernels and notes lack the hash of where they were made."""
    place = f"{prebuilt.PACKAGE}/{compiled.name}"
    files = [
        (f"{prebuilt.PACKAGE}/__init__.py", b'"""Compiled kernels of gpuboost."""\n'),
        (f"{place}/{prebuilt.ABOUT}", json.dumps(about).encode()),
    ]
    for path in sorted(compiled.rglob("*")):
        if path.is_file() and path.suffix in ("", ".nbi", ".nbc"):
            *folders, name = path.relative_to(compiled).parts
            inside = [folder.rpartition("_")[0] for folder in folders]
            plain = name if path.suffix else name.rpartition("-")[0]
            files.append(("/".join([place, *inside, plain]), path.read_bytes()))
    return files


def _metadata() -> str:
    lines = (
        "Metadata-Version: 2.1",
        f"Name: {DISTRIBUTION.replace('_', '-')}",
        f"Version: {__version__}",
        "Summary: Compiled CPU kernels of gpuboosting, so that the first fit on a machine compiles nothing",
        f"Requires-Dist: gpuboosting=={__version__}",
        f"Requires-Dist: numba=={version('numba')}",
    )
    return "\n".join((*lines, ""))


def _hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
