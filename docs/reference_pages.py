"""Pages of the API reference, written from ``gpuboost/public.py``: a new public name needs no page of its own.

Every name that ``gpuboost`` exports stands on one page, each public module has a page of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from gpuboost import public

GROUPS = {
    "estimators": ("Estimators and saved models", ("gpuboost.api", "gpuboost.predictor")),
    "data": ("Data", ("gpuboost.data",)),
    "model_selection": ("Cross-validation and posterior draws", ("gpuboost.model_selection",)),
    "sampling": ("Row sampling", ("gpuboost.sampling",)),
    "feature_sampling": ("Feature sampling", ("gpuboost.learners",)),
    "langevin": ("Langevin boosting", ("gpuboost.langevin",)),
    "learning_rates": ("Learning rates", ("gpuboost.learning_rates",)),
    "multi_output": ("Several outputs", ("gpuboost.multi_output",)),
    "splits_and_steps": ("Splits and steps", ("gpuboost.growth", "gpuboost.steps")),
    "execution": ("Execution", ("gpuboost.execution", "gpuboost.backends")),
    "errors": ("Errors and warnings", ("gpuboost.errors",)),
}
"""File name -> title, and the packages whose public names the page holds."""


def write(folder: Path) -> None:
    """Write the pages whose text has changed."""
    folder.mkdir(exist_ok=True)
    texts = dict(pages())
    for path in folder.glob("*.md"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def pages() -> Iterator[tuple[str, str]]:
    """File name and Markdown text of each page."""
    index = ["# API reference", "", "All public names. Entries give shapes, types, units and the errors raised.", ""]
    for name, (title, packages) in GROUPS.items():
        names = [public_name for public_name, home in public.PUBLIC.items() if within(home, packages)]
        index += [f"* [{title}]({name}.md): " + ", ".join(f"`{public_name}`" for public_name in names)]
        yield f"{name}.md", page(title, [("gpuboost", public_name) for public_name in names])
    index += ["", "Modules:", ""]
    for name, home in public.MODULES.items():
        index += [f"* [`gpuboost.{name}`](gpuboost.{name}.md): {summary(import_module(home))}"]
        yield f"gpuboost.{name}.md", page(f"gpuboost.{name}", [(home, entry) for entry in exported(home)], name)
    files = [*GROUPS, *(f"gpuboost.{name}" for name in public.MODULES)]
    index += ["", "```{toctree}", ":hidden:", "", *files, "```"]
    yield "index.md", "\n".join(index) + "\n"


def page(title: str, entries: list[tuple[str, str]], module: str = "") -> str:
    """A page with one directive for each (importable module, name)."""
    text = [f"# {title}", ""]
    if module:
        text += [(import_module(public.MODULES[module]).__doc__ or "").strip().split("\n\n")[0], ""]
    for home, name in sorted(entries, key=lambda entry: entry[1].lower()):
        value = getattr(import_module(home), name)
        heading = f"gpuboost.{module}.{name}" if module else f"{home}.{name}"
        text += [f"## {heading}", "", "```{eval-rst}", *directive(f"{home}.{name}", value), "```", ""]
    return "\n".join(text)


def directive(path: str, value: Any) -> list[str]:
    """Autodoc's directive for a class with its public methods, or a function."""
    if inspect.isclass(value):
        if issubclass(value, BaseException):
            return [f".. autoexception:: {path}"]
        return [f".. autoclass:: {path}", "   :members:", "   :inherited-members: BaseEstimator,tuple,object"]
    return [f".. autofunction:: {path}"]


def exported(home: str) -> list[str]:
    """Names that a public module's page documents: functions and classes that ``gpuboost`` does not export."""
    module = import_module(home)
    if hasattr(module, "__all__"):
        names = [name for name in module.__all__ if name not in public.PUBLIC]
        return [name for name in names if callable(getattr(module, name))]
    return [name for name, value in vars(module).items() if getattr(value, "__module__", "") == home and name[0] != "_"]


def within(home: str, packages: tuple[str, ...]) -> bool:
    return any(home == package or home.startswith(package + ".") for package in packages)


def summary(module: Any) -> str:
    """First sentence of a module's docstring, on one line."""
    return (module.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
