"""Paths in the pages for developers: each one in backticks exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "CONTRIBUTING.md",
    "docs/ARCHITECTURE.md",
    "docs/GLOSSARY.md",
    "kernels/README.md",
    "tests/emulator/README.md",
]
SUFFIXES = (".py", ".cu", ".cuh", ".h", ".md", ".toml", ".json")


def paths(text: str) -> set[str]:
    """Words in backticks that are paths: of one of the suffixes, or in a folder. Patterns such as <name> are none."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    words = {word.rstrip("/") for word in re.findall(r"`([.\w/*-]+)`", prose)}
    return {word for word in words if "*" not in word and ("/" in word or word.endswith(SUFFIXES))} - set(SUFFIXES)


def in_commands(text: str) -> set[str]:
    """Paths that commands name, in blocks or in backticks."""
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    spans = re.findall(r"`(\.venv/bin/[^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return set(re.findall(r"\b(?:tests|benchmarks|docs|gpuboost|kernels)/[\w./-]*\w", "\n".join([*blocks, *spans])))


def exists(path: str, page: Path) -> bool:
    """Whether the path is one from the root, or from the folder of the page; kernels/README.md leaves out suffixes."""
    folders = [ROOT, page.parent]
    if page == ROOT / "kernels" / "README.md":
        folders += [ROOT / "gpuboost" / "backends", ROOT / "tests" / "parity", ROOT / "tests"]
    return any((folder / f"{path}{suffix}").exists() for folder in folders for suffix in ("", ".py"))


@pytest.mark.parametrize("name", PAGES)
def test_paths_exist(name: str) -> None:
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    named = paths(text)
    assert named
    assert not [path for path in sorted(named) if not exists(path, page)]


@pytest.mark.parametrize("name", PAGES)
def test_paths_in_commands_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not [path for path in sorted(in_commands(text)) if not (ROOT / path).exists()]


def test_the_table_of_folders_has_each_one() -> None:
    table = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## The folders")[1].split("\n## ")[0]
    packages = [ROOT / "gpuboost", ROOT / "gpuboost" / "backends"]
    folders = [child for package in packages for child in package.iterdir() if (child / "__init__.py").exists()]
    assert len(folders) > 25
    listed = paths(table)
    names = [folder.relative_to(ROOT).as_posix() for folder in folders]
    assert not [name for name in names if name not in listed and name != "gpuboost/backends"]


def test_what_counts_as_a_path() -> None:
    assert paths("`gpuboost/types.py` `kernels` `kernels/` `a / b` `np.int32` `README.md` `.cu`") == {
        "gpuboost/types.py",
        "README.md",
    }
    assert in_commands("```sh\npython -m pytest tests/unit -q\n```") == {"tests/unit"}
