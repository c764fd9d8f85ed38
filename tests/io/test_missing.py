"""Numbers that are missing, and columns of words, where a choice allows them."""

import numpy as np
import pandas
import pytest

from latentmetric.io import Choice, open_table


def read(path, **choices):
    return open_table(path, choice=Choice(**choices))


@pytest.fixture
def frame():
    return pandas.DataFrame(
        {"a": [1.5, np.nan, 3.0], "hue": ["red", "", "blue"], "b": [1, 2, 3], "label": list("xyx")}
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_gaps_become_nan_and_words_objects(tmp_path, frame, ending):
    path = tmp_path / f"table.{ending}"
    getattr(frame, f"to_{ending}")(path, index=False)
    table = read(path, missing=True, categories=["hue"])
    assert table.rows.dtype == object
    assert table.words == [1]
    assert table.feature_names == ["a", "hue", "b"]
    assert table.rows[:, 1].tolist() == ["red", "", "blue"]
    np.testing.assert_array_equal(table.rows[:, [0, 2]].astype(float), frame[["a", "b"]])
    with pytest.raises(ValueError, match=r"empty|nan|no value"):
        np.asarray(read(path, categories=["hue"]).rows)


@pytest.mark.parametrize("cell", ["", " ", "NA", "n/a", "NaN", "null", "None", "<NA>", "?"])
def test_how_people_write_that_a_number_is_missing(tmp_path, cell):
    (tmp_path / "table.csv").write_text(f"a,b,label\n1,{cell},x\n2,3,y\n")
    rows = read(tmp_path / "table.csv", missing=True).rows
    np.testing.assert_array_equal(rows, [[1, np.nan], [2, 3]])
    with pytest.raises(ValueError, match="column 'b'"):
        read(tmp_path / "table.csv", label="label")


def test_gaps_are_no_reason_to_take_words_or_infinity(tmp_path):
    (tmp_path / "table.csv").write_text("a,b,label\n1,,x\n2,many,y\n3,4,x\n5,6,y\n")
    with pytest.raises(ValueError, match="line 3, column 'b': 'many' is not a number"):
        read(tmp_path / "table.csv", missing=True, label="label")
    (tmp_path / "table.csv").write_text("a,b,label\n1,,x\n2,inf,y\n")
    with pytest.raises(ValueError, match="line 3, column 'b': inf is not a finite number"):
        read(tmp_path / "table.csv", missing=True)
    np.savez(tmp_path / "table.npz", X=[[1.0, np.nan], [np.inf, 1.0]], y=[0, 1])
    with pytest.raises(ValueError, match=r"row 1 .* inf is not a finite number"):
        np.asarray(read(tmp_path / "table.npz", missing=True).rows)


def test_gaps_in_columns_of_whole_numbers_and_booleans(tmp_path):
    frame = pandas.DataFrame({"n": pandas.array([1, None, 3], dtype="Int8"),
                              "yes": pandas.array([True, None, False], dtype="boolean"),
                              "label": list("xyx")})  # fmt: skip
    frame.to_parquet(tmp_path / "table.parquet")
    rows = np.asarray(read(tmp_path / "table.parquet", missing=True).rows)
    np.testing.assert_array_equal(rows, [[1, 1], [np.nan, np.nan], [3, 0]])


def test_words_alone_and_numbers_as_words(tmp_path):
    frame = pandas.DataFrame({"size": [1, 2, 1], "hue": ["red", "blue", "red"], "y": [0, 1, 0]})
    for ending in ("csv", "parquet"):
        getattr(frame, f"to_{ending}")(tmp_path / f"table.{ending}", index=False)
        table = read(tmp_path / f"table.{ending}", categories=["size,hue"])
        assert table.rows.tolist() == [["1", "red"], ["2", "blue"], ["1", "red"]]
