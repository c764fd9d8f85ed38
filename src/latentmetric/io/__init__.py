"""Rows in files, read a block at a time, and tables of features with their labels."""

from latentmetric.io.choosing import Choice
from latentmetric.io.rows import RowFile, is_lazy
from latentmetric.io.tables import Table, open_rows, open_table

__all__ = ["Choice", "RowFile", "Table", "is_lazy", "open_rows", "open_table"]
