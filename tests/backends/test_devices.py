"""What there is, and why the rest is not usable. GPUs are those of an imitated ``cupy`` namespace."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.cuda.device import gpus
from gpuboost.backends.cuda.device.gpus import driver_version, gpu_of, use
from gpuboost.backends.devices import AUTO_CELLS, Device, choose, usable_threads
from gpuboost.training.parameters.threads import threads_of

H100, OLD = (b"NVIDIA H100", 80 << 30, 9, 0), (b"GeForce GTX 1080", 8 << 30, 6, 1)


def cupy(*cards, driver=13_010):
    """What ``import cupy`` gives on a machine with these cards."""

    def properties(index):
        name, memory, major, minor = cards[index]
        return {"name": name, "totalGlobalMem": memory, "major": major, "minor": minor}

    class Card(nullcontext):
        def __init__(self, index):
            super().__init__()
            self.compute_capability = "{2}{3}".format(*cards[index])

    calls = SimpleNamespace(
        driverGetVersion=lambda: driver,
        runtimeGetVersion=lambda: 13_000,
        getDeviceCount=lambda: len(cards),
        getDeviceProperties=properties,
        pointerGetAttributes=lambda pointer: SimpleNamespace(device=pointer % 8),
    )
    cuda = SimpleNamespace(runtime=calls, is_available=lambda: bool(cards), Device=Card)
    return SimpleNamespace(cuda=cuda, RawModule=lambda **_: SimpleNamespace(get_function=lambda name: None))


def test_the_cpu_comes_first_and_every_gpu_says_what_it_is() -> None:
    with use(cupy(H100, OLD)):
        cpu, good, old = gb.devices()
    assert (cpu.name, cpu.kind, cpu.usable, cpu.why_not) == ("cpu", "cpu", True, "")
    assert f"numba {version('numba')}" in cpu.description
    about = "NVIDIA H100, 80.0 GiB, compute capability 9.0"
    assert good == Device("cuda:0", "cuda", True, about, "", 80 << 30)
    assert (old.name, old.usable) == ("cuda:1", False)
    assert "compute capability is 6.1; 7.0 is needed" in old.why_not


def test_without_a_gpu_one_line_says_why() -> None:
    with use(cupy()):
        _, cuda = gb.devices()
    assert (cuda.name, cuda.usable, cuda.memory) == ("cuda", False, None)
    assert "the driver lists no GPU" in cuda.why_not
    with use(cupy(driver=0)):
        assert "no NVIDIA driver was found" in gb.devices()[1].why_not


def test_a_gpu_is_taken_if_it_was_named() -> None:
    with use(cupy(OLD, H100)):
        assert choose("cuda").name == choose("cuda:1").name == "cuda:1"
        assert "first usable GPU for device='cuda': NVIDIA H100" in choose("cuda").why
        assert choose("cuda:1").why == ("asked for by device='cuda:1': NVIDIA H100, 80.0 GiB, compute capability 9.0.")
        assert choose("cpu").name == "cpu"


def test_auto_takes_a_gpu_for_large_data_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with use(cupy(H100)):
        assert choose("auto", AUTO_CELLS).name == "cuda:0"
        assert f"{AUTO_CELLS:,} values" in choose("auto", AUTO_CELLS).why
        small = choose("auto", AUTO_CELLS - 1)
        assert small.name == "cpu"
        assert f"{AUTO_CELLS - 1:,} values are fewer than {AUTO_CELLS:,}" in small.why
        assert choose("auto").name == "cpu"
        monkeypatch.setenv("GPUBOOST_AUTO_CELLS", "10")
        assert choose("auto", 10).name == "cuda:0"
        assert choose("auto", 9).name == "cpu"


def test_auto_says_why_it_took_the_cpu() -> None:
    with use(cupy(OLD)):
        why = choose("auto", AUTO_CELLS).why
    assert why.startswith("device='auto' took the CPU; cuda:0 (GeForce GTX 1080, 8.0 GiB")
    assert why.endswith("7.0 is needed.")


def test_data_on_a_gpu_decide() -> None:
    with use(cupy(H100, H100)):
        for device in ("auto", "cuda", "cuda:1"):
            assert choose(device, 1, on="cuda:1").name == "cuda:1"
        for other in ("cpu", "cuda:0"):
            with pytest.raises(gb.DeviceError, match=f"X is on cuda:1, and device='{other}'.*X.get()"):
                choose(other, on="cuda:1")


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:12"])
def test_an_absent_device_is_not_replaced(device: str) -> None:
    for machine, words in ((cupy(), "lists no GPU"), (cupy(OLD), "7.0 is needed|of this process are cuda:0")):
        with use(machine), pytest.raises(gb.DeviceError, match=f"'{device}' is not usable; .*({words}).*device='cpu'"):
            choose(device)


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "CPU", "", None, 0, "cpu\n"])
def test_a_device_of_no_known_name_is_refused(device: object) -> None:
    with pytest.raises(gb.RecipeError, match="device: must be"):
        choose(device)


@pytest.mark.parametrize(
    ("driver", "installed", "visible", "words"),
    [
        (
            0,
            False,
            None,
            r"no NVIDIA driver was found, .*; nor is CuPy installed: .*gpuboosting\[cuda13\]",
        ),
        (0, True, None, r"no NVIDIA driver was found, which CUDA needs \(does nvidia-smi list the GPU\?\)$"),
        (13_010, False, None, r"for CUDA 13.1, but CuPy is not installed: pip install 'gpuboosting\[cuda13\]'$"),
        (12_040, False, None, r"for CUDA 12.4, but CuPy is not installed: pip install 'gpuboosting\[cuda12\]'$"),
        (11_080, False, None, r"for CUDA 11.8, .*: update the driver to 525 or newer, then pip install"),
        (13_010, True, "", r"^CUDA_VISIBLE_DEVICES='' hides every GPU from this process; unset it"),
        (13_010, True, "-1", r"^CUDA_VISIBLE_DEVICES='-1' hides every GPU"),
    ],
)
def test_what_to_install(
    monkeypatch: pytest.MonkeyPatch, driver: int, installed: bool, visible: str | None, words: str
) -> None:
    monkeypatch.setattr(gpus, "driver_version", lambda: driver)
    monkeypatch.setattr(gpus, "find_spec", lambda name: object() if installed else None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(gb.DeviceError, match=words):
        gpus.gpus()


def test_the_driver_is_asked_for_its_version() -> None:
    def ask(place) -> int:
        ctypes.cast(place, ctypes.POINTER(ctypes.c_int))[0] = 12_080
        return 0

    assert driver_version(lambda name: SimpleNamespace(cuDriverGetVersion=ask)) == 12_080
    assert driver_version(lambda name: SimpleNamespace(cuDriverGetVersion=lambda place: 3)) == 0

    def absent(name: str) -> None:
        raise OSError(name)

    assert driver_version(absent) == 0


def test_where_an_array_lives() -> None:
    with use(cupy(H100)):
        assert gpu_of(SimpleNamespace(__dlpack_device__=lambda: (2, 1))) == "cuda:1"
        assert gpu_of(SimpleNamespace(__dlpack_device__=lambda: (13, 3))) == "cuda:3"
        assert gpu_of(SimpleNamespace(__cuda_array_interface__={"data": (4098, False)})) == "cuda:2"
        assert gpu_of(SimpleNamespace(__cuda_array_interface__={"data": (0, False)})) == "cuda:0"
        for host in (np.zeros(3), [[1.0]], None, SimpleNamespace(__dlpack_device__=lambda: (1, 0))):
            assert gpu_of(host) is None


NO_CUPY = """
import sys
from importlib.machinery import ModuleSpec
class Installed:  # CuPy is there, but must not be imported
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name.split(".")[0] in ("cupy", "cupyx") else None
    def create_module(self, spec):
        raise AssertionError(spec.name + " was imported")
    def exec_module(self, module): ...
sys.meta_path.insert(0, Installed())
import numpy as np, gpuboost as gb
import os
os.environ["GPUBOOST_AUTO_CELLS"] = "1"
x = np.random.default_rng(0).normal(size=(60, 3))
for device in ("auto", "cpu"):
    model = gb.GradientBoostingClassifier(n_estimators=2, device=device).fit(x, x[:, 0] > 0)
    model.predict_proba(x)
gb.devices()
"""


@pytest.mark.slow
def test_without_a_driver_cupy_is_not_imported() -> None:
    if driver_version():
        pytest.skip("there is a driver here")
    done = subprocess.run([sys.executable, "-c", NO_CUPY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_threads_can_be_limited_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    most = usable_threads()
    assert most >= 1
    for text, expected in (("1", 1), (str(most + 5), most), ("0", most), ("many", most), ("", most)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert usable_threads() == expected


def test_n_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.training.parameters.threads.usable_threads", lambda: 8)
    assert [threads_of(n) for n in (None, -1, -2, -8, -20, 1, 12)] == [8, 8, 7, 1, 1, 1, 12]
