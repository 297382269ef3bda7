"""Why a GPU cannot be used: the exact reason, and what to install."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from gpuboost.backends.cuda.device import device
from gpuboost.errors import DeviceError


class Card(nullcontext):
    compute_capability = "90"


def cupy(driver=13010, runtime=13000, available=True, count=1, capability="90", compiles=None):
    """What ``import cupy`` gives on a machine like that."""

    def module(**text):
        def get_function(name):
            if compiles is not None:
                raise compiles

        return SimpleNamespace(get_function=get_function)

    card = Card()
    card.compute_capability = capability
    runtime_calls = SimpleNamespace(
        driverGetVersion=lambda: driver, runtimeGetVersion=lambda: runtime, getDeviceCount=lambda: count
    )
    cuda = SimpleNamespace(runtime=runtime_calls, is_available=lambda: available, Device=lambda index: card)
    return SimpleNamespace(cuda=cuda, RawModule=module)


def test_a_usable_device():
    assert device.why_not(cupy(), 0) == ""
    assert device.why_not(cupy(driver=13020, runtime=12090, count=2, capability="75"), 1) == ""


@pytest.mark.parametrize(
    ("machine", "index", "words"),
    [
        ({"driver": 0, "available": False}, 0, "no NVIDIA driver was found"),
        ({"driver": 12040, "available": False}, 0, r"driver is for CUDA 12.4 and this CuPy for CUDA 13.0: update the"),
        ({"available": False}, 0, "the driver lists no GPU.*CUDA_VISIBLE_DEVICES"),
        ({"count": 1}, 1, "there is 1 GPU: cuda:0$"),
        ({"count": 3}, 7, "there are 3 GPUs: cuda:0 to cuda:2$"),
        ({"capability": "61"}, 0, "its compute capability is 6.1; 7.0 is needed"),
        (
            {"compiles": RuntimeError("Failed to find CUDA headers.\nmore")},
            0,
            r"CuPy cannot compile for it \(Failed to find CUDA headers.\). pip install 'gpuboosting\[cuda13\]'",
        ),
        ({"compiles": RuntimeError()}, 0, r"CuPy cannot compile for it \(RuntimeError\(\)\)"),
    ],
)
def test_reasons(machine, index, words):
    assert re.search(words, device.why_not(cupy(**machine), index))


def test_the_error_names_the_device_and_the_way_out(monkeypatch):
    monkeypatch.setattr(device, "import_cupy", lambda: cupy(driver=0))
    with pytest.raises(DeviceError, match=r"^device: 'cuda:2' is not usable; no NVIDIA driver .*use device='cpu'.$"):
        device.cupy_runtime(2)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModuleNotFoundError("No module named 'cupy'", name="cupy"), r"CuPy, which is not installed. pip install"),
        (ModuleNotFoundError("No module named 'fastrlock'", name="fastrlock"), "CuPy does not start .*fastrlock"),
        (ImportError("libcudart.so.13"), "CuPy does not start .*libcudart.* Reinstall it"),
        (FileNotFoundError("/home/.cupy"), "CuPy does not start .*CUPY_CACHE_DIR"),
    ],
)
def test_a_cupy_that_does_not_start(monkeypatch, error, words):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "cupy":
                raise error

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(DeviceError, match=words):
        device.import_cupy()


def test_the_seam_imports_no_cupy():
    modules = "gpuboost.backends.cuda.device.runtime, gpuboost.backends.cuda.device.device"
    code = f"import sys, {modules}; print('cupy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
