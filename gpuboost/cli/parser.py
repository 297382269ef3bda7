"""Every command and option. Options of ``train`` carry the names of the estimators' parameters and no defaults of
their own: what is not given is not passed on. ``parameters`` of the parsed options has the names of those that are
passed on as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuboost._version import __version__
from gpuboost.public import LOSSES

FORMATS = ("csv", "tsv", "parquet", "libsvm", "letor")
"""Kinds of tables. LETOR is LIBSVM with queries and indices that start at 1."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line. The chosen command is in ``command``."""
    parser = argparse.ArgumentParser(prog="gpuboost", description="Gradient boosting for GPU and CPU.")
    parser.add_argument("--version", action="version", version=f"gpuboost {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (text, add_options) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--traceback", action="store_true", help="show where an error was raised")
        add_options(command)
    return parser


def _train(command: argparse.ArgumentParser) -> None:
    command.add_argument("data", metavar="DATA", help="table: .csv, .tsv, .parquet or .libsvm/.svm/.txt, may be packed")
    command.add_argument("--target", metavar="COLUMN", help="column to learn; LIBSVM files carry their own")
    text = "columns to learn together, in place of --target: numbers, or labels of 0 and 1"
    command.add_argument("--targets", type=_names, metavar="A,B", help=text)
    command.add_argument("--task", choices=("auto", "regression", "classification", "rank"), default="auto")
    command.add_argument("--model", metavar="FILE", help="where to save the model (JSON)")
    _add_separator(command)
    weights = "balanced, or the weight of each class, as in yes=5,no=1"
    command.add_argument("--class-weight", type=_weights_of_classes, metavar="CLASS=W", help=weights)
    held_out = "share of the rows to hold out, or a file to score; 0.2 where no --model is to be saved"
    command.add_argument("--eval", metavar="FRACTION|FILE", help=held_out)
    flags = "--categorical", "--categorical-features"
    command.add_argument(*flags, type=_names, metavar="A,B", dest="categorical", help="columns to read as categories")
    command.add_argument("--weight", metavar="COLUMN", help="column of row weights")
    _add_offset(command)
    text = "folds of a cross-validation, in place of --eval; with --model, a model of all rows is saved"
    command.add_argument("--cv", type=int, metavar="FOLDS", help=text)
    command.add_argument("--group", metavar="COLUMN", help="column of query ids, to rank; LIBSVM files say qid:")
    text = "column of the places at which documents were shown, 0 the top, for --loss unbiased_lambdamart"
    command.add_argument("--position", metavar="COLUMN", help=text)
    text = "CSV of winner,loser or winner,loser,weight: pairs of rows of DATA, from 0, for --loss pair_logit"
    command.add_argument("--pairs", metavar="FILE", help=text)
    command.add_argument("--quiet", action="store_true", help="no progress, no table")
    names = _add_parameters(command.add_argument_group("the model"))
    command.set_defaults(parameters=(*names, "multi_output", "feature_weights"))
    _add_outputs(command.add_argument_group("several outputs"))
    _add_prices(command.add_argument_group("weights and costs of columns"))
    _add_langevin(command.add_argument_group("Langevin boosting"))


def _add_offset(command: argparse.ArgumentParser) -> None:
    text = "column of offsets, added to the scores; for counts the logarithm of the exposure"
    command.add_argument("--offset", metavar="COLUMN", help=text)


def _add_separator(command: argparse.ArgumentParser) -> None:
    text = "character between the fields of a text file, or tab; a comma by default, a tab in .tsv"
    command.add_argument("--sep", type=_separator, metavar="CHARACTER", help=text)
    command.add_argument("--decimal", choices=(".", ","), help="decimal point of a text file; a point by default")
    text = "character between the thousands of numbers in a text file, as in 1.234,5; none by default"
    command.add_argument("--thousands", choices=(",", ".", "'", " ", "_"), help=text)
    command.add_argument("--format", choices=FORMATS, help="of the table, whatever the name of the file ends in")


def _add_parameters(group: Any) -> tuple[str, ...]:
    """Add the options that are parameters of the estimators. Returns the names of these."""
    names = ["extra_trees"]

    def add(flag: str, parse: Callable[[str], object], text: str, name: str | None = None) -> None:
        destination = name or flag.removeprefix("--").replace("-", "_")
        names.append(destination)
        shown = destination.upper() if name is None else name.upper()
        flags = [flag] if name is None else [flag, "--" + destination.replace("_", "-")]
        group.add_argument(*flags, dest=destination, type=parse, default=argparse.SUPPRESS, metavar=shown, help=text)

    add(
        "--loss",
        str,
        f"{', '.join(LOSSES)}; with its parameter as in quantile:0.9, quantile:0.1,0.9, "
        "aft:logistic,0.5, or lambdamart:map",
    )
    add("--n-estimators", _auto_or(int), "rounds of boosting; auto: chosen on rows that are set aside")
    add("--learning-rate", _auto_or(float), "how much of each tree is added; auto: by the number of rows and rounds")
    add("--growth", str, "depthwise, leafwise, oblivious or sign_stump")
    add("--max-depth", _or_none(int), "levels of a tree, or none")
    add("--max-leaves", _or_none(int), "leaves of a tree, or none")
    add("--min-samples-leaf", int, "least rows of a leaf")
    add("--min-child-weight", float, "least curvature of a leaf")
    add("--reg-lambda", float, "L2 penalty on leaf values")
    add("--reg-alpha", float, "L1 penalty on leaf values")
    add("--max-delta-step", float, "largest leaf value on either side of 0; 0: no limit")
    add("--path-smooth", float, "rows of the node above that a node's value is computed with")
    add("--min-split-gain", float, "least gain of a split")
    add("--random-strength", float, "noise on gains when a split's feature is chosen")
    group.add_argument(
        "--extra-trees", action="store_true", default=argparse.SUPPRESS, help="one random cut of each feature in a node"
    )
    add("--max-bins", int, "most bins of a column, up to 65535")
    add("--binning", str, "choice of the bins: quantile or greedy_log_sum")
    add("--missing", float, "number that stands for missing values, as an empty field does")
    add("--categorical-encoding", str, "auto, partition, ordered (means of the target) or one_hot")
    add("--monotonic", _directions, "columns with which predictions rise or fall, as in age=1,rent=-1", "monotonic_cst")
    add("--interactions", _sets, "columns that may interact: pairwise, no_interactions, or a,b;c,d", "interaction_cst")
    add("--forced-splits", str, "JSON file of the first splits of every tree")
    add("--sampling", float, "share of the rows drawn for each tree")
    add("--learners", _count_or_share, "features drawn for each tree: a count, or a share such as 0.5")
    add("--step", str, "auto, newton, gradient, constant or line_search")
    add("--start", _name_or_number, "score before the first tree: optimum, mean, half_log_odds or a number")
    add(
        "--early-stopping-rounds", int, "stop after so many rounds without a better score; needs --eval, or auto rounds"
    )
    add(
        "--eval-metric",
        _names_of_metrics,
        "scores of the held-out rows, as in auc,logloss; the first stops the fit",
    )
    add("--eval-at", _places, "places at which a ranking is scored, as in 5,10")
    add("--device", str, "auto, cpu, cuda or cuda:N")
    add("--threads", int, "threads to use; all by default", "n_jobs")
    add("--seed", int, "seed of every random draw", "random_state")
    return tuple(names)


def _add(group: Any, flag: str, parse: Callable[[str], object], text: str) -> None:
    name = flag.removeprefix("--").replace("-", "_")
    group.add_argument(flag, type=parse, default=argparse.SUPPRESS, metavar=name.upper(), help=text)


def _add_outputs(group: Any) -> None:
    _add(group, "--multi-output", str, "one_tree_per_output, or one_tree for all targets, classes or quantiles")
    text = "gradients that one tree is searched by: top_outputs:K, random_outputs:K or random_projection:K"
    _add(group, "--sketch", str, text)


def _add_prices(group: Any) -> None:
    _add(group, "--feature-weights", _numbers, "chances of columns to be drawn, as in age=4,rent=0; 1 of the others")
    text = "costs of the first use of columns, as in age=4,rent=2; 0 of the others; one number: of every column"
    _add(group, "--feature-costs", _number_or_numbers, text)
    _add(group, "--split-cost", float, "cost of a split for each row of its node")
    _add(group, "--cost-tradeoff", float, "factor of all costs")


def _add_langevin(group: Any) -> None:
    def add(flag: str, parse: Callable[[str], object], text: str) -> None:
        _add(group, flag, parse, text)

    group.add_argument("--langevin", action="store_true", help="noise and shrinkage: draws from a posterior")
    add("--inverse-temperature", float, "beta, of the mean loss; the number of rows by default")
    add("--temperature", float, "beta / N, another way to say it; 1 is the posterior")
    add("--shrinkage", float, "gamma: a round leaves 1 - gamma * learning rate of the model")
    add("--prior-variance", float, "of scores before they see data, another way to say it; 1 by default")
    add("--random-from", int, "round from which on the shapes of trees are drawn at random")
    add("--posterior-samples", int, "draws that predict --uncertainty takes from the chain")


def _predict(command: argparse.ArgumentParser) -> None:
    command.add_argument("data", metavar="DATA", help="table with the columns that the model was trained on")
    command.add_argument("--model", metavar="FILE", required=True, help="a model saved by train")
    command.add_argument("--output", metavar="FILE", help="CSV to write; standard output by default")
    _add_offset(command)
    _add_separator(command)
    command.add_argument("--proba", action="store_true", help="the probability of each class, one column each")
    command.add_argument(
        "--uncertainty", action="store_true", help="how sure the model is, and why not; of one trained with --langevin"
    )


def _export(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", metavar="FILE", required=True, help="a model saved by train")
    command.add_argument("--format", choices=("onnx", "xgboost", "treelite", "c"), required=True, help="the reader's")
    command.add_argument("--output", metavar="FILE", required=True, help="file to write; .json for xgboost")


def _info(command: argparse.ArgumentParser) -> None:
    """``info`` has no options."""


def _demo(command: argparse.ArgumentParser) -> None:
    command.add_argument("--threads", type=int, metavar="N", help="threads to use; all by default")
    command.add_argument("--quiet", action="store_true", help="no progress bars")


def _bench(command: argparse.ArgumentParser) -> None:
    command.add_argument("suite", metavar="SUITE", nargs="?", help="see --list")
    command.add_argument("--list", action="store_true", help="the suites and their cases")
    command.add_argument("--peers", action="store_true", help="run every installed peer as well")
    command.add_argument("--peer", action="append", default=[], metavar="NAME", help="run this one; may be repeated")
    command.add_argument("--case", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    command.add_argument("--size", choices=("full", "small"), default="full", help="small: a minute, not a result")
    command.add_argument("--threads", type=int, default=0, metavar="N", help="of every library; all cores by default")
    command.add_argument("--repeats", type=int, default=0, metavar="N", help="runs per library; the suite's by default")
    command.add_argument(
        "--wait", type=float, default=45.0, metavar="S", help="most seconds to wait for a quiet machine"
    )
    command.add_argument(
        "--scale", type=float, default=1.0, metavar="X", help="share of the rounds, where a part has many"
    )
    command.add_argument("--json", metavar="FILE", help="write every run; into a folder: <device>/<suite>.json")
    command.add_argument("--plot", metavar="FILE", help="write a picture; into a folder: <device>/<suite>.svg")
    command.add_argument("--stored", metavar="FILE", help="show and draw the results in a file of --json; run nothing")


def _warmup(command: argparse.ArgumentParser) -> None:
    command.add_argument("kinds", nargs="*", metavar="KIND", help="kinds of fits, such as regression; all without one")
    command.add_argument(
        "--wheel", type=Path, metavar="DIR", help="write them as a wheel to install elsewhere, into DIR"
    )
    command.add_argument(
        "--cpu", metavar="NAME", help="of a wheel: host (the default), x86-64-v3 (since about 2015), ..."
    )


_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "train": ("fit a model to a table, score it on held-out rows, save it", _train),
    "predict": ("predict the rows of a table with a saved model", _predict),
    "export": ("write a saved model in the format of another library", _export),
    "info": ("versions, devices and why one is not usable", _info),
    "demo": ("train, score, save and reload models on data that comes with scikit-learn", _demo),
    "warmup": ("compile the CPU's kernels before they are needed, for images and CI", _warmup),
    "bench": ("run a benchmark suite, alone or beside other libraries", _bench),
}


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _directions(text: str) -> dict[str, int]:
    pairs = (pair.rpartition("=") for pair in _names(text))
    return {name.strip(): int(direction) for name, _, direction in pairs}


_directions.__name__ = "list of columns with 1 or -1"  # argparse quotes it in its message


def _sets(text: str) -> str | list[list[str]]:
    return text if text in ("pairwise", "no_interactions") else [_names(part) for part in text.split(";")]


_sets.__name__ = "pairwise, no_interactions, or sets of columns"  # argparse quotes it in its message


def _numbers(text: str) -> dict[str, float]:
    pairs = (pair.rpartition("=") for pair in _names(text))
    return {name.strip(): float(number) for name, _, number in pairs}


_numbers.__name__ = "list of columns with numbers"  # argparse quotes it in its message


def _number_or_numbers(text: str) -> float | dict[str, float]:
    return _numbers(text) if "=" in text else float(text)


_number_or_numbers.__name__ = "number, or list of columns with numbers"  # argparse quotes it in its message


def _weights_of_classes(text: str) -> str | dict[str, float]:
    if text == "balanced":
        return text
    return _numbers(text)


_weights_of_classes.__name__ = "balanced, or list of classes with weights"  # argparse quotes it in its message


def _separator(text: str) -> str:
    return "\t" if text in ("tab", "\\t") else text


def _places(text: str) -> list[int]:
    return [int(place) for place in text.split(",")]


_places.__name__ = "list of places"  # argparse quotes it in its message


def _or_none(parse: Callable[[str], object]) -> Callable[[str], object]:
    def parsed(text: str) -> object:
        return None if text.lower() == "none" else parse(text)

    parsed.__name__ = f"{getattr(parse, '__name__', 'value')} or none"  # argparse quotes it in its message
    return parsed


def _auto_or(parse: Callable[[str], object]) -> Callable[[str], object]:
    def parsed(text: str) -> object:
        return text.lower() if text.lower() == "auto" else parse(text)

    parsed.__name__ = f"{getattr(parse, '__name__', 'value')} or auto"
    return parsed


def _names_of_metrics(text: str) -> str | list[str]:
    names = [name.strip() for name in text.split(",")]
    return names if len(names) > 1 else text


def _count_or_share(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)


def _name_or_number(text: str) -> str | float:
    return text if text.replace("_", "").isalpha() else float(text)


_name_or_number.__name__ = "name or number"  # argparse quotes it in its message
