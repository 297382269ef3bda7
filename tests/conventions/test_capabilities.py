"""Capabilities of machines and traits of policies: what is declared is what there is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.protocol import CPU_SHARDS, GPU_SHARDS, Backend, Capabilities, ControlVariates
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.sharded.backend import Sharded
from gpuboost.backends.sharded.gpus import ShardedGpus
from gpuboost.errors import RecipeError
from gpuboost.execution import DataParallel
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.sampling import ImportanceSampling
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import LineSearchStep, NewtonStep, QuantileStep, StepTraits, searches

MACHINES: list[Any] = [Reference, Cpu, Cuda, Sharded, ShardedGpus]
CONTROLS = tuple(name for name in vars(ControlVariates) if not name.startswith("_"))
VERBS = {
    "sampling": ("sample", "draw", "losses", "score_rows", *CONTROLS),
    "langevin": ("noise",),
    "line_search": ("line_search", "length_along"),
    "base_learners": ("smoothing",),
    "one_tree": ("grow_together", "squared_norms", "chosen_outputs", "projected_outputs"),
    "metrics": ("score_metric", "mean_loss", "answer"),
    "recorded_metrics": ("recorded_metric", "recorded_mean"),
    "repeated_rounds": ("repeat",),
    "scores_of_rounds": ("scores_after", "loss_values"),
    "worker_streams": ("slots",),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_has_the_verbs_that_it_offers_and_no_others(machine: Any) -> None:
    offers: Capabilities = machine.offers
    for name, verbs in VERBS.items():
        for verb in verbs:
            assert hasattr(machine, verb) is getattr(offers, name), verb


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_has_every_verb_that_no_capability_is_about(machine: Any) -> None:
    optional = {verb for verbs in VERBS.values() for verb in verbs}
    every = {name for part in Backend.__mro__ for name in vars(part) if not name.startswith("_")}
    assert len(every - optional) > 15
    assert [verb for verb in sorted(every - optional - {"name"}) if not hasattr(machine, verb)] == []


def test_every_capability_but_two_is_of_some_verb() -> None:
    """They say what verbs do that every machine, or one that repeats, has."""
    others = {"list_losses", "counted_rounds"}
    assert {one.name for one in fields(Capabilities)} == {*VERBS, *others}


def test_what_no_shard_offers_is_refused_with_the_recipe() -> None:
    assert DataParallel(2).offers == CPU_SHARDS
    for name in ("line_search", "base_learners"):
        assert not getattr(CPU_SHARDS, name)
        assert not getattr(GPU_SHARDS, name)
    with pytest.raises(RecipeError, match="step: a line search passes over all rows many times"):
        Recipe(losses.SquaredError(), step=LineSearchStep(), execution=DataParallel(2))


@dataclass
class Rule:
    """A rule that states two traits."""

    variance_control: str = "none"
    bounded: bool = False
    rate: float = 0.5


def test_traits_that_a_policy_lacks_have_their_defaults() -> None:
    assert declared(SamplingTraits, Rule()) == SamplingTraits(variance_control="none", bounded=False)
    assert declared(SamplingTraits, object()) == SamplingTraits()
    found = declared(SamplingTraits, ImportanceSampling(0.5, score="loss", eta=0.5, variance_control="node"))
    assert (found.score, found.eta, found.variance_control, found.weighs_losses) == ("loss", 0.5, "node", True)


def test_which_steps_search() -> None:
    assert [searches(step) for step in (NewtonStep(), QuantileStep(), LineSearchStep())] == [False, True, True]
    assert declared(StepTraits, LineSearchStep()).per == "tree"
    assert declared(StepTraits, QuantileStep()).per == "leaf"
