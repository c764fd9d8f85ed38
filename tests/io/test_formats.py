"""One list of formats, which everything that opens files uses."""

import json
from pathlib import Path

import numpy as np
import pytest

from latentmetric.io import Choice, formats, open_rows, open_table
from latentmetric.io.arrays import ArrayFile
from latentmetric.io.formats import FORMATS, Format, format_of, suffixes
from latentmetric.io.rows import SlicedRows


class _JsonArrays(ArrayFile):
    """Arrays by name in JSON, a format that the library does not know."""

    def __init__(self, path):
        self.path, self.unopened = path, {}
        self._arrays = {name: np.array(held) for name, held in json.loads(path.read_text()).items()}
        self.shapes = {name: array.shape for name, array in self._arrays.items()}

    def rows(self, name):
        return SlicedRows(self._arrays[self.find(name)])

    def values(self, name):
        return self._arrays[self.find(name)]


def test_a_format_is_added_in_one_place(tmp_path, monkeypatch):
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"x": [[1.0, 2.0], [3.0, 4.0]], "y": ["a", "b"]}))
    with pytest.raises(ValueError, match=r"must end in one of \.arrow, "):
        open_table(path)
    added = Format(".json", "arrays", lambda path, choice, name: _JsonArrays(path))
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, added))
    table = open_table(path)
    assert np.asarray(table.rows).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert table.labels.tolist() == ["a", "b"]
    assert open_rows(path)[1:].tolist() == [[3.0, 4.0]]
    np.save(tmp_path / "rows.npy", np.zeros((2, 3)))
    assert open_table(tmp_path / "rows.npy", path, Choice(label="y")).labels.tolist() == ["a", "b"]
    with pytest.raises(FileNotFoundError):
        open_table(tmp_path / "none.json")
    (tmp_path / "table.jsonl").write_text("")
    with pytest.raises(ValueError, match=r"must end in one of .*\.json, "):
        open_table(tmp_path / "table.jsonl")


def test_every_ending_has_one_format(tmp_path):
    assert len(set(suffixes())) == len(FORMATS)
    for known in FORMATS:
        path = Path(tmp_path / f"name.with.dots{known.suffix}")
        path.mkdir() if known.is_folder else path.write_bytes(b"")
        assert format_of(path) is known
        assert known.suffix in suffixes([known.kind])


def test_folders_and_files_of_other_kinds_are_refused(tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"rows\.csv must end in one of \.arrow, \.feather, \.h5"):
        open_rows(tmp_path / "rows.csv")
    (tmp_path / "rows.npy").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        open_rows(tmp_path / "rows.npy")
