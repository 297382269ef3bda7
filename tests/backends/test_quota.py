"""The CPU quota of control groups, from files of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuboost.backends import devices
from gpuboost.backends.host.quota import quota_processors


def machine(root: Path, groups: str, **files: str) -> Path:
    """A file system with the control groups of a process, and files of theirs."""
    for name, text in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{n}": t for n, t in files.items()}}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "150000 100000"}, 2),
        ("0::/", {"cpu.max": "5000 100000"}, 1),
        ("0::/", {"cpu.max": "max 100000"}, None),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, 3),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "100000 100000"}, 1),
        ("0::/../pod", {"cpu.max": "400000 100000"}, 4),
        ("3:cpu,acct:/x", {"cpu,acct/x/cpu.cfs_quota_us": "250000", "cpu,acct/x/cpu.cfs_period_us": "50000"}, 5),
        ("1:cpu:/docker/1\n0::/", {"cpu/cpu.cfs_quota_us": "70000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ("1:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("2:cpuset:/", {"cpuset/cpu.cfs_quota_us": "100000", "cpuset/cpu.cfs_period_us": "100000"}, None),
        ("0::/", {"cpu.max": "many 0"}, None),
        ("0::/", {"cpu.max": "100000 0"}, None),
        ("", {}, None),
    ],
)  # fmt: skip
def test_the_least_quota_counts(groups: str, files: dict[str, str], expected: int | None, tmp_path: Path) -> None:
    assert quota_processors(machine(tmp_path, groups, **files)) == expected


def test_no_files_are_no_quota(tmp_path: Path) -> None:
    assert quota_processors(tmp_path) is None


def test_no_more_threads_are_started_than_the_quota_feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(devices, "quota_processors", lambda: 1)
    assert devices.processors() == devices.usable_threads() == 1
    monkeypatch.setattr(devices, "quota_processors", lambda: 10_000)
    assert devices.processors() < 10_000
