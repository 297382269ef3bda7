"""X on a device: what the host may ask of it, on the emulated one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from emulator import emulated_runtime
from support.examples import daily

from gpuboost.backends.cuda.inputs.matrix import C_TYPES, CudaMatrix
from gpuboost.errors import InputError
from gpuboost.training.checkpoint import fingerprint_beside_values
from gpuboost.types import DeviceMatrix


@pytest.fixture(params=["forward", "random"])
def runtime(request):
    return emulated_runtime(order=request.param)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_come_back_bit_by_bit(runtime, rng, dtype):
    host = rng.normal(size=(300, 7)).astype(dtype)
    host[3, 2], host[5, 0] = np.nan, np.finfo(dtype).smallest_subnormal
    matrix = CudaMatrix.of(runtime, runtime.upload(host))
    assert isinstance(matrix, DeviceMatrix)
    assert (matrix.shape, matrix.dtype) == (host.shape, dtype)
    rows = rng.integers(0, 300, 1_000)
    for seen, expected in (
        (matrix.host_rows(None), host),
        (matrix.host_rows(rows), host[rows]),
        (matrix[rows].host_rows(None), host[rows]),
        (matrix[host[:, 1] > 0].host_rows(None), host[host[:, 1] > 0]),
    ):
        assert seen.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_fetched_and_replaced(runtime, rng, dtype):
    host = rng.normal(size=(700, 5)).astype(dtype)
    host[3, 2] = np.nan
    matrix = CudaMatrix.of(runtime, runtime.upload(host))
    assert matrix.host_column(2).tobytes() == host[:, 2].tobytes()
    new = {0: rng.integers(0, 9, 700).astype(np.float64), 4: np.where(rng.random(700) < 0.5, np.nan, 3.0)}
    expected = host.copy()
    for f, values in new.items():
        expected[:, f] = values
    assert matrix.with_columns(new).host_rows(None).tobytes() == expected.tobytes()
    assert matrix.host_rows(None).tobytes() == host.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_infinity_is_found(runtime, rng, dtype):
    host = rng.normal(size=(2_000, 3)).astype(dtype)
    host[0, 0], host[1, 1], host[2, 2] = np.nan, np.finfo(dtype).max, -0.0
    assert CudaMatrix.of(runtime, runtime.upload(host)).first_infinite() is None
    host[1_999, 0], host[700, 2], host[701, 0] = np.inf, -np.inf, np.inf
    assert CudaMatrix.of(runtime, runtime.upload(host)).first_infinite() == (700, 2)


@pytest.mark.parametrize("kind", daily([kind for kind in C_TYPES if kind[0] != "f"], 3))
def test_whole_numbers_become_what_numpy_makes_of_them(runtime, rng, kind):
    dtype = np.dtype(kind if kind != "b1" else np.bool_)
    host = rng.integers(0, 2, (40, 3)).astype(dtype)
    if dtype != np.bool_:
        host[0], host[1] = np.iinfo(dtype).max, np.iinfo(dtype).min
    matrix = CudaMatrix.of(runtime, runtime.upload(host))
    expected = host.astype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)
    assert matrix.dtype == expected.dtype
    assert matrix.host_rows(None).tobytes() == expected.tobytes()


def test_it_is_taken_for_an_array_of_the_device(runtime, rng):
    host = rng.normal(size=(20, 3))
    matrix = CudaMatrix.of(runtime, runtime.upload(host))
    again = runtime.as_device_array(matrix)
    assert runtime.download(again).tobytes() == host.tobytes()
    other = SimpleNamespace(__cuda_array_interface__=matrix.__cuda_array_interface__)
    assert CudaMatrix.of(runtime, other).host_rows(None).tobytes() == host.tobytes()


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (np.zeros(5), "rows and features.*shape \\(5,\\)"),
        (np.zeros((0, 3)), "at least one of each"),
        (np.zeros((4, 2), np.complex128), "got complex128"),
        (np.zeros((4, 2), np.float16), "got float16. Convert it: X.astype"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(runtime, host, words):
    with pytest.raises(InputError, match=words):
        CudaMatrix.of(runtime, runtime.upload(host))


def test_a_checkpoint_has_the_checksum_of_the_same_rows_on_the_host(runtime, rng):
    host = rng.normal(size=(300, 7)).astype(np.float32)
    plain = (300, 7, 1)
    there = fingerprint_beside_values(plain, CudaMatrix.of(runtime, runtime.upload(host)), threads=2)
    assert there == fingerprint_beside_values(plain, host) != plain
