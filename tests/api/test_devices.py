"""What there is, and why the rest is not usable."""

from __future__ import annotations

from importlib.metadata import version

import pytest

import gpuboost as gb
from gpuboost.api.parameters import threads
from gpuboost.backends.devices import choose, usable_threads


def test_the_cpu_is_always_usable_and_cuda_says_why_not() -> None:
    cpu, cuda = gb.devices()
    assert (cpu.name, cpu.kind, cpu.usable, cpu.why_not) == ("cpu", "cpu", True, "")
    assert f"numba {version('numba')}" in cpu.description
    assert not cuda.usable
    assert "no CUDA backend" in cuda.why_not


def test_auto_takes_the_cpu_and_says_why() -> None:
    assert choose("auto").name == choose("cpu").name == "cpu"
    assert "auto" in choose("auto").why


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:12"])
def test_an_absent_device_is_not_replaced(device: str) -> None:
    with pytest.raises(gb.DeviceError, match=f"{device}.*Use device='cpu'"):
        choose(device)


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "CPU", "", None, 0, "cpu\n"])
def test_a_device_of_no_known_name_is_refused(device: object) -> None:
    with pytest.raises(gb.RecipeError, match="device: must be"):
        choose(device)


def test_threads_can_be_limited_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    most = usable_threads()
    assert most >= 1
    for text, expected in (("1", 1), (str(most + 5), most), ("0", most), ("many", most), ("", most)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert usable_threads() == expected


def test_n_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.api.parameters.usable_threads", lambda: 8)
    assert [threads(n) for n in (None, -1, -2, -8, -20, 1, 12)] == [8, 8, 7, 1, 1, 1, 12]
