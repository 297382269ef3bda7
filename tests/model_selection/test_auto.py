"""``n_estimators="auto"`` and ``learning_rate="auto"``."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import gpuboost as gb
from gpuboost.cli import main
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.errors import InputError, RecipeError
from gpuboost.training import chosen_rounds
from gpuboost.training.parameters import automatic

AUTO: dict[str, Any] = {"n_estimators": "auto", "learning_rate": "auto"}
FEW: dict[str, Any] = {
    "n_estimators": "auto",
    "learning_rate": 0.5,
    "max_depth": 2,
    "early_stopping_rounds": 3,
    "random_state": 0,
    "n_jobs": 1,
}
"""Of a fit that takes little time"""


@pytest.fixture
def noisy(rng: np.random.Generator) -> tuple[Any, Any]:
    """(300, 4) and a target of which two thirds are noise: many rounds are too many."""
    x = rng.normal(size=(300, 4))
    return x, x[:, 0] + np.abs(x[:, 1]) + 2.0 * rng.normal(size=300)


def model_bytes(model: Any) -> bytes:
    return repr(gb.to_dict(model)).encode()


def held_out_mean(make: Any, data: tuple[Any, Any], splits: int, **fit: Any) -> list[float]:
    """Mean of the first metric over fits of 150 rounds that set a fifth aside, by the seeds 0, 1 ..."""
    curves = []
    for seed in range(splits):
        model = make(n_estimators=150, validation_fraction=0.2, random_state=seed, early_stopping_rounds=None)
        curves.append(next(iter(model.fit(*data, **fit).evals_result_["validation_0"].values())))
    return [sum(values) / len(values) for values in zip(*curves, strict=True)]


def best_of(means: list[float], patience: int, sign: float = 1.0, share: float = 0.0) -> int:
    """The number of rounds with the least value, up to where there was no new best for so many rounds."""
    best, since, end = sign * means[0], 0, len(means)
    for i, value in enumerate(means[1:], 2):
        better = best - sign * value > share * abs(means[0])
        best, since = (sign * value, 0) if better else (best, since + 1)
        if since == patience:
            end = i
            break
    assert end < len(means)
    return 1 + int(np.argmin([sign * value for value in means[:end]]))


@pytest.mark.parametrize("own_rule", [True, False])
def test_the_rounds_are_those_of_the_best_mean_curve_and_all_rows_are_fitted(noisy: Any, own_rule: bool) -> None:
    params = FEW if own_rule else FEW | {"early_stopping_rounds": None, "max_depth": 3}
    model = gb.GradientBoostingRegressor(**params).fit(*noisy)
    splits = automatic.n_splits(_plain(300))
    means = held_out_mean(lambda **p: gb.GradientBoostingRegressor(**params | p), noisy, splits)
    rounds = best_of(means, 3) if own_rule else best_of(means, automatic.patience(0.5), 1.0, automatic.LEAST_SHARE)
    assert model.n_iter_ == rounds
    assert model.evals_result_ == {"validation_0": {"rmse": means[:rounds]}}  # of fits in parts, and of whole ones
    assert model.best_iteration_ is None
    assert list(model.fit_report_.seconds) == ["choose", "prepare", "train"]
    plain = gb.GradientBoostingRegressor(**params | {"n_estimators": rounds, "early_stopping_rounds": None}).fit(*noisy)
    assert [tree.value.tolist() for tree in model.ensemble_.trees] == [
        tree.value.tolist() for tree in plain.ensemble_.trees
    ]


def test_no_split_ends_the_choice_by_itself(rng: np.random.Generator) -> None:
    """Each part of the fits goes on to a multiple of the rounds where the first split alone would have stopped."""
    x = rng.uniform(size=(400, 5))
    y = np.sin(6.0 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.normal(size=400)
    few = {"n_estimators": "auto", "learning_rate": 0.2, "max_depth": 3, "early_stopping_rounds": 4, "n_jobs": 1}
    longer = 0
    for seed in range(6):
        model = gb.GradientBoostingRegressor(**few, random_state=seed).fit(x, y)
        alone = [
            gb.GradientBoostingRegressor(
                **few | {"n_estimators": 500}, random_state=seed + i, validation_fraction=0.2
            ).fit(x, y).n_iter_
            for i in range(3)
        ]  # fmt: skip
        longer += model.n_iter_ > min(alone) + 4
    assert longer >= 2


def test_the_mean_of_the_splits_is_a_number() -> None:
    with pytest.raises(InputError, match="eval_metric: the mean of rmse is nan in round 1"):
        gb.callbacks.EarlyStopping(4).followed("rmse", [1.0, float("nan")], greater_is_better=False)


def _plain(n: int) -> RowMetadata:
    return RowMetadata.of(n)


def test_an_eval_set_decides_in_place_of_a_split(noisy: Any) -> None:
    x, y = noisy
    known = {"eval_set": (x[200:], y[200:])}
    model = gb.GradientBoostingRegressor(**FEW).fit(x[:200], y[:200], **known)
    plain = gb.GradientBoostingRegressor(**FEW | {"n_estimators": automatic.MOST_ROUNDS}).fit(x[:200], y[:200], **known)
    assert model.best_iteration_ == plain.best_iteration_ == model.n_iter_ - 1
    assert model.evals_result_ == plain.evals_result_
    patient = FEW | {"early_stopping_rounds": None, "callbacks": [gb.callbacks.EarlyStopping(3)]}
    assert gb.GradientBoostingRegressor(**patient).fit(x[:200], y[:200], **known).n_iter_ == model.n_iter_


def test_a_callback_that_stops_early_has_its_rule_and_others_see_the_last_fit_only(noisy: Any) -> None:
    seen: list[int] = []
    stopping = gb.callbacks.EarlyStopping(3)
    own = FEW | {"early_stopping_rounds": None, "callbacks": [lambda record: seen.append(record.round), stopping]}
    model = gb.GradientBoostingRegressor(**own).fit(*noisy)
    assert model.n_iter_ == gb.GradientBoostingRegressor(**FEW).fit(*noisy).n_iter_
    assert seen == list(range(model.n_iter_))


def test_classes_weights_offsets_and_datasets(noisy: Any) -> None:
    x, y = noisy
    weight, offset = np.r_[np.ones(200), np.zeros(100)], 0.1 * x[:, 2]
    labels = np.digitize(y, [-1.0, 1.0])
    for make, target, more in (
        (gb.GradientBoostingRegressor, y, {"init_score": offset}),
        (gb.GradientBoostingClassifier, labels, {}),
        (gb.GradientBoostingClassifier, labels > 0, {}),
    ):
        with_zeros = make(**FEW).fit(x, target, sample_weight=weight, **more)
        kept = {name: value[:200] for name, value in more.items()}
        without = make(**FEW).fit(x[:200], target[:200], **kept)
        assert model_bytes(with_zeros) == model_bytes(without)
        data = gb.Dataset(x[:200], target[:200], **kept)
        assert model_bytes(make(**FEW).fit(data)) == model_bytes(without)


def test_queries_are_set_aside_whole(rng: np.random.Generator) -> None:
    x = rng.normal(size=(240, 3))
    y = np.clip(np.round(x[:, 0] + rng.normal(size=240)), 0, 3)
    group = np.repeat(np.arange(24), 10)
    model = gb.GradientBoostingRanker(**FEW).fit(x, y, group=group)
    splits = automatic.n_splits(RowMetadata.of(240, group=group))
    means = held_out_mean(lambda **p: gb.GradientBoostingRanker(**FEW | p), (x, y), splits, group=group)
    assert model.n_iter_ == best_of(means, 3, -1.0)


def test_sequences_of_trees_have_as_many_rounds_each(rng: np.random.Generator) -> None:
    pd = pytest.importorskip("pandas")
    code = rng.integers(0, 12, 200)
    frame = pd.DataFrame({"c": pd.Categorical([f"c{i}" for i in code])})
    encoding = gb.OrderedTargetStatistics(permutations=2)
    model = gb.GradientBoostingRegressor(**FEW, categorical_encoding=encoding)
    model.fit(frame, np.sin(code) + 0.5 * rng.normal(size=200))
    assert model.n_iter_ % 2 == 0
    assert len(model.evals_result_["validation_0"]["rmse"]) == model.n_iter_


@pytest.mark.slow
@pytest.mark.parametrize("kind", [gb.GradientBoostingRegressor, gb.GradientBoostingClassifier])
def test_every_machine_has_the_same_bytes(kind: Any, noisy: Any) -> None:
    x, y = noisy[0][:120], noisy[1][:120]
    y = y if kind is gb.GradientBoostingRegressor else y > 0.5
    params = FEW | {"sampling": gb.MVS(0.6), "learners": 2, "n_jobs": None}
    with emulated_gpu():
        device = kind(**params, device="cuda").fit(x, y)
    hosts = [kind(**params | {"n_jobs": threads}, device="cpu").fit(x, y) for threads in (1, 3)]
    assert device.fit_report_.device == "cuda:0"
    assert {model_bytes(model) for model in (device, *hosts)} == {model_bytes(device)}
    assert device.evals_result_ == hosts[0].evals_result_


def test_splits_go_on_at_the_same_time_with_the_same_bytes(noisy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, threads = chosen_rounds.train, list[str]()

    def train(job: Any) -> Any:
        threads.append(f"{threading.current_thread().name.split('_')[0]} {job.threads}")
        return plain(job)

    monkeypatch.setattr(chosen_rounds, "train", train)
    slow = FEW | {"learning_rate": 0.05, "early_stopping_rounds": 40}
    found = {}
    for n_jobs in (1, 2):
        threads.clear()
        found[n_jobs] = gb.GradientBoostingRegressor(**slow | {"n_jobs": n_jobs}).fit(*noisy)
        at_once = "MainThread 1" if n_jobs == 1 else "gpuboost-fit 1"  # once it is known that kernels repeat the rounds
        parts = len(threads) // 3 - 1
        assert threads == [f"MainThread {n_jobs}"] * 3 + [at_once] * 3 * parts
        assert parts >= 1
    assert model_bytes(found[1]) == model_bytes(found[2])
    assert found[1].evals_result_ == found[2].evals_result_


def test_the_seed_decides(noisy: Any) -> None:
    first, again, other = (gb.GradientBoostingRegressor(**FEW | {"random_state": s}).fit(*noisy) for s in (1, 1, 2))
    assert model_bytes(first) == model_bytes(again)
    assert first.evals_result_ != other.evals_result_
    drawn = gb.GradientBoostingRegressor(**FEW | {"random_state": np.random.RandomState(0)}).fit(*noisy)
    seeded = gb.GradientBoostingRegressor(**FEW | {"random_state": drawn.fit_report_.seed}).fit(*noisy)
    assert drawn.evals_result_ == seeded.evals_result_


def test_the_model_file_a_pickle_a_clone_and_a_search_keep_it(noisy: Any, tmp_path: Path) -> None:
    model = gb.GradientBoostingRegressor(**FEW | {"learning_rate": "auto"}).fit(*noisy)
    model.save_model(tmp_path / "model.json")
    for copy in (gb.load_model(tmp_path / "model.json"), pickle.loads(pickle.dumps(model)), model[:]):
        assert copy.get_params()["n_estimators"] == copy.get_params()["learning_rate"] == "auto"
        assert (copy.n_iter_, copy.learning_rate_) == (model.n_iter_, model.learning_rate_)
        assert copy.predict(noisy[0]).tobytes() == model.predict(noisy[0]).tobytes()
    assert model_bytes(gb.load_model(tmp_path / "model.json")) == model_bytes(model)
    assert not hasattr(clone(model), "learning_rate_")
    search = GridSearchCV(gb.GradientBoostingRegressor(**FEW), {"max_depth": [1, 2]}, cv=2).fit(*noisy)
    assert search.best_estimator_.n_iter_ > 0
    again = model.refit(*noisy, decay=0.0)
    np.testing.assert_allclose(again.predict(noisy[0]), model.predict(noisy[0]), rtol=1e-12)
    assert gb.estimate_memory(300, 4, estimator=model).total > 0


def test_the_rate_of_a_plain_fit_is_its_parameter(noisy: Any) -> None:
    model = gb.GradientBoostingRegressor(n_estimators=2, learning_rate=0.25).fit(*noisy)
    assert model.learning_rate_ == 0.25
    assert "learning_rate" not in gb.to_dict(model)["extra"]


def test_rules_of_rates_splits_and_patience() -> None:
    assert [automatic.n_splits(_plain(n)) for n in (100, 2_999, 5_000, 10_000)] == [3, 3, 2, 1]
    rates = [automatic.learning_rate(n, None) for n in (10, 1_000, 100_000, 10**8)]
    assert rates == sorted(rates)
    few = [automatic.learning_rate(1_000, rounds) for rounds in (10, 100, 1_000, 100_000)]
    assert few == sorted(few, reverse=True)
    assert automatic.learning_rate(5_000, 100) == 0.1
    assert [automatic.patience(rate) for rate in (0.03, 1.0, 0.0, None)] == [100, 20, 30, 30]
    assert all(0.0 < rate <= 1.0 for rate in (*rates, *few))
    assert RowMetadata.of(3, np.array([2.0, 0.0, 3.0])).n_counted == 5
    assert RowMetadata.of(3, np.array([0.5, 0.0, 3.0])).n_counted == 2


def test_a_resumed_fit_has_the_numbers_of_its_checkpoint(noisy: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "checkpoint.json")
    whole = gb.GradientBoostingRegressor(**FEW | {"learning_rate": "auto"}).fit(*noisy)

    def interrupt(record: Any) -> bool:
        if record.round == 3:
            raise KeyboardInterrupt
        return False

    model = gb.GradientBoostingRegressor(**FEW | {"learning_rate": "auto"})
    model.set_params(callbacks=[gb.callbacks.Checkpoint(place, every=2), interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(*noisy)
    resumed = model.set_params(callbacks=()).fit(*noisy, resume_from=place)
    assert model_bytes(resumed) == model_bytes(whole)


def test_a_continued_model_is_judged_by_an_eval_set(noisy: Any) -> None:
    x, y = noisy
    first = gb.GradientBoostingRegressor(n_estimators=2, random_state=0).fit(x[:200], y[:200])
    model = gb.GradientBoostingRegressor(**FEW).fit(x[:200], y[:200], init_model=first, eval_set=(x[200:], y[200:]))
    assert model.n_iter_ > 2
    with pytest.raises(RecipeError, match=r"n_estimators: 'auto' needs rows that the model has not seen"):
        gb.GradientBoostingRegressor(**FEW).fit(x, y, init_model=first)
    with pytest.raises(RecipeError, match="n_estimators: with warm_start=True"):
        first.set_params(**FEW, warm_start=True).fit(x, y)


def test_cross_validation(noisy: Any) -> None:
    model = gb.GradientBoostingRegressor(**FEW)
    found = gb.cv(model, *noisy, folds=2, refit=True)
    assert found.model is not None
    assert found.model.n_iter_ == found.best_iteration_ + 1
    in_step = gb.cv(model.set_params(learning_rate="auto"), *noisy, folds=2, early_stopping_rounds=3)
    assert [one.n_iter_ for one in in_step.models] == [in_step.best_iteration_ + 1] * 2
    assert in_step.models[0].learning_rate == "auto"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_estimators": "many"}, "n_estimators: must be an integer of at least 0, or 'auto'"),
        ({"learning_rate": "slow"}, "learning_rate: must be a finite number above 0, or 'auto'"),
        ({"langevin": gb.Langevin()}, "n_estimators: 'auto' picks the best iterate"),
        ({"langevin": gb.Langevin(), "n_estimators": 5, "learning_rate": "auto"}, "learning_rate: 'auto' picks"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds"),
        ({"validation_fraction": 1.5}, "validation_fraction: must be"),
        ({"learning_rate": [0.1] * 60}, "learning_rate: a list has a rate for each round of the model, 5000 here"),
        (
            {"early_stopping_rounds": None, "callbacks": [gb.callbacks.EarlyStopping(3, metric="mae")]},
            "metric: early stopping by 'mae', of which the fit has none",
        ),
    ],
)
def test_wrong_parameters(params: Any, message: str, noisy: Any) -> None:
    model = gb.GradientBoostingRegressor(**FEW | params)
    with pytest.raises(RecipeError, match=message):
        model.fit(*noisy)
    if not params.keys() & {"validation_fraction", "early_stopping_rounds"}:
        assert model.check(*noisy).kind == "refused"


def test_too_few_rows_to_set_aside() -> None:
    with pytest.raises(InputError, match="n_estimators: 'auto' sets rows aside to choose by, and cannot"):
        gb.GradientBoostingClassifier(**FEW).fit(np.zeros((10, 1)), [0] * 9 + [1])


def test_the_command_line_sets_rows_aside_of_the_training_rows(
    noisy: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, model = tmp_path / "rows.csv", tmp_path / "model.json"
    np.savetxt(table, np.column_stack(noisy), delimiter=",", header="a,b,c,d,y", comments="")
    options = ["--n-estimators", "auto", "--learning-rate", "auto", "--early-stopping-rounds", "3", "--max-depth", "2"]
    assert main(["train", str(table), "--target", "y", "--model", str(model), "--seed", "0", *options]) == 0
    shown = capsys.readouterr().out
    found = gb.load_model(model)
    assert f"{found.n_iter_} rounds, chosen on rows set aside" in shown
    assert found.n_estimators == "auto"
    assert main(["train", str(table), "--target", "y", "--eval", "0.2", *options]) == 0
    assert "held-out rows" in capsys.readouterr().out


@pytest.mark.slow
def test_the_preset_best(noisy: Any) -> None:
    assert gb.presets.best()["growth"] == gb.presets.best(10_000)["growth"] == "depthwise"
    params = gb.presets.best(len(noisy[0]))
    assert params["growth"] == "oblivious"
    quick = params | {"learning_rate": 0.5, "early_stopping_rounds": 2, "max_depth": 2}
    assert gb.GradientBoostingRegressor(**quick, random_state=0).fit(*noisy).n_iter_ > 0
    for wrong in (0, "many", True):
        with pytest.raises(RecipeError, match="n_rows: must be None or an integer of at least 1"):
            gb.presets.best(wrong)
        with pytest.raises(RecipeError, match="n_classes: must be None or an integer of at least 2"):
            gb.presets.best(n_classes=wrong)


@pytest.mark.slow
def test_the_preset_best_of_many_classes(noisy: Any) -> None:
    x, classes = noisy[0], np.arange(len(noisy[0])) % 5
    assert gb.presets.best(len(x), 4) == gb.presets.best(len(x))
    quick = {"n_estimators": 3, "max_depth": 2, "learning_rate": 0.5, "random_state": 0}
    model = gb.GradientBoostingClassifier(**gb.presets.best(len(x), 5) | quick).fit(x, classes)
    assert (model.growth, model.multi_output, model.min_child_weight) == ("depthwise", "one_tree", 0.0)
    shapes = [tree.nodes.feature.tobytes() for tree in model.ensemble_.trees]
    assert len(set(shapes[:5])) == 1


@pytest.mark.parametrize("n", [4, 10, 30])
def test_rows_without_noise_have_some_hundred_rounds(n: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=(n, 2))
    assert gb.GradientBoostingRegressor(n_estimators="auto", random_state=0, n_jobs=1).fit(x, x[:, 0]).n_iter_ < 700


def test_the_users_own_rule_has_no_least_gain() -> None:
    x = np.repeat([0.0, 1.0], 40)[:, None]
    few = {**FEW, "learning_rate": 0.3, "early_stopping_rounds": 5, "reg_lambda": 0.0}
    rule = gb.callbacks.EarlyStopping(5).with_least_share(1e-2)
    assert rule.with_rounds(7).rounds == 7
    assert rule.rounds == 5
    own = gb.GradientBoostingRegressor(**few).fit(x, x[:, 0]).n_iter_
    stopped = gb.GradientBoostingRegressor(**few | {"early_stopping_rounds": None, "callbacks": [rule]})
    assert stopped.fit(x, x[:, 0]).n_iter_ < own
