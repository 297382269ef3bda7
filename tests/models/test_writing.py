"""Files are written whole or not at all, and never in place of a device, a pipe or a link."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from gpuboost.storage import same_file, write, writing

posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and pipes of POSIX")


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "a.json", b"new")
    write(tmp_path / "a.json", b"newer")
    assert (tmp_path / "a.json").read_bytes() == b"newer"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@posix
def test_a_link_stays_a_link_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@posix
def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    write(tmp_path / "a", b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@posix
def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    write(tmp_path / "a", b"new")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode


@posix
def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(tmp_path / "pipe", b"model")
    reader.join(10.0)
    assert received == [b"model"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@posix
def test_a_device_is_written_into() -> None:
    write(os.devnull, b"model")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def interrupted() -> None:
        with writing(tmp_path / "a") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "none" / "a.json", b"")
    assert caught.value.filename == str(tmp_path / "none")


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        write(tmp_path, b"")
    assert caught.value.filename == str(tmp_path)


def test_an_error_of_a_full_disk_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as caught, writing(tmp_path / "a"):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(tmp_path / "a")


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left, recent, other = (tmp_path / name for name in (".a.json.x.part", ".a.json.y.part", ".b.json.x.part"))
    for path in (left, recent, other):
        path.write_bytes(b"half")
    two_days_ago = time.time() - 2 * 86_400.0
    for path in (left, other):
        os.utime(path, (two_days_ago, two_days_ago))
    write(tmp_path / "a.json", b"new")
    assert not left.exists()
    assert recent.exists()
    assert other.exists()


@posix
def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    with writing(tmp_path / "a.json") as file:
        (theirs,) = tmp_path.glob(".a.json.*.part")
        hours_ago = time.time() - 7_200.0
        os.utime(theirs, (hours_ago, hours_ago))
        write(tmp_path / "a.json", b"by another")
        file.write(b"the last word")
    assert (tmp_path / "a.json").read_bytes() == b"the last word"


def test_names_with_wildcards_are_names(tmp_path: Path) -> None:
    kept = tmp_path / ".ab.x.part"
    kept.write_bytes(b"")
    os.utime(kept, (0.0, 0.0))
    write(tmp_path / "a[b]", b"new")
    assert kept.exists()
    assert (tmp_path / "a[b]").read_bytes() == b"new"


def test_same_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert same_file(tmp_path / "a", f"{tmp_path}/../{tmp_path.name}/a")
    assert not same_file(tmp_path / "a", tmp_path / "b")
    assert not same_file(os.devnull, os.devnull)
