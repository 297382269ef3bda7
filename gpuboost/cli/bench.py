"""``gpuboost bench``: the suites of ``gpuboost.benchmarks``."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuboost.cli.console import new_console
from gpuboost.errors import InputError

PACKAGES = "lightgbm, catboost, pandas, pyarrow, psutil, matplotlib, interpret-core"
"""Packages of the extra ``bench``."""

INSTALL = (
    f"pip install 'gpuboosting[bench]' ({PACKAGES}), and xgboost or xgboost-cpu, py-boost or ngboost for those peers"
)


def run(options: argparse.Namespace) -> int:
    """Run a suite and show, write and plot its results.

    Raises:
        InputError: if an option is wrong, or a package is not installed that the suite needs.
    """
    try:
        return _show(options)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "gpuboost":
            raise
        raise InputError(f"SUITE: needs the package {error.name}, which is not installed; {INSTALL}.") from error


def _show(options: argparse.Namespace) -> int:
    from gpuboost.benchmarks.harness.cases import suites
    from gpuboost.benchmarks.harness.experiments import experiments

    runners: dict[str, Any] = {**suites(), **experiments()}
    if options.list:
        _list(runners)
        return 0
    if options.suite in experiments():
        return _experiment(runners[options.suite], options)
    if options.suite not in runners:
        asked = f"there is none called {options.suite!r}" if options.suite else "none was named"
        raise InputError(f"SUITE: {asked}; the suites are {', '.join(runners)}.")
    return _run(runners[options.suite], options)


def _list(runners: Mapping[str, Any]) -> None:
    from rich.table import Table

    drawn = Table("suite", "case", "what it measures")
    for suite in runners.values():
        named = {case.name: case for case in suite.cases} if hasattr(suite, "cases") else suite.parts
        for i, (name, case) in enumerate(named.items()):
            drawn.add_row("" if i else suite.name, name, case.title)
        drawn.add_section()
    new_console().print(drawn)


def _experiment(experiment: Any, options: argparse.Namespace) -> int:
    """Every chosen part makes its table; numbers are written after each, so that an interrupted run keeps some."""

    from gpuboost.benchmarks.harness import experiments, machine

    if options.stored:
        return _redraw(experiment, options)
    console = _wide_console()
    peers, threads = _peers(experiment, options), options.threads or machine.cores()
    findings: dict[str, Any] = {}
    with console.status(experiment.title) as status:
        of_size = options.size == "small", peers, threads, options.repeats
        asked = experiments.Options(*of_size, status.update, options.scale)
        for name, part in experiment.chosen(options.case).items():
            findings[name] = part.run(asked)
            console.print(experiments.drawn(findings[name]))
            if options.json:
                path = experiments.destination(options.json, experiment)
                experiments.write(path, experiment, _command(options), asked, findings)
    if options.json:
        console.print(f"numbers written to {path}", soft_wrap=True, highlight=False)
    if options.plot:
        experiment.draw(findings, _picture(options.plot, experiments.destination(options.plot, experiment)))
    return 0


def _redraw(experiment: Any, options: argparse.Namespace) -> int:
    """Show what a file of results holds, draw it (beside the file, if ``--plot`` is a folder), and run nothing."""
    from gpuboost.benchmarks.harness import experiments

    console = _wide_console()
    findings = experiments.stored(options.stored, experiment, options.case)
    for finding in findings.values():
        console.print(experiments.drawn(finding))
    if options.plot:
        path = _picture(options.plot, Path(options.stored))
        experiment.draw(findings, path)
        console.print(f"drawn to {path}", soft_wrap=True, highlight=False)
    return 0


def _wide_console() -> Any:
    """The terminal; a log, where there is none, has room for every column."""
    console = new_console()
    return console if console.is_terminal else new_console(width=160)


def _picture(where: str, numbers: Path) -> str:
    """A file as it is named; a folder stands for the picture beside the file of numbers."""
    folder = where.endswith("/") or Path(where).is_dir()
    return str(numbers.with_suffix(".svg")) if folder else where


def _shown_again(suite: Any, options: argparse.Namespace) -> int:
    """Show the runs that a file holds, draw them, and run nothing."""
    from gpuboost.benchmarks.harness import report, results

    console = _wide_console()
    rows = results.stored(options.stored, suite, options.case)
    console.print(report.table(suite, rows))
    if options.plot:
        path = _picture(options.plot, Path(options.stored))
        report.plot(suite, rows, path)
        console.print(f"drawn to {path}", soft_wrap=True, highlight=False)
    return 0


def _run(suite: Any, options: argparse.Namespace) -> int:

    from gpuboost.benchmarks.harness import report, results, runner

    if options.stored:
        return _shown_again(suite, options)
    plan = runner.Plan(
        suite,
        size=options.size,
        cases=tuple(options.case),
        peers=_peers(suite, options),
        threads=options.threads,
        repeats=options.repeats,
        wait=options.wait,
        retries=1 if options.wait > 0 else 0,  # --wait 0: other processes may be running
    )
    console = _wide_console()
    rows: list[Any] = []
    with console.status(suite.title) as status:
        for row in runner.run(plan, status.update):
            rows.append(row)
            if options.json:  # after every run, so that an interrupted suite keeps its results
                path = results.destination(options.json, suite)
                results.write(path, suite, options.size, plan.used_threads, _command(options), rows)
    console.print(report.table(suite, rows))
    for row in (row for row in rows if "error" in row):
        console.print(f"{row['case']}, {row['peer']}: {row['error']}", style="red", markup=False, highlight=False)
    if options.json:
        console.print(f"runs written to {results.destination(options.json, suite)}", soft_wrap=True, highlight=False)
    if options.plot:
        report.plot(suite, rows, _picture(options.plot, results.destination(options.plot, suite)))
    return 1 if any("error" in row for row in rows) else 0


def _peers(runner: Any, options: argparse.Namespace) -> tuple[str, ...]:
    """The names that are asked for, of the peers of every suite and those of this experiment."""
    from gpuboost.benchmarks.harness.peers import NAMES, installed

    names = (*NAMES, *getattr(runner, "peers", ()))
    for name in options.peer:
        if name not in names:
            known = ", ".join(names[1:])
            raise InputError(f"--peer: {runner.name} has none called {name!r}; its peers are {known}.")
        if not installed(name):
            raise InputError(f"--peer: {name} is not installed; {INSTALL}.")
    return names if options.peers else tuple(options.peer)


def _command(options: argparse.Namespace) -> str:
    """The command that makes these results again."""
    words = ["gpuboost", "bench", options.suite, "--size", options.size, "--threads", str(options.threads)]
    words += ["--peers"] if options.peers else []
    for flag in ("peer", "case"):
        for name in getattr(options, flag):
            words += [f"--{flag}", name]
    words += ["--repeats", str(options.repeats)] if options.repeats else []
    words += ["--scale", f"{options.scale:g}"] if options.scale != 1.0 else []
    return shlex.join(words)
