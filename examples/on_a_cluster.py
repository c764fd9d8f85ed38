"""
Do I get the same model on a cluster?
=====================================

Rows that do not fit on one machine can stay on a Dask cluster: ``fit`` takes Dask arrays. This
example starts a small cluster within the process, so that it runs anywhere. For a real cluster,
only the address changes.
"""

# %%
# 4,000 rows in chunks of 1,000, and the same rows in memory to compare with.

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client
from sklearn.datasets import make_classification

from latentmetric import MaPML

rows, labels = make_classification(4_000, 16, n_informative=8, n_classes=6, random_state=0)
X = da.from_array(rows, chunks=(1_000, -1))  # yours: da.from_zarr("features.zarr")
y = da.from_array(labels, chunks=1_000)
parameters = {"n_latents": 8, "max_iter": 2, "refine": 1, "random_state": 0}

# %%
# Fit on the cluster. Predictions are also Dask arrays: nothing is computed before ``compute``.

with Client(
    processes=False, n_workers=2, dashboard_address=None
):  # yours: Client("scheduler:8786")
    distributed = MaPML(**parameters).fit(X, y)
    answers = distributed.predict(X).compute()

# %%
# Fit in memory, with the same seed.

local = MaPML(**parameters).fit(rows, labels)
print(f"same answers: {100 * np.mean(answers == local.predict(rows)):.1f} %")
difference = np.abs(distributed.latent_examples_ - local.latent_examples_).max()
print(f"largest difference of a feature of a latent example: {difference:.0e}")

# %%
# The losses of both fits agree, round by round and pass by pass.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, model, style in (("cluster", distributed, "o-"), ("memory", local, "x--")):
    losses = [record["loss"] for record in model.history_]
    ax.plot(losses, style, label=name, markersize=9)
ax.set(xlabel="round, then pass of the refinement", ylabel="leave-one-out loss of training rows")
ax.set_xticks(range(len(local.history_)))
ax.legend()
plt.show()
