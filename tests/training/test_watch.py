"""The watchers, on rounds written by hand."""

from __future__ import annotations

import io
import math
from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gpuboost.errors import InputError, RecipeError
from gpuboost.types import Cuts, DenseBins, Ensemble, FittedTree, Nodes, Progress, TrainingSet
from gpuboost.watch.callbacks import Watchers, as_watcher
from gpuboost.watch.checkpoint import Checkpoint
from gpuboost.watch.early_stopping import EarlyStopping
from gpuboost.watch.evaluation import EvalSet, Evaluation, Measure
from gpuboost.watch.history import History
from gpuboost.watch.progress import BEFORE_FIRST, Pace, ProgressBar
from gpuboost.watch.record import Plan, Round

CUTS = Cuts((np.array([0.5]),), (None,))


def one_leaf(value: float = 1.0) -> FittedTree:
    def column(dtype: type) -> np.ndarray:
        return np.zeros(1, dtype)

    nodes = Nodes(
        feature=np.array([-1], np.int32),
        bin=column(np.int32),
        missing_left=column(np.bool_),
        left=column(np.int32),
        right=column(np.int32),
        gain=column(np.float64),
        cover=column(np.float64),
        count=column(np.int64),
        left_set=np.zeros((1, 8), np.uint32),
    )
    return FittedTree(nodes, np.array([value]), output=0, version=0)


def ensemble(rounds: int) -> Ensemble:
    return Ensemble(np.zeros(1), CUTS, (one_leaf(),) * rounds, (0.1,) * rounds)


def record(number: int, value: float | None = None, *, rounds: int = 10, before: int = 0, metric: str = "m") -> Round:
    evals = {} if value is None else {"validation_0": {metric: value}}
    total = before + number + 1
    return Round(number, rounds, evals, total, 2.0 + number, lambda: 0.25, partial(ensemble, total))


def plan(
    *, rounds: int = 10, greater: bool = False, sets: tuple[str, ...] = ("validation_0",), metric: str = "m"
) -> Plan:
    def write(model: Ensemble, path: str) -> None:
        Path(path).write_text(str(model.n_rounds))

    return Plan(rounds, {metric: greater}, sets, write)


def run(stopper: EarlyStopping, values: list[float], *, greater: bool = False, before: int = 0) -> int:
    """The number of rounds it lets pass."""
    stopper.begin(plan(greater=greater))
    for number, value in enumerate(values):
        if stopper(record(number, value, before=before)):
            return number + 1
    return len(values)


class TestEarlyStopping:
    @pytest.mark.parametrize(
        ("values", "greater", "stops_after", "best"),
        [
            ([3.0, 2.0, 1.0, 1.0, 1.0], False, 5, 3),  # an equal value is no new best
            ([1.0, 2.0, 3.0, 0.5], False, 3, 1),
            ([1.0, 2.0, 0.5, 1.0, 1.0, 0.1], False, 5, 3),
            ([1.0, 2.0, 3.0, 4.0], True, 4, 4),
            ([0.9, 0.8, 0.7, 1.0], True, 3, 1),
            ([math.inf, 5.0, 6.0, 7.0], False, 4, 2),
            ([-1.0, -2.0, -1.0, -1.0], False, 4, 2),
        ],
    )
    def test_stops_after_two_rounds_without_a_new_best(self, values, greater, stops_after, best) -> None:
        stopper = EarlyStopping(2)
        assert run(stopper, values, greater=greater) == stops_after
        assert stopper.best_rounds == best
        assert stopper.best_score == values[best - 1]

    def test_min_delta_is_measured_from_the_best_so_far(self) -> None:
        stopper = EarlyStopping(2, min_delta=0.5)
        assert run(stopper, [3.0, 2.6, 2.5, 2.4]) == 3  # 2.5 is better than 3.0 by 0.5, not by more
        assert stopper.best_score == 3.0

    def test_counts_the_rounds_of_a_warm_start(self) -> None:
        stopper = EarlyStopping(1)
        run(stopper, [1.0, 2.0], before=40)
        assert stopper.best_rounds == 41

    def test_forgets_an_earlier_fit(self) -> None:
        stopper = EarlyStopping(2)
        assert run(stopper, [0.1, 0.2, 0.3]) == 3
        assert run(stopper, [9.0, 8.0, 7.0, 6.0]) == 4
        assert stopper.best_score == 6.0

    def test_looks_at_the_first_metric_of_the_last_set(self) -> None:
        stopper = EarlyStopping(1)
        stopper.begin(Plan(5, {"a": True, "b": False}, ("first", "last"), lambda *_: None))
        evals = {"first": {"a": 0.0, "b": 9.0}, "last": {"a": 1.0, "b": 9.0}}
        stopper(Round(0, 5, evals, 1, 0.0, lambda: 0.0, partial(ensemble, 1)))
        assert stopper.best_score == 1.0

    def test_needs_an_eval_set(self) -> None:
        with pytest.raises(RecipeError, match=r"early_stopping_rounds.*eval_set"):
            EarlyStopping(2).begin(plan(sets=()))

    def test_refuses_nan(self) -> None:
        with pytest.raises(InputError, match="m of validation_0 is nan in round 1"):
            run(EarlyStopping(2), [1.0, math.nan])

    @pytest.mark.parametrize(("rounds", "min_delta"), [(0, 0.0), (1, -1.0), (1, math.nan), (1, math.inf)])
    def test_refuses_parameters_out_of_range(self, rounds: int, min_delta: float) -> None:
        with pytest.raises(RecipeError):
            EarlyStopping(rounds, min_delta)


class TestHistory:
    def test_collects_each_metric_of_each_set(self) -> None:
        history = History()
        history.begin(plan())
        for number, value in enumerate([0.5, 0.25]):
            assert not history(record(number, value))
        assert history.evals_result == {"validation_0": {"m": [0.5, 0.25]}}

    def test_begins_anew(self) -> None:
        history = History()
        for _ in range(2):
            history.begin(plan())
            history(record(0, 1.0))
        assert history.evals_result == {"validation_0": {"m": [1.0]}}


class TestCheckpoint:
    def test_writes_every_k_rounds_and_at_the_end(self, tmp_path: Path) -> None:
        path = tmp_path / "m.json"
        checkpoint = Checkpoint(path, every=2)
        checkpoint.begin(plan())
        found = []
        for number in range(5):
            checkpoint(record(number))
            found.append(path.read_text() if path.exists() else None)
        checkpoint.end()
        assert found == [None, "2", "2", "4", "4"]
        assert path.read_text() == "5"

    def test_saves_nothing_twice_and_nothing_without_a_round(self, tmp_path: Path) -> None:
        written: list[int] = []
        checkpoint = Checkpoint(tmp_path / "m.json", every=2)
        told = Plan(4, {}, (), lambda model, path: written.append(model.n_rounds))
        checkpoint.begin(told)
        checkpoint.end()
        checkpoint.begin(told)
        for number in range(4):
            checkpoint(record(number))
        checkpoint.end()
        assert written == [2, 4]

    def test_asks_for_its_folder_before_the_fit(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match="folder"):
            Checkpoint(tmp_path / "absent" / "m.json").begin(plan())

    def test_refuses_every_zero_rounds(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match="every"):
            Checkpoint(tmp_path / "m.json", every=0)
        with pytest.raises(RecipeError, match=r"every: .* got 'ten'"):
            Checkpoint(tmp_path / "m.json", every="ten")


class TestPace:
    def test_leaves_the_first_round_out(self) -> None:
        slow_start = record(4, rounds=9)  # 2 s for the first, 1 s for each of four more
        pace = Pace.of(slow_start, seconds_of_first=2.0)
        assert pace.rounds_per_second == pytest.approx(1.0)
        assert pace.seconds_left == pytest.approx(4.0)
        assert str(pace) == "1.0 rounds/s  0:00:04 left"

    def test_of_the_first_round_is_what_is_known(self) -> None:
        pace = Pace.of(record(0, rounds=3), seconds_of_first=2.0)
        assert pace.rounds_per_second == pytest.approx(0.5)
        assert pace.seconds_left == pytest.approx(4.0)


class TestProgressBar:
    def text_of(self, bar_every: int, values: list[float | None], **console: bool) -> str:
        written = io.StringIO()
        bar = ProgressBar(bar_every, Console(file=written, width=120, **console))
        bar.begin(plan(rounds=len(values)))
        for number, value in enumerate(values):
            assert not bar(record(number, value, rounds=len(values)))
        bar.end()
        return written.getvalue()

    def test_writes_a_plain_line_every_k_rounds_and_for_the_last(self) -> None:
        lines = self.text_of(2, [0.5, 0.25, 0.125, 0.1, 0.0625]).splitlines()
        assert lines[0] == f"{BEFORE_FIRST}, then up to 5 rounds"
        assert [line.split("]")[0] for line in lines[1:]] == ["[2/5", "[4/5", "[5/5"]
        assert "validation_0 m 0.25" in lines[1]
        assert "rounds/s" in lines[1]
        assert "left" in lines[1]

    def test_shows_the_training_loss_without_an_eval_set(self) -> None:
        assert "training loss 0.25" in self.text_of(1, [None])

    def test_draws_a_bar_in_a_terminal(self) -> None:
        text = self.text_of(1, [0.5, 0.25], force_terminal=True)
        assert BEFORE_FIRST in text
        assert "2/2" in text
        assert "validation_0 m 0.25" in text
        assert text.index(BEFORE_FIRST) < text.index("boosting")

    @pytest.mark.slow
    def test_replaces_one_cell_in_a_notebook(self, monkeypatch: pytest.MonkeyPatch) -> None:
        display = pytest.importorskip("IPython.display")
        shown: list[str] = []

        class Handle:
            def update(self, table: object) -> None:
                console.print(table)
                shown.append(console.file.getvalue())

        def show(table: object, display_id: bool) -> Handle:
            assert display_id
            return Handle()

        monkeypatch.setattr(display, "display", show)
        console = Console(file=io.StringIO(), width=120)
        bar = ProgressBar(1, Console(force_jupyter=True))
        bar.begin(plan(rounds=3))
        for number in range(2):
            bar(record(number, 0.5, rounds=3))
        bar.end()
        assert "1/3" in shown[0]
        assert "after 2 of up to 3 rounds" in shown[-1]

    def test_refuses_every_zero_rounds(self) -> None:
        with pytest.raises(RecipeError, match="every"):
            ProgressBar(0)


class Witness:
    """Notes what it is told."""

    def __init__(self, notes: list[str], name: str, *, stop: bool = False, fail: str = "") -> None:
        self.notes, self.name, self.stop, self.fail = notes, name, stop, fail

    def note(self, what: str) -> None:
        self.notes.append(f"{self.name} {what}")
        if what == self.fail:
            raise ValueError(f"{self.name} failed")

    def begin(self, plan: Plan) -> None:
        self.note("begin")

    def __call__(self, record: Round) -> bool:
        self.note(f"round {record.round}")
        return self.stop

    def end(self) -> None:
        self.note("end")


def no_evaluation() -> Evaluation:
    return Evaluation((), (), lambda *_: None)


def no_loss(progress: Progress) -> float:
    return 0.0


def progress(step: int) -> Progress:
    return Progress(step, (one_leaf(),), 0.1, np.zeros((1, 1)), step + 1, partial(ensemble, step + 1))


class TestWatchers:
    def test_every_callback_is_called_also_after_a_stop(self) -> None:
        notes: list[str] = []
        with Watchers(plan(), [Witness(notes, "a", stop=True), Witness(notes, "b")]) as watchers:
            assert watchers.follow(no_evaluation(), no_loss)(progress(0)) is True
        assert notes == ["a begin", "b begin", "a round 0", "b round 0", "b end", "a end"]

    def test_ends_what_has_begun_when_the_fit_fails(self) -> None:
        notes: list[str] = []
        with pytest.raises(KeyboardInterrupt), Watchers(plan(), [Witness(notes, "a"), Witness(notes, "b")]):
            raise KeyboardInterrupt
        assert notes == ["a begin", "b begin", "b end", "a end"]

    def test_ends_what_has_begun_when_a_later_one_cannot_begin(self) -> None:
        notes: list[str] = []
        watchers = Watchers(plan(), [Witness(notes, "a"), Witness(notes, "b", fail="begin")])
        with pytest.raises(ValueError, match="b failed"), watchers:
            notes.append("not reached")
        assert notes == ["a begin", "b begin", "a end"]

    def test_a_callback_gets_one_frozen_record(self) -> None:
        seen: list[Round] = []
        with Watchers(plan(rounds=7), [as_watcher(seen.append)]) as watchers:
            watch = watchers.follow(no_evaluation(), lambda p: float(p.round))
            assert watch(progress(40)) is False
            assert watch(progress(41)) is False
        assert [one.round for one in seen] == [0, 1]  # of this fit, whatever came before it
        assert seen[0].rounds == 7
        assert seen[0].training_loss() == 40.0
        assert seen[1].training_loss() == 41.0
        assert 0.0 <= seen[0].seconds <= seen[1].seconds
        with pytest.raises(FrozenInstanceError):
            seen[0].round = 3  # type: ignore[misc]

    @pytest.mark.parametrize("callback", [3, "stop", EarlyStopping, None])
    def test_refuses_what_cannot_be_called(self, callback: object) -> None:
        with pytest.raises(RecipeError, match="callbacks"):
            as_watcher(callback)


class TestEvaluation:
    def test_adds_the_trees_of_the_round_and_measures(self) -> None:
        rows = TrainingSet(
            DenseBins(np.zeros((2, 1), np.uint8), np.zeros((1, 2), np.uint8)), CUTS, np.array([1.0, 3.0])
        )
        calls = []

        def add_tree(scores: np.ndarray, tree: FittedTree, factor: float, data: TrainingSet) -> None:
            calls.append((factor, data))
            scores[tree.output] += factor * tree.value[0]

        sets = [EvalSet("late", rows, np.zeros((1, 2))), EvalSet("early", rows, np.ones((1, 2)))]
        gap = Measure("gap", lambda scores, data: float(np.abs(scores[0] - data.y).max()))
        evaluation = Evaluation(sets, [gap], add_tree)
        assert evaluation(progress(0)) == {"late": {"gap": pytest.approx(2.9)}, "early": {"gap": pytest.approx(1.9)}}
        assert evaluation(progress(1)) == {"late": {"gap": pytest.approx(2.8)}, "early": {"gap": pytest.approx(1.8)}}
        assert [(factor, data is rows) for factor, data in calls] == [(0.1, True)] * 4
