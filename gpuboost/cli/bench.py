"""``gpuboost bench``: the suites of ``gpuboost.benchmarks``."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from gpuboost.errors import InputError


def run(options: argparse.Namespace) -> int:
    from gpuboost.benchmarks.cases import suites

    known = suites()
    if options.list:
        _list(known)
        return 0
    if options.suite not in known:
        asked = f"there is none called {options.suite!r}" if options.suite else "none was named"
        raise InputError(f"SUITE: {asked}; the suites are {', '.join(known)}.")
    return _run(known[options.suite], options)


def _list(known: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    drawn = Table("suite", "case", "what it measures")
    for suite in known.values():
        for case in suite.cases:
            drawn.add_row(suite.name if case is suite.cases[0] else "", case.name, case.title)
        drawn.add_section()
    Console().print(drawn)


def _run(suite: Any, options: argparse.Namespace) -> int:
    from rich.console import Console

    from gpuboost.benchmarks import report, results, runner

    plan = runner.Plan(
        suite,
        size=options.size,
        cases=tuple(options.case),
        peers=_peers(options),
        threads=options.threads,
        repeats=options.repeats,
        wait=options.wait,
        retries=1 if options.wait > 0 else 0,  # --wait 0: the user does not mind who else is at work
    )
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # a log has room for every column
    rows: list[Any] = []
    with console.status(suite.title) as status:
        for row in runner.run(plan, status.update):
            rows.append(row)
            if options.json:  # after every run, so that an interrupted suite keeps what it has
                path = results.destination(options.json, suite)
                results.write(path, suite, options.size, plan.used_threads, _command(options), rows)
    console.print(report.table(suite, rows))
    for row in (row for row in rows if "error" in row):
        console.print(f"{row['case']}, {row['peer']}: {row['error']}", style="red", markup=False, highlight=False)
    if options.json:
        console.print(f"runs written to {results.destination(options.json, suite)}", soft_wrap=True, highlight=False)
    if options.plot:
        report.plot(suite, rows, options.plot)
    return 1 if any("error" in row for row in rows) else 0


def _peers(options: argparse.Namespace) -> tuple[str, ...]:
    from gpuboost.benchmarks.peers import NAMES

    for name in options.peer:
        if name not in NAMES:
            raise InputError(f"--peer: there is none called {name!r}; the peers are {', '.join(NAMES[1:])}.")
    return NAMES if options.peers else tuple(options.peer)


def _command(options: argparse.Namespace) -> str:
    """The command that makes these results again."""
    words = ["gpuboost", "bench", options.suite, "--size", options.size, "--threads", str(options.threads)]
    words += ["--peers"] if options.peers else []
    for flag in ("peer", "case"):
        for name in getattr(options, flag):
            words += [f"--{flag}", name]
    words += ["--repeats", str(options.repeats)] if options.repeats else []
    return shlex.join(words)
