"""Streams: of the runtime, and of the emulated device, which lets a missing event show."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from emulator import FakeCudaError, FakeCupy, emulated_runtime, require_compiler

from gpuboost.backends.cuda.device.runtime import CupyRuntime

ADD = 'extern "C" __global__ void add(float *x, float v, int n) { if (threadIdx.x < n) x[threadIdx.x] += v; }'
F32, I32 = np.float32, np.int32


def add(runtime, array, value):
    runtime.kernel(ADD, "add")((1,), (32,), (array, F32(value), I32(array.shape[0])))


def pair(deferred=True):
    """Two streams of one device."""
    require_compiler()
    first = CupyRuntime(FakeCupy(deferred=deferred))
    return first, first.spawn()


def test_a_stream_runs_when_it_is_waited_for_and_only_then():
    one, other = pair()
    x = one.upload(np.zeros(4, F32))
    add(one, x, 1)
    assert (other.download(x) == 0).all()
    assert (one.download(x) == 1).all()


@pytest.mark.parametrize("late", [0, 1, 2])
def test_an_event_puts_streams_in_order(late):
    """Whichever of the two hurries."""
    one, other = pair(lambda number: number != late)
    x = one.upload(np.zeros(4, F32))
    add(one, x, 1)
    other.follow(one.mark())
    add(one, x, 2)
    y = other.empty(4, F32)
    other.copy(y, x)
    found = other.download(y)
    assert (found >= 1).all()  # 3 where the first one hurries: an event says what is done, not what is not
    assert (one.download(x) == 3).all()


def test_without_the_event_it_shows():
    one, other = pair()
    x, y = one.upload(np.zeros(4, F32)), other.empty(4, F32)
    add(one, x, 1)
    other.copy(y, x)
    assert (other.download(y) == 0).all()


def test_an_event_is_of_what_was_queued_before_it():
    one, other = pair()
    x = one.upload(np.zeros(4, F32))
    mark = one.mark()
    add(one, x, 1)
    other.follow(mark)
    assert (other.download(x) == 0).all()


def test_one_stream_records_while_the_other_works():
    one, other = pair()
    x, y = one.upload(np.zeros(4, F32)), other.upload(np.zeros(4, F32))

    def work():
        add(one, x, 1)
        done = threading.Thread(target=lambda: (add(other, y, 5), other.wait(), other.zeros(3, F32)))
        done.start()
        done.join()

    graph = one.capture(work)
    assert (other.download(y) == 5).all()
    graph()
    assert (one.download(x) == 1).all()


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda one, other: one.follow(other.mark()), "cudaErrorStreamCaptureIsolation"),
        (lambda one, other: one.mark(), "an event of a capture"),
    ],
)
def test_events_are_none_of_a_capture(work, words):
    one, other = pair()
    with pytest.raises(FakeCudaError, match=words):
        one.capture(lambda: work(one, other))


def test_a_stream_beside_shares_what_is_compiled():
    runtime = emulated_runtime()
    other = runtime.spawn()
    assert (other.name, other.sm_count) == (runtime.name, runtime.sm_count)
    assert other.stream.ptr != runtime.stream.ptr
    x = runtime.upload(np.zeros(4, F32))
    add(runtime, x, 1)
    runtime.wait()
    add(other, x, 1)
    other.wait()
    assert (runtime.download(x) == 2).all()
    assert len(runtime.cp.sources) == 1
    assert len(runtime._modules) == 1
    assert other._modules is runtime._modules
