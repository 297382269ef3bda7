"""Ray as the engine: the cost of a round trip, the efficiency of several workers, and the cost of a killed one."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.errors import InputError
from gpuboost.execution.messages import Failure, Pull
from gpuboost.types import Gradients, Nodes, Sample, Structure, Target

BUILD = 0.05  # seconds that a pretended tree takes
STORE = 600 * 2**20  # bytes of shared memory


class Pretended:
    """A fit whose trees take a given time and cost no work; it returns what a real one would send back."""

    def __init__(self, rows: int, seconds: float) -> None:
        self.rows, self.seconds = rows, seconds

    def __call__(self, backend: Any, target: Target, ticket: int) -> tuple[Structure, ...]:
        until = time.perf_counter() + self.seconds
        structure = Structure(
            _nodes(63), 0, target.version, np.zeros(self.rows, np.int32), (np.zeros(63), np.zeros(63))
        )
        time.sleep(max(0.0, until - time.perf_counter()))
        return (structure,)


class Echo:
    """The bare engine: an actor that sends back as much as a tree is."""

    def __init__(self, rows: int) -> None:
        self.fit = Pretended(rows, 0.0)

    def build(self, target: Target, ticket: int) -> tuple[Structure, ...]:
        return self.fit(None, target, ticket)


def overhead(options: Options) -> Finding:
    """Seconds of a tree that takes no time: the round trip, with the library around it and without."""
    count = options.repeats or (20 if options.small else 300)
    rows: list[tuple[str, ...]] = []
    numbers: dict[str, Any] = {}
    with _ray(2) as ray:
        for n in (1_000, 100_000) if options.small else (1_000, 100_000, 1_000_000):
            bare, ours = _round_trips(ray, n, count, options.tell)
            numbers[str(n)] = {"bare": bare, "engine": ours}
            low, high = statistics.median(bare), statistics.median(ours)
            rows.append((f"{n:,}", f"{1e3 * low:.2f}", f"{1e3 * high:.2f}", f"{high / low - 1.0:+.0%}"))
    return Finding(
        f"A round trip of one tree, {count} times each in turn, medians",
        ("rows of the target", "bare actor ms", "engine ms", "above it"),
        tuple(rows),
        ("both send 8 bytes a row there and 4 bytes a row back",),
        numbers,
    )


def throughput(options: Options) -> Finding:
    """Throughput of several workers, by simulated trees of 50 ms."""
    trees = 20 if options.small else 400
    rows: list[tuple[str, ...]] = []
    numbers: dict[str, Any] = {}
    with _ray(8) as ray:
        for workers in (1, 2, 4, 8):
            options.tell(f"{workers} workers")
            seconds = _run(workers, trees * workers // 2 + workers, 100_000)
            rate, ideal = (trees * workers // 2) / seconds, workers / BUILD
            numbers[str(workers)] = {"trees a second": rate, "ideal": ideal}
            rows.append((str(workers), f"{rate:.1f}", f"{ideal:.0f}", f"{rate / ideal:.0%}"))
        cores = os.cpu_count()
        assert ray.is_initialized()
    return Finding(
        "Trees of 50 ms, targets of 100,000 rows",
        ("workers", "trees/s", "ideal trees/s", "of ideal"),
        tuple(rows),
        (f"this machine has {cores} cores; pretended trees sleep, so that workers beyond them still say something",),
        numbers,
    )


def recovery(options: Options) -> Finding:
    """One of three workers is killed in mid-run (SIGKILL)."""
    rows: list[tuple[str, ...]] = []
    numbers: list[dict[str, float]] = []
    with _ray(4) as ray:
        for repeat in range(options.repeats or (1 if options.small else 5)):
            options.tell(f"repeat {repeat + 1}")
            seconds = _killed(ray, 60 if options.small else 240)
            numbers.append(seconds)
            rows.append((str(repeat + 1), *(f"{seconds[key]:.3f}" for key in ("noticed", "replaced", "gap"))))
    return Finding(
        "A worker of three is killed: seconds after that",
        ("repeat", "it was noticed", "first tree of the fresh one", "longest gap between trees"),
        tuple(rows),
        ("at most the tree under way is lost; the others go on meanwhile",),
        {"runs": numbers},
    )


def shards(options: Options) -> Finding:
    """The same fit on one machine and on shards: the same bytes, at what price."""
    n, trees = (20_000, 3) if options.small else (1_000_000, 20)
    data = higgs_like(n=n, n_test=1_000, seed=1)
    asked = {"one machine": None, "2 threads": gb.DataParallel(2)}
    rows: list[tuple[str, ...]] = []
    numbers: dict[str, Any] = {}
    expected = b""
    with _ray(4):
        asked |= {f"{count} on ray": gb.DataParallel(count, "ray") for count in (1, 2, 4)}
        for label, execution in asked.items():
            options.tell(label)
            for rounds in (1, trees):  # the first fit is the warm-up
                model = gb.GradientBoostingClassifier(
                    n_estimators=rounds, n_jobs=1, execution=execution, random_state=0
                )
                model.fit(data.X, data.y)
            got = model.predict_proba(data.X_test).tobytes()
            expected = expected or got
            seconds = model.fit_report_.seconds["train"] / trees
            numbers[label] = {"seconds a tree": seconds, "same bytes": got == expected}
            rows.append(
                (
                    label,
                    f"{seconds:.4f}",
                    f"{seconds / numbers['one machine']['seconds a tree']:.2f}",
                    str(got == expected),
                )
            )
    return Finding(
        f"{n:,} x {data.X.shape[1]}, {trees} trees of depth 6, one thread each",
        ("shards", "s a tree", "of one machine", "same bytes"),
        tuple(rows),
        ("starting workers is part of it; histograms go to the driver through the object store",),
        numbers,
    )


@contextmanager
def _ray(cpus: int) -> Iterator[Any]:
    """A Ray of this machine's own, quiet, with so many CPUs whatever there are."""
    if find_spec("ray") is None:
        raise InputError("SUITE: ray needs the package ray; pip install 'gpuboosting[ray]'.")
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    ray.init(num_cpus=cpus, include_dashboard=False, object_store_memory=STORE, address="local", **quiet)
    try:
        yield ray
    finally:
        ray.shutdown()


def _engine(rows: int, seconds: float, workers: int) -> Any:
    return gb.Ray(timeout=120.0).start(Pretended(rows, seconds), _nothing, workers)


def _nothing() -> None:
    """The machine of a fit that computes nothing."""


def _round_trips(ray: Any, n: int, count: int, tell: Callable[[str], None]) -> tuple[list[float], list[float]]:
    """Seconds of each, of a bare actor and of the engine, which take turns."""
    engine, bare = _engine(n, 0.0, 1), ray.remote(num_cpus=1)(Echo).remote(n)
    of_bare, of_engine = [], []
    for i in range(-5, count):
        tell(f"{n:,} rows, round trip {i}")
        target = _target(n, i)
        began = time.perf_counter()
        answer = ray.get(bare.build.remote(ray.put(target), i))
        between = time.perf_counter()
        engine.submit(0, Pull(i, 0, target, Sample()))
        pushed = engine.wait()
        ended = time.perf_counter()
        assert len(answer) == len(pushed.structures)
        if i >= 0:
            of_bare.append(between - began)
            of_engine.append(ended - between)
    ray.kill(bare)
    engine.stop()
    return of_bare, of_engine


def _run(workers: int, trees: int, n: int) -> float:
    """Seconds from when every worker has built a tree."""
    engine = _engine(n, BUILD, workers)
    for worker in range(workers):
        engine.submit(worker, Pull(worker, 0, _target(n, worker), Sample()))
    began = 0.0
    for ticket in range(workers, trees + workers):
        push = engine.wait()
        if ticket == 2 * workers:
            began = time.perf_counter()
        engine.submit(push.worker, Pull(ticket, 0, _target(n, ticket), Sample()))
    taken = time.perf_counter() - began
    engine.stop()
    return taken


def _killed(ray: Any, trees: int) -> dict[str, float]:
    workers, ticket, lost = 3, 0, -1
    engine = _engine(1_000, BUILD, workers)
    victim = ray.get(engine._actors[0].__ray_call__.remote(lambda _: os.getpid()))
    times: list[float] = []
    killed = noticed = replaced = 0.0

    def order(worker: int) -> None:
        nonlocal ticket
        engine.submit(worker, Pull(ticket, 0, _target(1_000, ticket), Sample()))
        ticket += 1

    for worker in range(workers):
        order(worker)
    while len(times) < trees or not replaced:  # the fresh one comes up while the others go on
        message = engine.wait()
        now = time.perf_counter()
        if isinstance(message, Failure):
            noticed, lost = now, message.worker
            engine.replace(lost)
        else:
            times.append(now)
            replaced = replaced or (now if message.worker == lost else 0.0)
        order(message.worker)
        if len(times) == trees // 3 and not killed:
            killed = time.perf_counter()
            os.kill(victim, signal.SIGKILL)
    engine.stop()
    gap = max(b - a for a, b in pairwise(times) if b > killed)
    return {"noticed": noticed - killed, "replaced": replaced - killed, "gap": gap}


def _target(n: int, seed: int) -> Target:
    values = np.full((1, n), float(seed), np.float32)
    return Target(0, None, Gradients(values, values + 1.0))


def _nodes(v: int) -> Nodes:
    ints, floats = np.zeros(v, np.int32), np.zeros(v)
    flags, sets = np.zeros(v, np.bool_), np.zeros((v, 8), np.uint32)
    return Nodes(ints - 1, ints, flags, ints, ints, floats, floats, ints.astype(np.int64), sets)


EXPERIMENT = Experiment(
    "ray",
    "Workers and shards on Ray",
    {
        "overhead": Part("a round trip of one tree, beside that of a bare actor", overhead),
        "throughput": Part("trees of 50 ms by 1 to 8 workers, beside the ideal", throughput),
        "recovery": Part("a worker is killed: when it is noticed, when the fresh one delivers", recovery),
        "shards": Part("1,000,000 x 28: rows shared out, beside one machine", shards),
    },
)
