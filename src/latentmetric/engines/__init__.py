"""Where rows are stored: in memory, in files or on a cluster. One module checks them all.

To add an engine, add a module and an entry in ``ENGINES`` of ``engines.dispatch``.
"""
