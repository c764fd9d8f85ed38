"""Rows in files, read a block at a time, and tables of features with their labels."""

from latentmetric.io.choosing import Choice
from latentmetric.io.rows import RowFile
from latentmetric.io.tables import Table, open_rows, open_table

__all__ = ["Choice", "RowFile", "Table", "open_rows", "open_table"]
