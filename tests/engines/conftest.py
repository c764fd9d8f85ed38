"""Rows in every kind of storage, and clusters for Dask arrays."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from latentmetric.io import open_rows

STORAGES = ("array", "frame", "map", "row file", "Dask array")


def cluster_of_three(processes):
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, processes=processes, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def client():
    """A cluster of three threads."""
    yield from cluster_of_three(processes=False)


@pytest.fixture
def processes():
    """A cluster of three processes, which can be killed."""
    yield from cluster_of_three(processes=True)


@pytest.fixture(params=STORAGES)
def storage(request):
    """Where the rows of a test are stored."""
    if request.param == "Dask array":
        request.getfixturevalue("client")
    return request.param


@pytest.fixture
def store(storage, tmp_path):
    """A function that stores an array of rows in that storage."""

    def stored(X):
        if storage == "array":
            return X
        if storage == "frame":
            return pd.DataFrame(X, columns=[f"f{i}" for i in range(np.shape(X)[1])])
        if storage == "Dask array":
            return da.from_array(X, chunks=(7, *[-1] * (X.ndim - 1)))
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, X)
        return np.load(path, mmap_mode="r") if storage == "map" else open_rows(path)

    return stored
