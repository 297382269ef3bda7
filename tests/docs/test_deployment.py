"""The files of the page on deployment: the services answer what the model predicts, and the images hold what they run.

No image is built; what an image would run is run here.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "deployment.md"
TEXT = PAGE.read_text(encoding="utf-8")
FILES = dict(re.findall(r"^<!-- file: (\S+) -->\n```text\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))


@pytest.fixture
def served(tmp_path: Path) -> tuple[Path, Any, np.ndarray]:
    """A folder with a model and the files of the page; the model; rows, some values missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    model = gb.GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, np.nan_to_num(X[:, 0]) > 0)
    model.save_model(tmp_path / "model.json")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path, model, X[:5]


def as_json(rows: np.ndarray) -> str:
    return json.dumps([[None if np.isnan(value) else value for value in row] for row in rows])


@pytest.mark.slow
def test_the_web_service_answers_what_the_model_predicts(served: tuple[Path, Any, np.ndarray]) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    folder, model, rows = served
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = json.loads(re.search(r"^CMD (\[.*\])$", FILES["Dockerfile"], re.MULTILINE)[1])
    command = [sys.executable, "-m", *command]
    command[command.index("--host") + 1], command[command.index("--port") + 1] = "127.0.0.1", str(port)

    def ask(body: str) -> Any:
        header = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/predict", body.encode(), header)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    service = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert service.poll() is None, service.stderr.read()
            time.sleep(0.1)
        np.testing.assert_array_equal(ask(as_json(rows)), model.predict_proba(rows)[:, 1])
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask("[[1.0, 2.0]]")
        assert refused.value.code == 422
        assert "must have shape (rows, 4)" in refused.value.read().decode()
    finally:
        service.terminate()
        service.communicate(timeout=60)


def test_the_cloud_function_needs_neither_scikit_learn_nor_numba(served: tuple[Path, Any, np.ndarray]) -> None:
    folder, model, rows = served
    (call,) = json.loads(re.search(r"^CMD (\[.*\])$", FILES["Dockerfile.lambda"], re.MULTILINE)[1])
    module, handler = call.split(".")
    script = (
        f"import json, sys; from {module} import {handler} as handler\n"
        "answer = handler(json.load(sys.stdin), None)\n"
        "assert not {'sklearn', 'numba'} & set(sys.modules)\n"
        "print(json.dumps(answer))"
    )
    home = {"HOME": "/nonexistent", "GPUBOOST_CACHE_DIR": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=os.environ | home, check=True, text=True, capture_output=True,
        input=json.dumps({"body": as_json(rows)}),
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert answer["statusCode"] == 200
    np.testing.assert_array_equal(json.loads(answer["body"]), model.predict_proba(rows)[:, 1])


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.lambda"])
def test_an_image_holds_what_it_runs(name: str) -> None:
    text = FILES[name]
    (copied,) = re.findall(r"^COPY (.*) \./$", text, re.MULTILINE)
    program = re.search(r'"(\w+)[:.](?:app|handler)"', text)[1]
    assert set(copied.split()) == {"model.json", f"{program}.py"}
    compile(FILES[f"{program}.py"], program, "exec")
    for kinds in re.findall(r"gpuboost warmup (\w+)", text):
        with pytest.raises(gb.InputError, match=kinds):  # the message of an unknown kind lists those that there are
            gb.warm_up(["no such kind"])


def test_the_configuration_of_triton_fits_the_model_of_the_page() -> None:
    pytest.importorskip("treelite")
    text = FILES["config.pbtxt"]
    assert text.count("[") == text.count("]")
    assert text.count("{") == text.count("}")
    assert re.findall(r"dims: \[ (\d+) \]", text) == ["30", "2"]  # columns and classes of load_breast_cancer
    assert 'serialize("checkpoint.tl")' in TEXT
