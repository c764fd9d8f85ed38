"""Rows in files, read a block at a time, and tables of features with their labels."""

from latentmetric.io.files import open_rows
from latentmetric.io.rows import RowFile, is_lazy

__all__ = ["RowFile", "is_lazy", "open_rows"]
