"""Rows in files, read a block at a time, and tables of features with their labels."""

from latentmetric.io.choosing import Choice
from latentmetric.io.formats import similar_name, suffixes
from latentmetric.io.rows import RowFile, as_row_file, is_lazy
from latentmetric.io.tables import Table, open_rows, open_table
from latentmetric.io.text import BOOLEANS, as_numbers

__all__ = [
    "BOOLEANS",
    "Choice",
    "RowFile",
    "Table",
    "as_numbers",
    "as_row_file",
    "is_lazy",
    "open_rows",
    "open_table",
    "similar_name",
    "suffixes",
]
