"""Every kernel as a real device's compiler sees it: it compiles, fits, keeps its registers and contracts nothing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from support.cuda_compiler import ARCHITECTURES, PTX_OF, CompilerError, device_compiler, ptx, resources
from support.cuda_modules import TABLE, Asked, name_of, oldest_of, others, rows, usual
from support.examples import THOROUGH

from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.device.joint_kernels import SUFFIX, joint_source

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
PLANTED = (Path(__file__).parent / "planted.cu").read_text()
REGISTERS, SHARED = 65_536, 48 << 10  # of a block, before it asks for more
SPILLS = {"list_histogram": 32, "evaluate_level": 32}  # bytes, for the sake of more blocks at a time; others: none

OF_ROUND = {
    "gradients/pointwise.cu", "growth/cluster_tree.cu", "growth/partition.cu", "histograms/histogram.cu",
    "leaves/leaves.cu", "sampling/noise.cu", "splits/split.cu", "splits/symmetric.cu",
}  # fmt: skip

# ATOMS.ADD is the only one that a multiprocessor does by itself on 32-bit integers; others are loops in software.
_SPINNING = re.compile(r"\b(?:atom|red)(?:\.\w+)*?\.shared(?:::cta)?(?:\.\w+)*\.(?:f16x2|f32|f64|[usb]64)\b")
_FLOATING = re.compile(r"\b(?:atom|red)(?:\.\w+)*\.(?:f16x2|f32|f64)\b")
_FUSED = re.compile(r"\bfma\.")


def threads_of(text: str) -> dict[str, int]:
    """The largest block of each kernel: the bound that it was compiled for."""
    found = {}
    for part in re.split(r"\.entry\s+", text)[1:]:
        bound = re.search(r"\.maxntid\s+(\d+)", part.split("{")[0])
        found[re.match(r"\w+", part)[0]] = int(bound[1]) if bound else 0
    return found


def check_resources(text: str, functions: tuple[DeviceFunction, ...], architecture: int) -> None:
    own = PTX_OF if functions else architecture  # whose PTX: NVRTC says both at once, and to link again takes longer
    threads, name = threads_of(ptx(text, functions=functions, architecture=own)), name_of(text)
    for kernel, taken in resources(text, architecture, functions).items():
        assert threads[kernel] > 0, f"{name}: {kernel} says nothing of its largest block: __launch_bounds__"
        allocated = -(-taken.registers // 8) * 8 * threads[kernel]
        assert allocated <= REGISTERS, f"{name}: {kernel} takes {allocated} registers"
        assert taken.shared <= SHARED, f"{name}: {kernel} takes {taken.shared} bytes of shared memory"
        assert taken.spills <= SPILLS.get(kernel, 0), f"{name}: {kernel} spills {taken.spills} bytes"


def check_ptx(text: str, functions: tuple[DeviceFunction, ...]) -> None:
    made, name = ptx(text, functions=functions), name_of(text)
    assert not _FUSED.search(made), f"{name}: a product is fused with a sum"
    assert not _SPINNING.findall(made), f"{name}: an atomic operation is a loop"
    assert not _FLOATING.findall(made), f"{name}: a sum of floats depends on who comes first"


def in_turn(architecture: int) -> dict[str, list[Asked]]:
    """The usual modules of an architecture: those of "every file", and "the others".

    All for sm_90, and for each of the other architectures a first variant of every file, and every third of the rest.
    So each module is compiled for two architectures at least, and each file for all of them.
    """
    found: dict[str, list[Asked]] = {"every file": [], "the others": []}
    turn = [one for one in ARCHITECTURES if one != PTX_OF].index(architecture) if architecture != PTX_OF else 0
    variants: Counter[str] = Counter()
    for asked in sorted(usual(), key=lambda asked: asked[0]):
        file = name_of(asked[0])[0]
        now = architecture == PTX_OF or variants[file] == 0 or variants[file] % 3 == turn
        variants[file] += 1
        if architecture >= oldest_of(asked[0]):
            found["every file" if now else "the others"].append(asked)
    return found


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("architecture", "which"),
    [
        *((one, "every file") for one in ARCHITECTURES),
        *(pytest.param(one, "the others", marks=THOROUGH) for one in ARCHITECTURES if one != PTX_OF),
    ],
)
def test_resources(architecture, which):
    for text, functions in in_turn(architecture)[which]:
        check_resources(text, functions, architecture)


def test_no_text_differs_by_architecture():
    assert not [path for path in KERNELS.glob("*/*.cu*") if "__CUDA_ARCH" in path.read_text()]


@pytest.mark.slow
def test_no_product_is_fused_and_no_atomic_operation_spins():
    for text, functions in usual():
        check_ptx(text, functions)


@pytest.mark.slow
@pytest.mark.long
def test_every_loss_and_every_shape_of_a_tree():
    for text, functions in others():
        check_ptx(text, functions)
        check_resources(text, functions, 90)


@pytest.mark.slow
def test_joint_kernels_keep_nearly_all_arguments_in_registers():
    """The kernels of a round. They spill at most 64 bytes, where the kernels that they call spill none."""
    of_round = {name_of(text)[0]: (text, functions) for text, functions in usual() if name_of(text)[0] in OF_ROUND}
    assert of_round.keys() == OF_ROUND
    for file, (text, functions) in of_round.items():
        for kernel, taken in resources(joint_source(text), PTX_OF, functions).items():
            assert kernel.endswith(SUFFIX)
            assert taken.spills <= 64, f"{file}: {kernel} spills {taken.spills} bytes"


@pytest.mark.slow
def test_every_file_is_reached():
    assert {name_of(text)[0] for text, _ in usual()} == {
        path.relative_to(KERNELS).as_posix() for path in KERNELS.glob("*/*.cu")
    }


@pytest.mark.slow
def test_the_table_names_every_kernel():
    """``cd tests && python -m support.cuda_modules`` writes it anew."""
    device_compiler()
    written = re.findall(r"^\| (\S+\.cu) \| (.*?) ?\| `(\w+)` \|", TABLE.read_text(), re.MULTILINE)
    assert {(file, variant.strip(), kernel) for file, variant, kernel in written} == set(rows((PTX_OF,)))


# Tests of the tests


def test_a_fused_product_is_seen():
    assert not _FUSED.search(ptx(PLANTED))
    assert _FUSED.search(ptx(PLANTED, ("-std=c++17",)))  # what a compiler does when it is not told


def test_a_spinning_atomic_is_seen():
    assert len(_SPINNING.findall(ptx(PLANTED))) == 1
    assert len(_FLOATING.findall(ptx(PLANTED))) == 1


def test_a_spill_is_seen():
    """64 products that are all alive at once, in the 32 registers of a thread that shares with 2,047 others."""
    loads = "".join(f"const float v{i} = x[{i} * n + threadIdx.x];" for i in range(64))
    stores = "".join(f"x[{i} * n + threadIdx.x] = v{i} * v{(7 * i + 5) % 64};" for i in range(64))
    text = f'extern "C" __global__ void __launch_bounds__(1024, 2) full(float *x, int n) {{ {loads} {stores} }}'
    assert resources(text, 90)["full"].spills > 0


def test_an_error_names_the_file_and_the_line():
    with pytest.raises(CompilerError, match=r"planted\.cuh\(2\): error: identifier .missing"):
        ptx('#line 1 "planted.cuh"\n\nextern "C" __global__ void k(int *x) { x = missing; }\n')
