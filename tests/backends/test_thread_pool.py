"""A pool of threads: every part is done once, failures are told, and none of them spoils the next run."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from support.builders import eager_threads, grow, random_case, random_gradients, structure_bytes

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.host import affinity
from gpuboost.backends.host import threads as thread_pool
from gpuboost.backends.host.threads import ThreadPool, share
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise
from gpuboost.losses import SquaredError
from gpuboost.types import Limits


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_part_is_done_once_and_all_are_done_on_return(size: int) -> None:
    pool, done = ThreadPool(size), []
    for _ in range(50):
        done.clear()
        pool.run(done.append)
        assert sorted(done) == list(range(size))


def test_part_0_is_done_by_the_caller_and_the_others_by_threads_of_their_own() -> None:
    pool, thread_of, barrier = ThreadPool(3), {}, threading.Barrier(3, timeout=10.0)
    for _ in range(2):
        pool.run(lambda part: barrier.wait() >= 0 and thread_of.setdefault(part, threading.current_thread()))
    assert thread_of[0] is threading.current_thread()
    assert len(set(thread_of.values())) == 3
    assert all(thread.daemon for part, thread in thread_of.items() if part)


def test_parts_run_at_once() -> None:
    barrier, places = threading.Barrier(4, timeout=10.0), list[int]()
    ThreadPool(4).run(lambda _: places.append(barrier.wait()))  # which raises unless all four are there
    assert sorted(places) == [0, 1, 2, 3]


def test_the_caller_does_what_others_have_not_begun() -> None:
    """Their processors may have been given to other processes; what they are told later is not mixed up with it."""
    pool, begun, go = ThreadPool(3), threading.Event(), threading.Event()
    pool.run(lambda _: None)
    workers = pool._idle[0]
    for worker in workers:  # each is kept busy, as far as its team can see
        worker.start(lambda _: begun.set() or go.wait(10.0))
    assert begun.wait(10.0)
    while any(worker._work for worker in workers):
        time.sleep(0.001)
    done: list[tuple[int, threading.Thread]] = []
    for _ in range(5):
        pool.run(lambda part: done.append((part, threading.current_thread())))
    assert done == [(part, threading.current_thread()) for _ in range(5) for part in range(3)]
    go.set()
    assert [worker._wait() for worker in workers] == [None, None]
    barrier = threading.Barrier(3, timeout=10.0)
    pool.run(lambda _: barrier.wait())


def test_who_is_late_may_run_on_the_caller_s_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    let: list[list[int]] = []
    monkeypatch.setattr(thread_pool, "let_run_on", lambda threads, _: let.append(threads))
    pool, begun, number = ThreadPool(2), threading.Event(), []

    def work(part: int) -> None:
        if part == 0:
            assert begun.wait(10.0)
            return
        number.append(threading.get_native_id())
        begun.set()
        time.sleep(20 * thread_pool.LATE_AFTER)

    pool.run(work)
    assert let == [number]
    assert pool._idle[0]._off == affinity.UNKNOWN  # so it is kept off again the next time


def test_a_team_of_one_starts_no_thread() -> None:
    before = threading.active_count()
    ThreadPool(1).run(lambda _: None)
    assert threading.active_count() == before


class PartError(Exception):
    pass


@pytest.mark.parametrize("bad", [0, 1, 3])
def test_what_a_part_raised_is_raised_after_all_parts_have_ended(bad: int) -> None:
    pool, done = ThreadPool(4), []

    def work(part: int) -> None:
        if part == bad:
            raise PartError(part)
        time.sleep(0.01)
        done.append(part)

    with pytest.raises(PartError) as caught:
        pool.run(work)
    assert caught.value.args == (bad,)
    assert sorted(done) == [part for part in range(4) if part != bad]

    done.clear()
    pool.run(done.append)  # and nothing of it is left
    assert sorted(done) == [0, 1, 2, 3]


def test_one_of_several_failures_is_raised_once() -> None:
    pool = ThreadPool(3)

    def work(part: int) -> None:
        raise PartError(part)

    with pytest.raises(PartError):
        pool.run(work)
    pool.run(lambda _: None)


def test_an_interrupted_caller_waits_for_the_others() -> None:
    pool, done = ThreadPool(2), []

    def work(part: int) -> None:
        if part == 0:
            raise KeyboardInterrupt
        time.sleep(0.02)
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        pool.run(work)
    assert done == [1]


def test_an_interrupt_while_waiting_leaves_a_team_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come while the caller waits: the next run must not mistake the end of the old work for its own."""
    pool, release = ThreadPool(2), threading.Event()
    pool.run(lambda _: None)
    worker = type(pool._idle[0][0])
    with monkeypatch.context() as patch:
        patch.setattr(worker, "_wait", lambda _: (_ for _ in ()).throw(KeyboardInterrupt()))
        begun = threading.Event()
        with pytest.raises(KeyboardInterrupt):
            pool.run(lambda part: (begun.set() or release.wait(10.0)) if part else begun.wait(10.0))
    for _ in range(20):
        done: list[int] = []
        pool.run(lambda part, done=done: time.sleep(0.002 * part) or done.append(part))
        assert sorted(done) == [0, 1]
        release.set()  # the interrupted work ends in the midst of these runs


def test_work_may_call_its_own_team() -> None:
    pool, done = ThreadPool(2), []
    pool.run(lambda outer: pool.run(lambda inner: done.append((outer, inner))))
    assert sorted(done) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_several_callers_of_one_team_do_not_mix() -> None:
    pool = ThreadPool(3)

    def caller(name: int) -> None:
        for _ in range(30):
            done: list[tuple[int, int]] = []
            pool.run(lambda part, done=done: done.append((name, part)))
            assert sorted(done) == [(name, 0), (name, 1), (name, 2)]

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(caller, range(4)))


def test_the_threads_of_a_team_end_with_it() -> None:
    pool, threads, barrier = ThreadPool(5), [], threading.Barrier(5, timeout=10.0)
    pool.run(lambda part: barrier.wait() >= 0 and part and threads.append(threading.current_thread()))
    assert len(threads) == 4
    assert all(thread.is_alive() for thread in threads)
    del pool
    gc.collect()
    for thread in threads:
        thread.join(10.0)
        assert not thread.is_alive()


def test_python_threads_with_a_backend_each_grow_the_same_trees() -> None:
    case = random_case(5, 400, 4)
    gradients = random_gradients(np.random.default_rng(5), 400, "plain")
    growth = DepthWise(Limits(16, 4))
    expected = structure_bytes(grow(Reference(), growth, case.data, gradients))

    def fit(_: int) -> bool:
        backend = Cpu(2)
        return all(structure_bytes(grow(backend, growth, case.data, gradients)) == expected for _ in range(10))

    with eager_threads(), ThreadPoolExecutor(4) as pool:
        assert all(pool.map(fit, range(8)))


@pytest.mark.parametrize("total", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_shares_are_consecutive_and_equal_within_one(total: int, parts: int) -> None:
    shares = [share(total, part, parts) for part in range(parts)]
    assert shares[0][0] == 0
    assert shares[-1][1] == total
    assert all(a[1] == b[0] for a, b in itertools.pairwise(shares))
    assert {end - begin for begin, end in shares} <= {total // parts, -(-total // parts)}


def test_threads_run_elsewhere_than_their_caller_if_there_is_a_processor_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that is woken on its caller's processor, as happens in virtual machines, waits until that is done."""
    asked: list[tuple[int, frozenset[int]]] = []
    at = [3]
    monkeypatch.setattr(affinity, "sys", SimpleNamespace(platform="linux"))
    monkeypatch.setattr(affinity.os, "sched_getaffinity", lambda _: {2, 3, 5}, raising=False)
    monkeypatch.setattr(affinity.os, "sched_setaffinity", lambda *mask: asked.append(mask), raising=False)
    monkeypatch.setattr(thread_pool, "processor", lambda: at[0])
    pair, numbers, barrier = ThreadPool(3), {}, threading.Barrier(3, timeout=10.0)
    monkeypatch.setattr(thread_pool, "LATE_AFTER", 10.0)
    for _ in range(3):
        pair.run(lambda part: barrier.wait() >= 0 and numbers.setdefault(part, threading.get_native_id()))
    first = [(numbers[1], {2, 5}), (numbers[2], {2, 5})]
    assert asked == first  # once, as long as the caller stays
    at[0] = 5
    pair.run(lambda _: None)
    assert asked[2:] == [(numbers[1], {2, 3}), (numbers[2], {2, 3})]
    del asked[:]
    ThreadPool(4).run(lambda _: None)
    assert asked == []  # with four at work on three processors, one has to be shared


def test_a_team_that_a_team_works_with_may_run_where_the_first_caller_may() -> None:
    seen: list[frozenset[int]] = []
    ThreadPool(2).run(lambda _: ThreadPool(2).run(lambda _: seen.append(affinity.allowed())))
    assert seen == [affinity.allowed()] * 4


def test_scores_and_curvatures_are_first_written_by_the_threads_that_work_on_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page of memory is near the processor that writes to it first, where each has memory of its own."""
    n, cpu, writers = 2 * thread_pool.SMALL + 3, Cpu(3), []
    data = SimpleNamespace(n_rows=n, y=np.zeros(n), weight=np.arange(n) % 5 / 3.0, multiplicity=None)

    def recorded(total: int, part: int, parts: int) -> tuple[int, int]:
        writers.append((total, part, parts, threading.get_ident()))
        barrier.wait()  # every part has a thread of its own
        return share(total, part, parts)

    barrier = threading.Barrier(3, timeout=10.0)
    monkeypatch.setattr(thread_pool, "share", recorded)
    scores = cpu.start(data, np.array([0.5, -1.0]))
    gradients = cpu.gradients(SquaredError(), scores[:1], data, 0.3)  # h, and then g
    assert [len(writers), len(set(writers))] == [9, 3]
    assert np.array_equal(scores, np.repeat([[0.5], [-1.0]], n, axis=1))
    assert np.array_equal(gradients.h, (0.3 * data.weight).astype(np.float32)[None])
