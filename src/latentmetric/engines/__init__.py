"""Where rows are: in memory, in files, on a cluster. One door admits them all.

An engine is added by one module and one entry of ``ENGINES`` in ``engines.admission``.
"""
