"""Temporary files: who can read them, what they are called, and who removes them."""

import errno
import os
import stat
import sys

import pytest

from latentmetric.persistence.replacing import replacing

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


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, error):
    (tmp_path / "model").write_bytes(b"old")
    with pytest.raises(type(error)) as caught, replacing(tmp_path / "model") as file:  # noqa: PT012
        file.write(b"half of it")
        raise error
    if isinstance(error, OSError):
        assert caught.value.filename == str(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").read_bytes() == b"old"
