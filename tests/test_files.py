"""Atomic writes: permissions, concurrency and what is left after a failure."""

import gzip
import os
import stat
import threading
from pathlib import Path

import pytest

from labelkin import InputError, _files
from labelkin._files import gunzip, write_bytes, write_text


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask(request: pytest.FixtureRequest):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077, 0o002], indirect=True)
def test_new_files_have_the_permissions_of_an_ordinary_new_file(umask: int, tmp_path: Path):
    (tmp_path / "ordinary").touch()
    write_text(tmp_path / "ours", "content")
    assert mode_of(tmp_path / "ours") == mode_of(tmp_path / "ordinary") == 0o666 & ~umask


def test_a_write_never_touches_the_umask_of_the_process(tmp_path: Path, monkeypatch):
    """The umask belongs to all threads: a file that another thread makes meanwhile would get other permissions."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was changed"))
    write_bytes(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"


def test_threads_that_write_one_file_leave_one_whole_content(tmp_path: Path):
    contents = [bytes([65 + i]) * 100_000 for i in range(8)]
    threads = [threading.Thread(target=write_bytes, args=(tmp_path / "file", content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "file").read_bytes() in contents
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(tmp_path: Path, monkeypatch):
    write_text(tmp_path / "file", "old")

    def full(handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_text(tmp_path / "file", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_gz_file_that_unpacks_to_far_more_than_its_size_is_refused():
    text = b"".join(b"%d lines of a text, which says something each time.\n" % k for k in range(50_000))
    assert gunzip(gzip.compress(text), "t.gz") == text
    assert gunzip(gzip.compress(b"0" * (1 << 20)), "t.gz") == b"0" * (1 << 20)
    twice = gzip.compress(text) + gzip.compress(text)  # a file may have several parts
    assert gunzip(twice, "t.gz") == text + text
    with pytest.raises(InputError, match=r"t\.gz: it unpacks to more than .* bytes, 200 times its size"):
        gunzip(gzip.compress(b"0" * (50 << 20)), "t.gz")
