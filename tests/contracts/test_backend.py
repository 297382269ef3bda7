"""Every machine keeps the contract that ``gpuboost.testing`` has for a backend of one's own."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime
from emulator.nccl import World
from support import cpu_shards, gpu_shards
from support.builders import Case

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.repeated_rounds import RepeatedRounds
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.protocol import Backend, Capabilities
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.sharded.backend import Sharded
from gpuboost.backends.sharded.gpu_shard import GpuShard
from gpuboost.backends.sharded.gpus import ShardedGpus
from gpuboost.testing import BackendContract
from gpuboost.types import Gradients, Sample, TrainingSet


class TestReference(BackendContract):
    def machine(self) -> Backend:
        return Reference()


class CpuContract(BackendContract):
    """The kernel of repeated rounds is compiled here; fits wait for a process that does so."""

    @pytest.fixture(autouse=True)
    def _do_not_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(RepeatedRounds, "waits", False)


class TestCpu(CpuContract):
    def machine(self) -> Backend:
        return Cpu(1)


class TestCpuOfThreeThreads(CpuContract):
    def machine(self) -> Backend:
        return Cpu(3)


@cache
def emulated() -> CupyRuntime:
    return emulated_runtime("random")


@pytest.mark.slow  # everyday tests compare emulated GPUs with the reference in tests/parity
class TestEmulatedCuda(BackendContract):
    rows = 150
    summed = (1, 17, 4_097, 8_200)

    def machine(self) -> Backend:
        return Cuda(emulated())

    def host_gradients(self, machine: Backend, gradients: Any) -> Gradients:
        found = super().host_gradients(machine, gradients)
        drawn = gradients.sample
        if drawn is None:
            return found
        count = int(machine.to_host(drawn.m)[0])
        return Gradients(found.g[:, :count], found.h[:, :count])

    def host_sample(self, machine: Backend, sample: Any) -> Sample:
        count = int(machine.to_host(sample.m)[0])
        inverse = sample.inverse_probability
        of_each = np.full(count, 1.0 / sample.rate, np.float32) if inverse is None else machine.to_host(inverse)[:count]
        return Sample(machine.to_host(sample.rows)[:count], of_each)


class TestShardedCpu(BackendContract):
    """Rows shared out to three shards, unevenly; a query is one shard's."""

    summed = (1, 17, 4_097)

    def machine(self) -> Backend:
        return cpu_shards.shards(3)

    def training_set(self, machine: Any, case: Case) -> TrainingSet:
        n = case.data.n_rows
        return cpu_shards.hand_out(machine, case, [n // 3 // 30 * 30, n // 2 // 30 * 30, n])

    def host_sample(self, machine: Any, sample: Any) -> Sample:
        """Each shard numbers its own rows."""
        found = super().host_sample(machine, sample)
        first = np.repeat(np.cumsum([0, *machine._sizes[:-1]]), sample.rows.sizes).astype(np.int32)
        return Sample(found.rows + first, found.inverse_probability, found.n_excluded)


@pytest.mark.slow
class TestShardedGpus(BackendContract):
    """Rows shared out to two emulated GPUs, which add up by an emulated NCCL."""

    rows = 4_200
    summed = (1, 17, 4_097)
    rounds = 2

    def machine(self) -> Backend:
        return gpu_shards.shards(2, World())

    def training_set(self, machine: Any, case: Case) -> TrainingSet:
        return gpu_shards.hand_out(machine, case, gpu_shards.whole_stretches(case.data.n_rows, 2))

    def host_gradients(self, machine: Any, gradients: Gradients) -> Gradients:
        def both(shard: GpuShard, kept: Gradients) -> tuple[np.ndarray, np.ndarray]:
            return shard.fetch(kept.g), shard.fetch(kept.h)

        g, h = zip(*machine._calls.ask(both, gradients.g), strict=True)
        return Gradients(np.concatenate(g, axis=1), np.concatenate(h, axis=1))


MACHINES: list[tuple[type[BackendContract], Capabilities, int]] = [
    (TestReference, Reference.offers, 40),
    (TestCpu, Cpu.offers, 40),
    (TestCpuOfThreeThreads, Cpu.offers, 40),
    (TestEmulatedCuda, Cuda.offers, 40),
    (TestShardedCpu, Sharded.offers, 34),
    (TestShardedGpus, ShardedGpus.offers, 22),
]


@pytest.mark.parametrize(("contract", "offers", "least"), MACHINES)
def test_a_machine_is_held_to_no_fewer_tests_than_before(
    contract: type[BackendContract], offers: Capabilities, least: int
) -> None:
    assert len(contract.applicable(offers)) >= least
