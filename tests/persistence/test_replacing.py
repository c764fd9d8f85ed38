"""Temporary files: who can read them, what they are called, and who removes them."""

import errno
import os
import stat
import sys

import pytest

from latentmetric.persistence.replacing import check_replaceable, remove_temporary_files, replacing

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


def temporaries(folder):
    return [path for path in folder.iterdir() if path.suffix == ".tmp"]


@POSIX
def test_a_replaced_file_keeps_its_mode_and_the_new_one_is_private_until_then(tmp_path):
    path = tmp_path / "model"
    (tmp_path / "plain").touch()
    with replacing(path):
        pass
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode, "as of any new file"
    for mode in (0o640, 0o400):
        path.touch()
        path.chmod(mode)
        with replacing(path) as file:
            file.write(b"secret")
            (temporary,) = temporaries(tmp_path)
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.unlink()


@POSIX
def test_a_link_stays_and_the_file_it_points_to_is_replaced(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store" / "model")
    for content in (b"one", b"two"):
        with replacing(tmp_path / "link") as file:
            file.write(content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "store" / "model").read_bytes() == content


@POSIX
def test_names_as_long_as_the_file_system_allows_can_be_written(tmp_path):
    for name in ("日" * 80, "m" * 255):
        with replacing(tmp_path / name) as file:
            file.write(b"new")
        assert (tmp_path / name).read_bytes() == b"new"
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left")])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, error):
    (tmp_path / "model").write_bytes(b"old")

    def write_half():
        with replacing(tmp_path / "model") as file:
            file.write(b"half of it")
            raise error

    with pytest.raises(type(error) if isinstance(error, OSError) else error) as caught:
        write_half()
    if isinstance(error, OSError):
        assert caught.value.filename == str(tmp_path / "model")
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
    remove_temporary_files(tmp_path / "model")
    assert sorted(os.listdir(tmp_path)) == sorted(others)


@POSIX
def test_a_trial_changes_nothing_and_finds_what_a_write_would_find(tmp_path):
    check_replaceable(tmp_path / "new")
    assert os.listdir(tmp_path) == []
    (tmp_path / "old").write_bytes(b"old")
    check_replaceable(tmp_path / "old")
    assert (tmp_path / "old").read_bytes() == b"old"
    (tmp_path / "dangling").symlink_to(tmp_path / "none" / "model")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_replaceable(tmp_path / "dangling")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, number in (("loop", errno.ELOOP), ("m" * 256, errno.ENAMETOOLONG)):
        with pytest.raises(OSError) as caught:  # noqa: PT011
            check_replaceable(tmp_path / name)
        assert caught.value.errno == number
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_replaceable(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="not a regular file"):
        check_replaceable(tmp_path / "pipe")
