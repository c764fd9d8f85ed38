"""Temporary files: who can read them, what they are called, and who removes them."""

import errno
import os
import stat
import sys

import pytest

from latentmetric.persistence.replacing import check_replaceable, remove_remains, replacing

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


def temporaries(folder):
    return [path for path in folder.iterdir() if path.suffix == ".tmp"]


@POSIX
def test_while_a_private_file_is_replaced_nobody_else_can_read_the_new_one(tmp_path):
    path = tmp_path / "model"
    for mode in (0o600, 0o640, 0o400):
        path.touch()
        path.chmod(mode)
        with replacing(path) as file:
            file.write(b"secret")
            (temporary,) = temporaries(tmp_path)
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.unlink()


@pytest.mark.parametrize("name", ["日" * 80, "m" * 255, "a" * 99 + "日", "\udcff" * 255])
@POSIX
def test_temporary_names_are_bounded_in_bytes(tmp_path, name):
    path = tmp_path / name
    check_replaceable(path)
    with replacing(path) as file:
        file.write(b"new")
        (temporary,) = temporaries(tmp_path)
        assert len(os.fsencode(temporary.name)) <= 122
    assert path.read_bytes() == b"new"
    assert temporaries(tmp_path) == []


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "model").write_bytes(b"old")

    def write_half():
        with replacing(tmp_path / "model") as file:
            file.write(b"half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").read_bytes() == b"old"


def test_two_may_write_at_once_and_the_last_one_stays(tmp_path):
    path = tmp_path / "model"
    with replacing(path) as file:
        file.write(b"slow")
        with replacing(path) as other:
            other.write(b"quick")
        assert path.read_bytes() == b"quick"
    assert path.read_bytes() == b"slow"
    assert os.listdir(tmp_path) == ["model"]


def test_remains_of_killed_writes_are_removed_and_nothing_else(tmp_path):
    others = [".other.0123456789abcdef.tmp", ".model.0123.tmp2", "model.0123.tmp", "model"]
    for name in [*others, ".model.0123456789abcdef.tmp"]:
        (tmp_path / name).touch()
    remove_remains(tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == sorted(others)


def test_a_trial_changes_nothing(tmp_path):
    check_replaceable(tmp_path / "new")
    assert os.listdir(tmp_path) == []
    (tmp_path / "old").write_bytes(b"old")
    check_replaceable(tmp_path / "old")
    assert (tmp_path / "old").read_bytes() == b"old"


@POSIX
def test_a_trial_finds_what_a_write_would_find(tmp_path, monkeypatch):
    (tmp_path / "dangling").symlink_to(tmp_path / "none" / "model")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, number in (("loop", errno.ELOOP), ("m" * 256, errno.ENAMETOOLONG)):
        with pytest.raises(OSError) as caught:  # noqa: PT011
            check_replaceable(tmp_path / name)
        assert caught.value.errno == number
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_replaceable(tmp_path / "dangling")

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        check_replaceable(tmp_path / "model")
    assert temporaries(tmp_path) == []
