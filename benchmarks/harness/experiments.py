"""Suites about the results of a method and not the speed of a library: each part makes a table of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from gpuboost.benchmarks.harness import machine, pictures
from gpuboost.benchmarks.harness.peers import installed
from gpuboost.benchmarks.harness.store import Data
from gpuboost.errors import InputError
from gpuboost.storage import write as write_file

_TIGHT = (",", ":")  # no blanks in lines of numbers


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    small: bool
    peers: tuple[str, ...]  # libraries to run beside, by their names in ``peers`` and in ``Experiment.peers``
    threads: int
    repeats: int  # 0: the part's own number
    tell: Callable[[str], None]
    scale: float = 1.0  # of the rounds, in long parts

    def beside(self, library: str) -> bool:
        """True if this library is requested and installed."""
        return library in self.peers and installed(library)


@dataclass(frozen=True)
class Finding:
    """A table, and the numbers behind it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Part:
    title: str
    run: Callable[[Options], Finding]


def of_data(
    make: Callable[..., Data], small_rows: int, compared: Callable[[Options, str, Data], Finding], title: str
) -> Part:
    """The part that compares libraries on one data set; ``small_rows``: its rows in a small run."""

    def run(options: Options) -> Finding:
        return compared(options, make.__name__, make(rows=small_rows) if options.small else make())

    return Part(f"{make.__name__}: {title}", run)


@dataclass(frozen=True)
class Experiment:
    """A named group of parts."""

    name: str
    title: str
    parts: Mapping[str, Part]
    draw: Callable[[dict[str, Finding], str], None] = pictures.tables  # a picture of what was found
    peers: tuple[str, ...] = ()  # libraries that it can run beside those of ``peers.NAMES``

    def chosen(self, names: Sequence[str]) -> dict[str, Part]:
        """The named parts, all of them if none is named. An unknown name is an InputError."""
        for name in names:
            if name not in self.parts:
                raise InputError(f"--case: {self.name} has no case {name!r}; it has {', '.join(self.parts)}.")
        return {name: part for name, part in self.parts.items() if not names or name in names}


def experiments() -> dict[str, Experiment]:
    """The experiments of ``benchmarks/suites``, by name."""
    here = import_module("gpuboost.benchmarks.suites")
    modules = (import_module(f"{here.__name__}.{info.name}") for info in iter_modules(here.__path__))
    all_experiments = [module.EXPERIMENT for module in modules if hasattr(module, "EXPERIMENT")]
    return {experiment.name: experiment for experiment in all_experiments}


def drawn(finding: Finding) -> Any:
    """A rich table."""
    from rich.table import Table

    table = Table(*finding.columns, title=finding.title, title_justify="left", caption_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in finding.rows:
        table.add_row(*row)
    table.caption = "\n".join(finding.notes) or None
    return table


def stored(path: str, experiment: Experiment, names: Sequence[str]) -> dict[str, Finding]:
    """The findings that a file of ``write`` holds, of the named parts or of all.

    Raises:
        InputError: if it cannot be read, or is of another suite, or has none of them.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        suite, parts = document["suite"], document["parts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"--stored: {path} is no file of results; {error}.") from None
    if suite != experiment.name:
        raise InputError(f"--stored: {path} has results of {suite!r}; the suite is {experiment.name!r}.")
    chosen = {name: parts[name] for name in experiment.chosen(names) if name in parts}
    if not chosen:
        raise InputError(f"--stored: {path} has none of the cases; it has {', '.join(parts)}.")
    fields = ("title", "columns", "rows", "notes", "numbers")
    return {name: Finding(**{field: _tuples(part[field]) for field in fields}) for name, part in chosen.items()}


def _tuples(value: Any) -> Any:
    """Lists of cells as the tuples that they were; mappings as they are."""
    return tuple(tuple(row) if isinstance(row, list) else row for row in value) if isinstance(value, list) else value


def destination(where: str, experiment: Experiment) -> Path:
    """A file as it is named; in a folder, <device>/<experiment>.json."""
    path = Path(where)
    if path.is_dir() or where.endswith("/"):
        return path / machine.slug(machine.describe()) / f"{experiment.name.replace('-', '_')}.json"
    return path


def write(path: Path, experiment: Experiment, command: str, options: Options, findings: Mapping[str, Finding]) -> None:
    """One JSON object, one part a line; parts that were not run again stay."""
    about = {"suite": experiment.name, "machine": machine.describe()}
    parts: dict[str, Any] = json.loads(path.read_text())["parts"] if path.exists() else {}
    size = "small" if options.small else "full"
    stamp = {"date": time.strftime("%Y-%m-%d"), "command": command}
    stamp |= {"size": size, "threads": options.threads, "repeats": options.repeats}
    parts |= {name: {**stamp, **_plain(finding)} for name, finding in findings.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        f"  {json.dumps(name)}: {json.dumps(parts[name], separators=_TIGHT)}"
        for name in experiment.parts
        if name in parts
    )
    head = json.dumps(about, indent=1).removesuffix("\n}")
    write_file(path, (f'{head},\n "parts": {{\n' + ",\n".join(lines) + "\n }\n}\n").encode())


def _plain(finding: Finding) -> dict[str, Any]:
    """A finding as a file keeps it: cells without their colours."""
    from rich.text import Text

    rows = [[Text.from_markup(cell).plain for cell in row] for row in finding.rows]
    return {**asdict(finding), "rows": rows, "numbers": _short(finding.numbers)}


def _short(numbers: Any) -> Any:
    """The same with six digits for each number: what is measured has no more, and files of curves are long."""
    if isinstance(numbers, float):
        return float(f"{numbers:.6g}")
    if isinstance(numbers, Mapping):
        return {key: _short(value) for key, value in numbers.items()}
    return [_short(value) for value in numbers] if isinstance(numbers, list | tuple) else numbers
