"""Rows in files, read a block at a time."""

from latentmetric.io.rows import RowFile, is_lazy, open_rows

__all__ = ["RowFile", "is_lazy", "open_rows"]
