"""``device="cuda"`` through the public names, on an emulated GPU: the same bytes as the CPU's, wherever data live."""

from __future__ import annotations

import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from emulator import FakeCupy, emulated_gpu
from scipy import sparse
from support.examples import daily

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu, use
from gpuboost.cli import main

FEW = {"n_estimators": 4, "max_depth": 3, "random_state": 0}


@pytest.fixture
def gpu():
    with emulated_gpu() as cupy:
        yield cupy


@pytest.fixture
def rows(rng):
    """(400, 6) with missing values and ties, a target of several features, labels of three kinds."""
    x = rng.normal(size=(400, 6))
    x[:, 4] = np.round(x[:, 4])
    y = np.sin(2 * x[:, 0]) + x[:, 1] * (x[:, 2] > 0) + 0.1 * rng.normal(size=400)
    x[rng.random(x.shape) < 0.05] = np.nan
    return SimpleNamespace(x=x, y=y, three=np.array(["low", "mid", "top"])[np.digitize(y, [-0.5, 0.5])])


def bytes_of(model, folder):
    model.save_model(folder / "model.json")
    return (folder / "model.json").read_bytes()


def check_same(make, folder, fit):
    """Fits on both machines; the GPU's model, whose bytes are the CPU's."""
    host, device = (fit(make(device=device)) for device in ("cpu", "cuda"))
    assert device.fit_report_.device == "cuda:0"
    assert bytes_of(device, folder) == bytes_of(host, folder)
    assert device.evals_result_ == host.evals_result_
    return device


PARAMETERS = {
    "plain": {},
    "drawn rows": {"sampling": 0.5, "n_estimators": 6},
    "rows drawn by importance": {"sampling": gb.MVS(0.3), "n_estimators": 6},
    "rows drawn by losses": {"sampling": gb.ImportanceSampling(rho=0.5, score="loss", floor=0.1), "n_estimators": 6},
    "rows drawn by rank": {"sampling": gb.GOSS(), "n_estimators": 6},
    "control variates": {"sampling": gb.ImportanceSampling(0.3, variance_control="node"), "n_estimators": 6},
    "drawn features": {"learners": 3, "n_estimators": 6},
    "leaf-wise": {"growth": "leafwise", "max_leaves": 9, "max_depth": None},
    "oblivious": {"growth": "oblivious"},
    "heavy leaves": {"min_samples_leaf": 20, "reg_lambda": 0.0, "min_split_gain": 0.1},
    "few bins": {"max_bins": 7},
    "a stump": {"max_depth": 1},
    "constraints": {"monotonic_cst": [1, 1, 0, -1, 0, 0], "n_estimators": 6},
    "constraints on medians": {"monotonic_cst": {0: 1, 2: -1}, "loss": "absolute_error", "sampling": 0.5},
    "no trees": {"n_estimators": 0},
}


@pytest.mark.parametrize("case", daily(list(PARAMETERS), 5))
def test_regression(gpu, rows, tmp_path, case):
    def make(**given):
        return gb.GradientBoostingRegressor(**{**FEW, **PARAMETERS[case], **given})

    model = check_same(make, tmp_path, lambda model: model.fit(rows.x, rows.y))
    host = gb.load_model(tmp_path / "model.json")
    assert np.array_equal(model.predict(rows.x), host.set_params(device="cpu").predict(rows.x))


@pytest.mark.parametrize("rule", [0.4, gb.MVS(0.3), gb.GOSS(), gb.smart_second_order(0.3), gb.WeightTrimming(0.6)])
def test_what_was_drawn_is_reported(gpu, rows, rule):
    """As on the CPU; but effective rows are those of the last round."""
    host, device = (
        gb.GradientBoostingClassifier(**{**FEW, "n_estimators": 7}, sampling=rule, device=device)
        .fit(rows.x, rows.y > 0, sample_weight=np.arange(400) % 3 + 1)
        .fit_report_.sampling
        for device in ("cpu", "cuda")
    )
    assert device.rates == host.rates
    assert device.largest_weights == host.largest_weights
    assert device.never == host.never
    assert device.effective == host.effective[-1:]
    assert device.effective_rows == host.effective_rows
    assert device.by_leaf == host.by_leaf[-1:]
    assert str(device) == str(host)


@pytest.mark.parametrize("loss", ["absolute_error", "huber", "quantile", "poisson", "tweedie"])
def test_losses(gpu, rows, tmp_path, loss):
    y = np.exp(rows.y)
    check_same(lambda **given: gb.GradientBoostingRegressor(loss, **FEW, **given), tmp_path, lambda m: m.fit(rows.x, y))


def test_a_loss_of_ones_own(gpu, rows, tmp_path):
    def value(y, f):
        return (y - f) ** 4

    def gradient(y, f):
        return 4 * (f - y) ** 3

    def hessian(y, f):
        return 12 * (f - y) ** 2

    loss = gb.losses.custom(value, gradient, hessian, start="minimise", convex=True)
    check_same(
        lambda **given: gb.GradientBoostingRegressor(loss, **FEW, **given), tmp_path, lambda m: m.fit(rows.x, rows.y)
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(gpu, rows, tmp_path, n_classes):
    y = rows.y > 0 if n_classes == 2 else rows.three
    model = check_same(
        lambda **given: gb.GradientBoostingClassifier(**FEW, **given), tmp_path, lambda m: m.fit(rows.x, y)
    )
    host = gb.load_model(tmp_path / "model.json").set_params(device="cpu")
    for ask in ("predict", "predict_proba", "decision_function", "apply"):
        assert np.array_equal(getattr(model, ask)(rows.x), getattr(host, ask)(rows.x)), ask
    for one, other in zip(model.staged_predict_proba(rows.x), host.staged_predict_proba(rows.x), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(model.predict_contributions(rows.x), host.predict_contributions(rows.x))
    assert np.array_equal(model.predict_interactions(rows.x), host.predict_interactions(rows.x))


@pytest.mark.parametrize("kind", ["whole", "fractions", "some zero"])
def test_weights(gpu, rows, tmp_path, rng, kind):
    weight = rng.integers(0 if kind == "some zero" else 1, 4, len(rows.y)).astype(np.float64)
    weight = weight * (rng.random(len(weight)) if kind == "fractions" else 1.0)
    check_same(
        lambda **given: gb.GradientBoostingClassifier(
            **FEW, class_weight="balanced" if kind == "whole" else None, **given
        ),
        tmp_path,
        lambda model: model.fit(rows.x, rows.three, sample_weight=weight),
    )


def test_categories(gpu, rows, tmp_path, rng):
    import pandas as pd

    frame = pd.DataFrame(rows.x[:, :3], columns=["a", "b", "c"])
    frame["town"] = pd.Categorical(rng.choice(["Ulm", "Bonn", "Jena", "Kiel", None], len(frame)))
    frame["street"] = pd.Categorical(rng.integers(0, 300, len(frame)).astype(str))
    y = rows.y + (frame["town"] == "Jena")
    model = check_same(
        lambda **given: gb.GradientBoostingRegressor(**FEW, **given), tmp_path, lambda m: m.fit(frame, y)
    )
    assert np.array_equal(model.predict(frame), gb.load_model(tmp_path / "model.json").predict(frame))


@pytest.mark.parametrize("loss", ["lambdamart", "pairwise_logistic"])
def test_rankings(gpu, rows, tmp_path, loss):
    group, labels = np.repeat([5, 3, 9, 1], [150, 1, 49, 200]), np.digitize(rows.y, [-0.5, 0.5])
    watched = rows.x[:201], labels[:201][::-1], group[:201]

    def fit(model):
        return model.fit(rows.x, labels, group=group, eval_set=watched)

    def make(**given):
        return gb.GradientBoostingRanker(loss, eval_at=[3, 10], sampling=0.7, early_stopping_rounds=3, **FEW | given)

    device = check_same(make, tmp_path, fit)
    assert device.predict(rows.x).tobytes() == fit(make(device="cpu")).predict(rows.x).tobytes()


@pytest.mark.slow
def test_early_stopping_and_continued_training(gpu, rows, tmp_path):
    x, y, x_test, y_test = rows.x[:300], rows.y[:300], rows.x[300:], rows.y[300:]

    def fit(model):
        return model.fit(x, y, eval_set={"held out": (x_test, y_test, np.full(100, 0.3)), "seen": (x, y)})

    def make(**given):
        return gb.GradientBoostingRegressor(
            n_estimators=25,
            learning_rate=0.5,
            max_depth=4,
            early_stopping_rounds=3,
            eval_metric=["rmse", "mae", "r2"],
            **given,
        )

    model = check_same(make, tmp_path, fit)
    assert model.n_iter_ == model.best_iteration_ + 1
    again = check_same(
        lambda **given: gb.GradientBoostingRegressor(n_estimators=3, **given),
        tmp_path,
        lambda m: m.fit(x, y, init_model=model),
    )
    assert again.n_iter_ == model.n_iter_ + 3
    check_same(
        lambda **given: gb.GradientBoostingClassifier(
            n_estimators=8,
            early_stopping_rounds=2,
            validation_fraction=0.3,
            eval_metric=["auc", "logloss"],
            random_state=1,
            **given,
        ),
        tmp_path,
        lambda model: model.fit(rows.x, rows.y > 0),
    )


def test_noise(gpu, rows, tmp_path):
    def make(**given):
        return gb.GradientBoostingRegressor(
            **FEW, langevin=gb.Langevin(inverse_temperature=500.0, shrinkage=0.01), **given
        )

    check_same(make, tmp_path, lambda model: model.fit(rows.x, rows.y))


def test_sparse_rows(gpu, tmp_path, rng):
    x = sparse.random(300, 40, 0.1, format="csr", random_state=3)
    y = np.asarray(x[:, :5].sum(axis=1)).ravel() + 0.1 * rng.normal(size=300)
    model = check_same(lambda **given: gb.GradientBoostingRegressor(**FEW, **given), tmp_path, lambda m: m.fit(x, y))
    assert np.array_equal(model.predict(x), gb.load_model(tmp_path / "model.json").predict(x))


def test_a_dataset_holds_its_bins_once_on_each_machine(gpu, rows, tmp_path):
    data = gb.Dataset(rows.x, rows.y)
    check_same(lambda **given: gb.GradientBoostingRegressor(**FEW, **given), tmp_path, lambda m: m.fit(data))
    binned = gpu.counts["kernel bin"]
    assert binned > 0
    gb.GradientBoostingRegressor(**FEW, device="cuda").fit(data)
    assert gpu.counts["kernel bin"] == binned


def test_each_thread_keeps_a_stream_of_its_own_and_datasets_serve_all(gpu, rows, tmp_path):
    assert open_gpu("cuda:0") is open_gpu("cuda:0")
    data = gb.Dataset(rows.x, rows.y)

    def run():
        model = gb.GradientBoostingRegressor(**FEW, device="cuda").fit(data)
        return open_gpu("cuda:0"), model.predict(rows.x).tobytes()

    with ThreadPoolExecutor(1) as pool:
        (mine, one), (other, two) = run(), pool.submit(run).result()
    assert mine is not other
    assert one == two


# data that live on the device


def on_gpu(host):
    return open_gpu("cuda:0").upload(np.asarray(host))


def foreign(array):
    """As torch and others hand over their arrays."""
    return SimpleNamespace(__dlpack_device__=lambda: (2, 0), __dlpack__=lambda: array, shape=array.shape)


def interface(array):
    return SimpleNamespace(__cuda_array_interface__=array.__cuda_array_interface__, kept=array, shape=array.shape)


@pytest.mark.parametrize("as_given", [lambda x: x, foreign, interface], ids=["cupy", "dlpack", "interface"])
@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_arrays_of_the_device_are_learned_from_where_they_are(gpu, rows, tmp_path, as_given, device):
    host = gb.GradientBoostingRegressor(**FEW, device="cpu").fit(rows.x, rows.y)
    x, y = as_given(on_gpu(rows.x)), as_given(on_gpu(rows.y))
    model = gb.GradientBoostingRegressor(**FEW, device=device).fit(x, y, eval_set=(x, y))
    assert bytes_of(model, tmp_path) == bytes_of(host, tmp_path)
    assert model.score(x, y) == host.score(rows.x, rows.y)
    answer = model.predict(x)
    assert isinstance(answer, FakeCupy.ndarray)
    assert answer.get().tobytes() == host.predict(rows.x).tobytes()


def test_only_sampled_rows_come_to_the_host(gpu, rows, monkeypatch):
    """Of many rows: here those from which cuts are made."""
    monkeypatch.setattr("gpuboost.data.cuts.SAMPLE_ROWS", 50)
    moved = []

    def seen(array, *args, **kwargs):
        moved.append(array.shape)
        return get(array, *args, **kwargs)

    get = FakeCupy.ndarray.get
    x, y = on_gpu(rows.x), on_gpu(rows.y)
    monkeypatch.setattr(FakeCupy.ndarray, "get", seen)
    model = gb.GradientBoostingRegressor(**FEW, device="cuda").fit(x, y, sample_weight=np.r_[0.0, np.ones(399)])
    assert max(shape[0] for shape in moved if len(shape) == 2) == 50
    host = gb.GradientBoostingRegressor(**FEW, device="cpu").fit(rows.x, rows.y, sample_weight=np.r_[0.0, np.ones(399)])
    assert model.predict(x).get().tobytes() == host.predict(rows.x).tobytes()


def test_classes_are_answered_on_the_device_where_they_are_numbers(gpu, rows):
    x = on_gpu(rows.x)
    for y, kind in ((rows.three, np.ndarray), ((rows.y > 0).astype(int), FakeCupy.ndarray)):
        model = gb.GradientBoostingClassifier(**FEW, device="cuda").fit(x, y)
        host = gb.GradientBoostingClassifier(**FEW, device="cpu").fit(rows.x, y)
        assert model.score(x, y) == host.score(rows.x, y)
        assert isinstance(model.predict(x), kind)
        for ask in ("predict_proba", "decision_function", "apply", "predict_contributions", "predict_interactions"):
            answer = getattr(model, ask)(x)
            assert isinstance(answer, FakeCupy.ndarray), ask
            assert answer.get().tobytes() == np.ascontiguousarray(getattr(host, ask)(rows.x)).tobytes(), ask
        (*_, last) = model.staged_predict_proba(x)
        assert last.get().tobytes() == host.predict_proba(rows.x).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_categorical_columns_of_the_device(gpu, rows, tmp_path, monkeypatch, rng, dtype):
    """Only they come to the host, besides the rows from which cuts are made."""
    monkeypatch.setattr("gpuboost.data.cuts.SAMPLE_ROWS", 50)
    x = rows.x.astype(dtype)
    x[:, 1], x[:, 5] = rng.choice([-3.0, 0.5, 7.0, 8.0, np.nan], 400), rng.integers(0, 300, 400)
    y = rows.y + 2.0 * (x[:, 1] == 7.0)
    moved, get = [], FakeCupy.ndarray.get

    def seen(array, *args, **kwargs):
        moved.append(array.shape)
        return get(array, *args, **kwargs)

    there, given = on_gpu(x), {**FEW, "categorical_features": [1, 5]}
    monkeypatch.setattr(FakeCupy.ndarray, "get", seen)
    model = gb.GradientBoostingRegressor(**given, device="cuda").fit(there, on_gpu(y), eval_set=(there, on_gpu(y)))
    assert {shape for shape in moved if len(shape) == 2 and shape[1] == 6} == {(50, 6)}
    host = gb.GradientBoostingRegressor(**given, device="cpu").fit(x, y, eval_set=(x, y))
    assert bytes_of(model, tmp_path) == bytes_of(host, tmp_path)
    unseen = x.copy()
    unseen[:9, 1] = 99.0  # a category that was not there
    assert model.predict(on_gpu(unseen)).get().tobytes() == host.predict(unseen).tobytes()
    assert np.array_equal(there.get(), x, equal_nan=True)


def test_rows_set_aside_stay_on_the_device(gpu, rows):
    given = {**FEW, "validation_fraction": 0.25}
    one = gb.GradientBoostingRegressor(**given, device="cuda").fit(on_gpu(rows.x), on_gpu(rows.y))
    other = gb.GradientBoostingRegressor(**given, device="cpu").fit(rows.x, rows.y)
    assert one.evals_result_ == other.evals_result_


def test_what_cannot_be_done_with_data_on_the_device(gpu, rows):
    x = on_gpu(rows.x)
    with pytest.raises(gb.DeviceError, match=r"X is on cuda:0, and device='cpu'.*X\.get\(\)"):
        gb.GradientBoostingRegressor(device="cpu").fit(x, rows.y)
    model = gb.GradientBoostingRegressor(**FEW, device="cpu").fit(rows.x, rows.y)
    with pytest.raises(gb.DeviceError, match="X is on cuda:0"):
        model.predict(x)
    with pytest.raises(gb.DeviceError, match="X is on cuda:0"):
        model.fit(rows.x, rows.y, eval_set=(x, rows.y))
    with pytest.raises(gb.InputError, match="X: a ndarray on a GPU goes to fit"):
        gb.Dataset(x, rows.y)
    broken = rows.x.copy()
    broken[7, 3] = -np.inf
    with pytest.raises(gb.InputError, match="row 7 of column 3"):
        gb.GradientBoostingRegressor(device="cuda").fit(on_gpu(broken), rows.y)
    with pytest.raises(ValueError, match="expecting 6 features"):
        gb.GradientBoostingRegressor(**FEW, device="cuda").fit(x, rows.y).predict(on_gpu(rows.x[:, :4].copy()))


# other machines


def test_a_model_of_a_gpu_predicts_without_one(gpu, rows, tmp_path):
    model = gb.GradientBoostingRegressor(**FEW, device="cuda").fit(rows.x, rows.y)
    expected = model.predict(rows.x)
    model.save_model(tmp_path / "model.json")
    stored = pickle.dumps(model)
    with use(SimpleNamespace(cuda=no_gpu())):
        assert np.array_equal(gb.load_model(tmp_path / "model.json").predict(rows.x), expected)
        restored = pickle.loads(stored)
        with pytest.warns(UserWarning, match="'cuda' is not usable; .*The CPU predicts instead"):
            assert np.array_equal(restored.predict(rows.x), expected)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.array_equal(restored.set_params(device="cpu").predict(rows.x), expected)
        with pytest.raises(gb.DeviceError, match="'cuda' is not usable"):
            restored.set_params(device="cuda").fit(rows.x, rows.y)


def no_gpu():
    calls = SimpleNamespace(driverGetVersion=lambda: 13_000, runtimeGetVersion=lambda: 13_000)
    return SimpleNamespace(runtime=calls, is_available=lambda: False)


def test_auto_takes_the_gpu_if_it_is_worth_it_and_can(gpu, rows, monkeypatch):
    small = gb.GradientBoostingRegressor(**FEW).fit(rows.x, rows.y).fit_report_
    assert small.device == "cpu"
    assert "2,400 values are fewer than" in small.device_reason
    monkeypatch.setenv("GPUBOOST_AUTO_CELLS", "2400")
    large = gb.GradientBoostingRegressor(**FEW).fit(rows.x, rows.y).fit_report_
    assert large.device == "cuda:0"
    assert "first usable GPU for 2,400 values: emulated GPU" in large.device_reason

    def refuse(functions, *, beside=False):
        raise gb.DeviceError("loss: a GPU cannot run it")

    monkeypatch.setattr(gpu.linker, "check", refuse)
    refused = gb.GradientBoostingRegressor(**FEW).fit(rows.x, rows.y).fit_report_
    assert refused.device == "cpu"
    assert "device='auto' took the CPU; on cuda:0: loss: a GPU cannot run it" in refused.device_reason
    with pytest.raises(gb.DeviceError, match="loss: a GPU cannot run it"):
        gb.GradientBoostingRegressor(device="cuda", **FEW).fit(rows.x, rows.y)


def test_a_training_that_does_not_fit_is_refused_with_the_numbers(rows, monkeypatch):
    with emulated_gpu(capacity=1 << 20):
        with pytest.raises(
            gb.DeviceError, match=r"cuda:0 has 1.0 MiB free, and the training takes \d.*bytes for each of 400"
        ):
            gb.GradientBoostingRegressor(device="cuda").fit(rows.x, rows.y)
        monkeypatch.setenv("GPUBOOST_AUTO_CELLS", "1")
        report = gb.GradientBoostingRegressor(n_estimators=2).fit(rows.x, rows.y).fit_report_
        assert (report.device, "1.0 MiB free" in report.device_reason) == ("cpu", True)


def test_command_line(gpu, rows, tmp_path, capsys):
    table = tmp_path / "rows.csv"
    np.savetxt(table, np.c_[rows.x, rows.y], delimiter=",", header="a,b,c,d,e,f,y", comments="")
    files = []
    for device in ("cpu", "cuda"):
        model = tmp_path / f"{device}.json"
        arguments = [
            "train",
            str(table),
            "--target",
            "y",
            "--n-estimators",
            "3",
            "--device",
            device,
            "--model",
            str(model),
        ]
        assert main(arguments) == 0
        files.append(model.read_bytes())
    assert files[0] == files[1]
    assert main(["info"]) == 0
    assert "emulated GPU" in capsys.readouterr().out


@pytest.mark.slow
def test_the_python_of_the_page_runs(gpu, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "gpu.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": "page"})
    assert (tmp_path / "device.json").read_bytes() == (tmp_path / "host.json").read_bytes()


def test_the_figures_of_the_page_are_the_estimates():
    page = (Path(__file__).parents[2] / "docs" / "gpu.md").read_text()
    lines = re.findall(r"^\| ([\d,]+) x ([\d,]+), (\d) \| ([\d.]+) \| ([\d,]+) \|$", page, re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        n, d, depth, gib, per_row = (float(number.replace(",", "")) for number in line)
        with use(SimpleNamespace(cuda=no_gpu())):
            told = gb.estimate_memory(int(n), int(d), max_depth=int(depth))
        assert told.total / 2**30 == pytest.approx(gib, abs=0.006)
        assert told.bytes_per_row == pytest.approx(per_row, abs=0.6)
