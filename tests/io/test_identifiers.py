"""Names of columns that identify rows, and names that only look like it."""

import pytest

from latentmetric.io.identifiers import doubt_about, identifies_rows


@pytest.mark.parametrize(
    "name",
    [
        "id", "ID", "Id", " id ", "index", "Index", "idx", "row", "row number", "row_number",
        "RowNumber", "row_id", "rowid", "patient_id", "patient id", "patient.ID", "customer-id",
        "patientId", "patientID", "uuid", "GUID",
    ],
)  # fmt: skip
def test_names_of_identifiers(name):
    assert identifies_rows(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "acid", "PAID", "paid", "humid", "grid", "Acid", "refractive_index", "body mass index",
        "idle", "id_count", "rows", "browid", "ideal", "width", "f1", "column 1",
    ],
)  # fmt: skip
def test_other_names(name):
    assert not identifies_rows(name)


def test_several_names_are_listed():
    (line,) = doubt_about(["width", "id", "row no", "user id"])
    assert "by name, 'id', 'user id' identify rows but are features" in line
    (line,) = doubt_about(["user id"])
    assert "--ignore 'user id', or keep beside the answers with --id 'user id'" in line
    assert doubt_about(["width"]) == []
