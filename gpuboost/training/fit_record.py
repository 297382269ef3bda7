"""Facts of the fits that made a model: its guarantee, and the origin of its chain. A model file holds them.

They are made once, by the fit, of what was run; the parameters of an estimator may change after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from gpuboost.langevin import ChainOrigin, Langevin, total_weight
from gpuboost.model import strict_json as strict
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass, restored
from gpuboost.reports.constants import of_law
from gpuboost.reports.guarantee import NOT_KNOWN, RunFacts, guarantee_of, joined, of_whole_run
from gpuboost.reports.step_sizes import StepSizes, step_sizes
from gpuboost.theory import Guarantee, TheoremConstant
from gpuboost.theory.guarantee import GuaranteeKind, Knowledge
from gpuboost.training.checkpoint import CheckpointState
from gpuboost.types import Ensemble, TrainingSet

KINDS = get_args(GuaranteeKind)
GUARANTEE = tuple(field.name for field in fields(Guarantee) if field.name != "constants")
CONSTANT = tuple(field.name for field in fields(TheoremConstant))
KNOWLEDGE = get_args(Knowledge)
CHAIN = tuple(field.name for field in fields(ChainOrigin))

OF_A_RUN = ("n_estimators", "posterior_samples", "eval_metric", "eval_at")
"""Parameters that may differ between two fits of one chain; ``random_state`` too if it does not choose the rows."""

CONTINUED = ("start", "learning_rate", "monotonic_cst", "interaction_cst")
"""Parameters of a model without a chain that are compared with those of a fit that continues it."""


@dataclass(frozen=True, slots=True)
class FitRecord:
    """Facts of the fits that made a model."""

    guarantee: Guarantee = NOT_KNOWN
    chain: ChainOrigin | None = None  # None without Langevin noise, or if it is not known
    params: Mapping[str, Any] | None = None  # those that continued fits are held to, see ``parameter_json.held_to``

    __setstate__ = restored


@dataclass(frozen=True, slots=True)
class PastFits:
    """Facts of the rounds before this call of ``fit``."""

    earlier: tuple[Guarantee, ...] = ()  # of the fits that made the model to continue, in order
    checkpoint: Guarantee | None = None  # of the rounds of this fit before it was interrupted
    chain_start: int = 0  # rounds before the chain that this fit continues or begins

    @classmethod
    def of_model(cls, record: FitRecord, rounds: int, chain_start: int) -> PastFits:
        """The past of a fit that continues a model of this many rounds."""
        return cls(_parts(record.guarantee, rounds) if rounds else (), None, chain_start)

    @classmethod
    def of_checkpoint(cls, record: FitRecord, first: int, done: int) -> PastFits:
        """The past of a resumed fit: it began with ``first`` rounds of a model, and has done ``done`` more."""
        start = first if record.chain is None else record.chain.start
        parts = _parts(record.guarantee, first + done) if first + done else ()
        earlier, last = (parts[:-1], parts[-1]) if done else (parts, None)
        if first and not earlier:
            earlier = (replace(NOT_KNOWN, rounds=(1, first)),)
        return cls(earlier, last, start)


def _parts(guarantee: Guarantee, rounds: int) -> tuple[Guarantee, ...]:
    return guarantee.parts or (guarantee if guarantee.rounds else replace(guarantee, rounds=(1, rounds)),)


def same_chain(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """True if two fits of the same rows have one recipe. then, now: parameters as they are written to model files."""
    free = OF_A_RUN if now.get("validation_fraction") is not None else (*OF_A_RUN, "random_state")
    return all(then.get(name) == now.get(name) for name in then.keys() | now.keys() if name not in free)


@dataclass(frozen=True, slots=True)
class FitRecorder:
    """Maker of the record of a fit, for its model and for its checkpoints."""

    recipe: Recipe
    past: PastFits
    first: int  # rounds of the model that the fit began with
    facts: RunFacts
    chain: ChainOrigin | None

    @classmethod
    def of(cls, recipe: Recipe, past: PastFits, run: CheckpointState, data: TrainingSet, *, stops: bool) -> FitRecorder:
        """The recorder of a fit to these rows; stops: True if it may stop early."""
        if not isinstance(recipe.langevin, Langevin):
            return cls(recipe, past, run.first, RunFacts.of(data, stops_early=stops), None)
        weight, start = total_weight(data), past.chain_start
        chain = ChainOrigin(start, weight, recipe.langevin.beta(weight) / weight, run.data)
        facts = RunFacts.of(data, stops_early=stops, foreign_start=start, law=of_law(recipe, data))
        return cls(recipe, past, run.first, facts, chain)

    def steps(self, ensemble: Ensemble) -> StepSizes | None:
        """The step sizes of the rounds of this fit, those before its checkpoint included."""
        return step_sizes(self.recipe, ensemble, self.first)

    def record(self, ensemble: Ensemble) -> FitRecord:
        """The record of the model, whose trees are in the host's memory."""
        return self.record_with(ensemble, self.steps(ensemble))

    def record_with(self, ensemble: Ensemble, steps: StepSizes | None) -> FitRecord:
        """``record``, given ``steps`` of the ensemble."""
        earlier = self.past.earlier
        if ensemble.n_rounds <= self.first and earlier:
            return FitRecord(joined(earlier[:-1], earlier[-1]), self.chain)
        made = guarantee_of(self.recipe, replace(self.facts, steps=steps))
        made = replace(made, rounds=(self.first + 1, ensemble.n_rounds))
        if self.past.checkpoint is not None:
            made = of_whole_run(self.past.checkpoint, made)
        return FitRecord(joined(earlier, made), self.chain)


def to_json(record: FitRecord) -> dict[str, Any]:
    """Entries of ``extra`` in a model file; none for what is not known."""
    written: dict[str, Any] = {}
    if record.guarantee.kind != "not known" or record.guarantee.parts:
        written["guarantee"] = _guarantee_to_json(record.guarantee)
    if record.chain is not None:
        written["chain"] = {name: _listed(getattr(record.chain, name)) for name in CHAIN}
    return written


def from_json(extra: Mapping[str, Any], rounds: int) -> FitRecord:
    """The inverse, for a model of this many rounds.

    Raises
    ------
    InputError
        If an entry is not as ``to_json`` writes it.
    """
    guarantee, chain = NOT_KNOWN, None
    if "guarantee" in extra:
        guarantee = _guarantee_from(extra["guarantee"], "extra.guarantee", rounds)
    if "chain" in extra:
        chain = _chain_from(extra["chain"], "extra.chain", rounds)
    return FitRecord(guarantee, chain)


def _guarantee_to_json(guarantee: Guarantee) -> dict[str, Any]:
    plain = {name: _listed(getattr(guarantee, name)) for name in GUARANTEE if name != "parts"}
    plain["parts"] = [_guarantee_to_json(part) for part in guarantee.parts]
    if guarantee.constants:
        plain["constants"] = [{name: getattr(constant, name) for name in CONSTANT} for constant in guarantee.constants]
    return plain


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _guarantee_from(value: Any, where: str, rounds: int, depth: int = 0) -> Guarantee:
    has_constants = isinstance(value, dict) and "constants" in value
    entries = strict.record(value, where, (*GUARANTEE, "constants") if has_constants else GUARANTEE)
    if entries["kind"] not in KINDS:
        strict.refuse(f"{where}.kind", f"one of {', '.join(KINDS)} was expected", entries["kind"])
    listed = strict.items(entries["parts"], f"{where}.parts")
    if depth and listed:
        strict.refuse(f"{where}.parts", "a part has no parts", len(listed))
    ends = None
    if entries["rounds"] is not None:
        first, last = strict.integers(entries["rounds"], f"{where}.rounds", 0, rounds + 1, 2).tolist()
        ends = first, last
    return Guarantee(
        kind=entries["kind"],
        statement=_text(entries["statement"], f"{where}.statement"),
        assumptions=_texts(entries["assumptions"], f"{where}.assumptions"),
        missing=_texts(entries["missing"], f"{where}.missing"),
        sigma=None if entries["sigma"] is None else strict.number(entries["sigma"], f"{where}.sigma"),
        mu=strict.number(entries["mu"], f"{where}.mu"),
        nu=strict.number(entries["nu"], f"{where}.nu"),
        rounds=ends,
        parts=tuple(_guarantee_from(part, f"{where}.parts[{i}]", rounds, 1) for i, part in enumerate(listed)),
        constants=_constants_from(entries["constants"], f"{where}.constants") if has_constants else (),
    )


def _constants_from(value: Any, where: str) -> tuple[TheoremConstant, ...]:
    return tuple(_constant_from(constant, f"{where}[{i}]") for i, constant in enumerate(strict.items(value, where)))


def _constant_from(value: Any, where: str) -> TheoremConstant:
    constant = strict.record(value, where, CONSTANT)
    if constant["status"] not in KNOWLEDGE:
        strict.refuse(f"{where}.status", f"one of {', '.join(KNOWLEDGE)} was expected", constant["status"])
    if (constant["value"] is None) != (constant["status"] == "unknown"):
        strict.refuse(f"{where}.value", "null was expected of what is unknown, and else a number", constant["value"])
    number = None if constant["value"] is None else strict.number(constant["value"], f"{where}.value")
    return TheoremConstant(
        _text(constant["name"], f"{where}.name"), number, constant["status"], _text(constant["note"], f"{where}.note")
    )


def _chain_from(value: Any, where: str, rounds: int) -> ChainOrigin:
    entries = strict.record(value, where, CHAIN)
    start = strict.integer(entries["start"], f"{where}.start", 0, rounds)
    weight, temperature = (_positive(entries[name], f"{where}.{name}") for name in ("total_weight", "temperature"))
    rows, features, check = strict.integers(entries["data"], f"{where}.data", 0, 2**62, 3).tolist()
    return ChainOrigin(start, weight, temperature, (rows, features, check))


def _positive(value: Any, where: str) -> float:
    number = strict.number(value, where)
    if not number > 0.0:
        strict.refuse(where, "a number above 0 was expected", value)
    return number


def _texts(value: Any, where: str) -> tuple[str, ...]:
    return tuple(_text(text, f"{where}[{i}]") for i, text in enumerate(strict.items(value, where)))


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        strict.refuse(where, "text was expected", value)
    return value
