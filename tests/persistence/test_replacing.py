"""Temporary files: who can read them, what they are called, and who removes them."""

import errno
import os
import signal
import stat
import subprocess
import sys

import pytest

from latentmetric.persistence.replacing import check_replaceable, replacing, sweep

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
TOKEN = "0123456789abcdef"


def temporaries(folder):
    return [path for path in folder.iterdir() if path.suffix == ".tmp"]


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


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


@pytest.mark.parametrize("name", ["日" * 80, "é" * 127, "m" * 255, "a" * 99 + "日", "\udcff" * 255])
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


KILLED = """
import os, signal, sys
from latentmetric.persistence.replacing import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals of POSIX")
@pytest.mark.parametrize("name", ["model", "[a]*?.csv", "日" * 80])
def test_the_next_write_removes_what_a_killed_one_left(tmp_path, name):
    path = tmp_path / name
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert len(temporaries(tmp_path)) == 1
    write(path)
    assert [left.name for left in tmp_path.iterdir()] == [name]


@POSIX
def test_the_file_of_a_living_writer_is_left_alone(tmp_path):
    path = tmp_path / "model"
    with replacing(path) as file:
        file.write(b"slow")
        write(path, b"quick")
        sweep(path)
        assert path.read_bytes() == b"quick"
    assert path.read_bytes() == b"slow"
    assert os.listdir(tmp_path) == ["model"]


@POSIX
def test_the_lock_is_held_until_the_file_has_its_name(tmp_path, monkeypatch):
    path, replace = tmp_path / "model", os.replace

    def swept_before(*names):
        sweep(path)
        replace(*names)

    monkeypatch.setattr(os, "replace", swept_before)
    write(path)
    assert path.read_bytes() == b"new"


@POSIX
def test_a_file_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    path, dup, swept = tmp_path / "model", os.dup, []

    def swept_first(descriptor):
        if not swept:
            swept.append(sweep(path))
            assert temporaries(tmp_path) == []
        return dup(descriptor)

    monkeypatch.setattr(os, "dup", swept_first)
    write(path)
    assert path.read_bytes() == b"new"


@POSIX
def test_what_is_not_such_a_file_is_left_alone(tmp_path):
    others = [
        ".other.0123456789abcdef.tmp",
        ".model.0123.tmp",
        f".model.{TOKEN}.tmp2",
        f"model.{TOKEN}.tmp",
        f".model.x.{TOKEN}.tmp",
    ]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / f".model.{TOKEN}.tmp").mkdir()
    (tmp_path / f".model.{TOKEN[::-1]}.tmp").symlink_to(tmp_path / others[0])
    os.mkfifo(tmp_path / f".model.{'0' * 16}.tmp")
    before = sorted(os.listdir(tmp_path))
    write(tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "model"])


@POSIX
def test_files_of_other_users_are_left_alone(tmp_path, monkeypatch):
    (tmp_path / f".model.{TOKEN}.tmp").touch()
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    write(tmp_path / "model")
    assert len(temporaries(tmp_path)) == 1


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
