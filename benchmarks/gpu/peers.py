"""Other libraries' GPU modes with our settings: of the installed ones; those built without CUDA give an error.

Each is measured in a process of its own: one that hangs, or leaves memory on the GPU, costs no other its figures.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from gpuboost.benchmarks.harness.store import Array

Fit = Callable[[int], Any]
Library = Callable[[Array, Array], Fit]


def peers(depth: int, rate: float, threads: int) -> dict[str, Library]:
    """Every installed library that has a GPU mode."""
    known: dict[str, tuple[str, Library]] = {
        "xgboost": ("xgboost", _xgboost(depth, rate, threads)),
        "catboost": ("catboost", _catboost(depth, rate, threads)),
        "lightgbm": ("lightgbm", _lightgbm(depth, rate, threads)),
        "py-boost": ("py_boost", _py_boost(depth, rate)),
    }
    return {name: library for name, (module, library) in known.items() if find_spec(module) is not None}


def apart(work: Callable[..., dict[str, Any]], *arguments: Any, seconds: float) -> dict[str, Any]:
    """The result of ``work(*arguments)`` in a process that is ended after so many seconds; else {"error": reason}."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, work, arguments), daemon=True)
    process.start()
    there.close()
    try:
        answer: dict[str, Any] = here.recv() if here.poll(seconds) else {"error": f"not done after {seconds:.0f} s"}
    except EOFError:
        process.join()
        answer = {"error": f"its process ended with status {process.exitcode}"}
    finally:
        process.kill()
        process.join()
    return answer


def _answer(there: Any, work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> None:
    there.send(work(*arguments))


def _xgboost(depth: int, rate: float, threads: int) -> Library:
    def bind(x: Array, y: Array) -> Fit:
        import xgboost

        if not xgboost.build_info().get("USE_CUDA"):
            raise RuntimeError("this xgboost is built without CUDA")
        options = {
            "objective": "binary:logistic", "tree_method": "hist", "device": "cuda", "max_depth": depth, "eta": rate,
            "max_bin": 256, "lambda": 1.0, "min_child_weight": 1.0, "nthread": threads, "verbosity": 0,
        }  # fmt: skip
        data = xgboost.QuantileDMatrix(x, y, max_bin=256)
        return lambda trees: xgboost.train(options, data, trees)

    return bind


def _catboost(depth: int, rate: float, threads: int) -> Library:
    def bind(x: Array, y: Array) -> Fit:
        import catboost

        pool = catboost.Pool(x, y)
        pool.quantize(border_count=254)

        def fit(trees: int) -> Any:
            model = catboost.CatBoost(
                {
                    "loss_function": "Logloss", "iterations": trees, "depth": depth, "learning_rate": rate,
                    "task_type": "GPU", "devices": "0", "l2_leaf_reg": 1.0, "bootstrap_type": "No",
                    "random_strength": 0, "boosting_type": "Plain", "leaf_estimation_iterations": 1,
                    "border_count": 254, "thread_count": threads, "allow_writing_files": False,
                    "logging_level": "Silent", "metric_period": trees,
                }
            )  # fmt: skip
            return model.fit(pool)

        return fit

    return bind


def _lightgbm(depth: int, rate: float, threads: int) -> Library:
    def bind(x: Array, y: Array) -> Fit:
        import lightgbm

        options = {
            "objective": "binary", "device_type": "cuda", "num_leaves": 2**depth, "max_depth": depth,
            "learning_rate": rate, "max_bin": 255, "lambda_l2": 1.0, "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": 1.0, "num_threads": threads, "verbosity": -1,
        }  # fmt: skip
        data = lightgbm.Dataset(x, y, params=options, free_raw_data=False).construct()
        return lambda trees: lightgbm.train(options, data, trees)

    return bind


def _py_boost(depth: int, rate: float) -> Library:
    """It bins in every fit: what that takes is the same for few trees and for many."""

    def bind(x: Array, y: Array) -> Fit:
        from py_boost import GradientBoosting

        def fit(trees: int) -> Any:
            model = GradientBoosting(
                "bce",
                ntrees=trees,
                lr=rate,
                max_depth=depth,
                max_bin=256,
                lambda_l2=1.0,
                min_data_in_leaf=1,
                verbose=-1,
            )
            return model.fit(x, y)

        return fit

    return bind
