"""Modules with Python functions linked in: contracted operations, registers, instructions.

``cd tests && python -m support.linked_modules`` writes kernels/LINKED.md.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from support.cuda_compiler import ARCHITECTURES, Resources, compiler_versions, ptx, resources
from support.package_sizes import sizes

from gpuboost.backends.cuda import (
    control_variates,
    importance,
    leaves,
    line_search,
    random_shape,
    score_metrics,
    target,
    user_kernels,
)
from gpuboost.backends.cuda.codegen.formulas import (
    cross_entropy_formulas,
    density_formulas,
    formulas,
    list_formulas,
    probability_formulas,
    term_formulas,
)
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.codegen.linking import link
from gpuboost.backends.cuda.codegen.options import FLUSH, LINK, OPTIONS
from gpuboost.backends.cuda.codegen.row_functions import called_by
from gpuboost.backends.cuda.device.sources import source
from gpuboost.backends.cuda.prediction import answers
from gpuboost.backends.cuda.rankings import cross_entropy, ranking, smoothed_ranking
from gpuboost.backends.cuda.trees import arena, subsets
from gpuboost.losses import registry
from gpuboost.losses.custom import Custom
from gpuboost.losses.protocol import is_list_loss, is_on_host, is_smoothed, perturbs_labels
from gpuboost.types import Limits, NoiseScale, RowScore

TABLE = Path(__file__).resolve().parents[2] / "kernels" / "LINKED.md"
SHOWN = 90  # the architecture whose registers and instructions are listed
FUSED = re.compile(r"\bfma\.")


class Linked(NamedTuple):
    """A text of CUDA C and the functions that are linked with it."""

    of: str
    file: str
    text: str
    functions: tuple[DeviceFunction, ...]


def modules() -> Iterator[Linked]:
    """Every module with a loss of the library, with its random numbers and probabilities, or with a user's function."""
    for name in registry.NAMES:
        loss = registry.get(name, n_classes=3)
        if is_on_host(loss):
            continue
        if is_list_loss(loss):
            asked = list_formulas(loss)
            yield Linked(name, ranking.FILES[-1], source(*ranking.FILES, before=asked.text), asked.functions)
            if perturbs_labels(loss):
                softmax, files = cross_entropy_formulas(), cross_entropy.FILES
                text = source(*files, before=softmax.text)
                yield Linked(name, files[-1], text, (*softmax.functions, *called_by(*files)))
            if is_smoothed(loss):
                density = density_formulas()
                text = source(*smoothed_ranking.FILES, before=density.text)
                called = called_by(*smoothed_ranking.FILES)
                yield Linked(name, smoothed_ranking.FILES[-1], text, (*density.functions, *called))
            continue
        asked = formulas(loss)
        for files in (target._POINTWISE, line_search._SEARCH):
            yield Linked(name, files[-1], source(*files, before=asked.text), asked.functions)
    yield from of_the_library()
    softmax = probability_formulas()
    yield Linked("probabilities", score_metrics.OF_CLASSES[-1], source(*score_metrics.OF_CLASSES), softmax.functions)
    of_rows = answers.OF_PROBABILITIES
    yield Linked("probabilities", of_rows[-1], source(*of_rows), softmax.functions)
    terms = term_formulas().functions
    yield Linked("terms of metrics", score_metrics.OF_TERMS[-1], source(*score_metrics.OF_TERMS), terms)
    text, _, functions = user_kernels.factors_kernel()
    yield Linked("kept scores", "sampling/row_factors.py", text, functions)
    yield from _kernels_of_the_user(magnitude, magnitude)


def of_the_user(loss: Custom, score: RowScore, scale: NoiseScale) -> Iterator[Linked]:
    """Modules with functions of a user."""
    asked = formulas(loss)
    yield Linked(loss.name, target._POINTWISE[-1], source(*target._POINTWISE, before=asked.text), asked.functions)
    yield from _kernels_of_the_user(score, scale)


def _kernels_of_the_user(score: RowScore, scale: NoiseScale) -> Iterator[Linked]:
    for of, file, (text, _, functions) in (
        ("a user's score", "sampling/row_scores.py", user_kernels.scores_kernel(score)),
        ("a user's score", "sampling/row_draws.py", user_kernels.draws_kernel(score)),
        ("a user's noise", "sampling/row_noise.py", user_kernels.noise_kernel(scale)),
    ):
        yield Linked(of, file, text, functions)


def of_the_library() -> Iterator[Linked]:
    """Modules that draw random numbers or rows."""
    noisy = "#define CELLS 256\n#define COUNTS 0\n#define SETS 1\n#define DISTURBED 1\n"
    drawn = noisy.replace("DISTURBED", "EXTRA_TREES")
    search = arena.searching(Limits(2, random_strength=1.0))
    of_cuts = arena.searching(Limits(2, extra_trees=True))
    for files, before in (
        (target._DRAW, ""),
        (target._SAMPLE, ""),
        (target._NOISE, ""),
        (importance.FILES, ""),
        (control_variates.FILES, ""),
        (leaves._NOISY, "#define NOISY 1\n"),
        (random_shape._FILES, ""),
        (subsets._SUBSETS, ""),
        ((*search, *arena.SPLITS), noisy),
        ((*search, "splits/level.cuh", "splits/symmetric.cu"), noisy),
        ((*of_cuts, *arena.SPLITS), drawn),
        ((*of_cuts, "splits/level.cuh", "splits/symmetric.cu"), drawn),
    ):
        yield Linked("random numbers", files[-1], source(*files, before=before), called_by(*files))


def magnitude(g: float, h: float) -> float:
    """The score and the noise of the last lines of the table."""
    return abs(g) + h


def fused(module: Linked, architecture: int) -> int:
    """Number of contracted operations in the linked PTX."""
    return len(FUSED.findall(ptx(module.text, functions=module.functions, architecture=architecture)))


def instructions(cubin: bytes) -> dict[str, int]:
    """Number of machine instructions of each kernel, without padding; empty without nvdisasm."""
    program = _nvdisasm()
    if program is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.cubin"
        path.write_bytes(cubin)
        text = subprocess.run([program, "-c", str(path)], capture_output=True, text=True, check=True).stdout
    counts: dict[str, int] = {}
    kernel = ""
    for line in text.splitlines():
        if begun := re.match(r"\s*\.text\.(\w+):", line):
            kernel = begun[1]
            counts[kernel] = 0
        elif kernel and re.match(r"\s+/\*[0-9a-f]{4,}\*/\s", line) and not re.search(r"\bNOP\b", line):
            counts[kernel] += 1
    return counts


def _nvdisasm() -> str | None:
    """nvdisasm of the wheel nvidia-cuda-nvdisasm, or of a toolkit."""
    for package in ("nvidia.cu13", "nvidia"):
        try:
            spec = find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for path in (Path(folder) / "bin" / "nvdisasm", Path(folder) / "cuda_nvdisasm" / "bin" / "nvdisasm"):
                if path.exists():
                    return str(path)
    return shutil.which("nvdisasm")


def table() -> str:
    """What the linker makes of every module, as Markdown."""
    on = " | ".join(f"sm_{architecture}" for architecture in ARCHITECTURES)
    lines = [
        "# Modules with Python functions linked in",
        "",
        f"By {', '.join(compiler_versions())}: NVRTC with `{' '.join((*OPTIONS, FLUSH, '-dlto'))}`, nvJitLink with",
        f"`{' '.join(LINK)}`. Columns: contracted operations (`fma`) in the linked PTX of the whole module for each",
        f"architecture; registers of a thread, bytes spilled, machine instructions of a kernel on sm_{SHOWN}. These",
        "contain the fused operations inside the correctly rounded quotient and root. Written by",
        "`cd tests && python -m support.linked_modules`; `tests/cuda/test_linking.py` holds the zeros.",
        "",
        f"| formulas of | module | {on} | kernel | registers | spilled | instructions |",
        f"|---|---|{'--:|' * len(ARCHITECTURES)}---|--:|--:|--:|",
    ]
    for module in modules():
        zeros = " | ".join(str(fused(module, architecture)) for architecture in ARCHITECTURES)
        counts = instructions(link(module.text, module.functions, SHOWN)[0])
        for kernel, taken in sorted(resources(module.text, SHOWN, module.functions).items()):
            lines.append(f"| {module.of} | {module.file} | {zeros} | {_row(kernel, taken, counts)} |")
    weights = sizes()
    lines += [
        "",
        f"## Weight: {sum(weights.values()):.0f} MB",
        "",
        "Installed files of what numba-cuda brings beside the packages that gpuboost, CuPy and NVRTC need in any case.",
        "",
        "| package | MB |",
        "|---|--:|",
        *(f"| {name} | {megabytes:.1f} |" for name, megabytes in weights.items()),
    ]
    return "\n".join(lines) + "\n"


def _row(kernel: str, taken: Resources, counts: dict[str, int]) -> str:
    return f"`{kernel}` | {taken.registers} | {taken.spills} | {counts.get(kernel, 0):,}"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
