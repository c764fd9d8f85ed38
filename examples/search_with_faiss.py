"""
How do I search with faiss?
===========================

You want to find similar images, not only classify them, and you search with faiss. The learned
metric is a linear map, so faiss needs nothing special: map the rows with ``transform`` and use any
index you like. ``to_faiss`` does this for the references of a model.
"""

# %%
# Learn a metric on scikit-learn's digits. Then make all training rows references, because we want
# to find images, not latent examples.

import faiss
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric import MaPML
from latentmetric.evaluation import retrieval_scores
from latentmetric.export import to_faiss

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = MaPML(random_state=0).fit(X_train, y_train)
model.set_references(X_train, y_train)

# %%
# An exact index with the labels beside it.

exported = to_faiss(model)
distances, found = exported.search(X_test, k=5)
print(f"{exported.index.ntotal} references in {exported.index.d} dimensions")
print(f"of the same digit: {100 * np.mean(exported.labels[found] == y_test[:, None]):.1f} %")

# %%
# An approximate index of your own: 32 groups, of which a query looks at 4.

index = faiss.index_factory(exported.index.d, "IVF32,Flat")
rows = exported.queries(X_train)
index.train(rows)
index.add(rows)
index.nprobe = 4
_, approximate = index.search(exported.queries(X_test), 5)
same = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found, approximate, strict=True)])
print(f"neighbours that the approximate index finds, too: {100 * same:.1f} %")

# %%
# Is the search better than with the Euclidean distance? ``map@r`` is 1 if the nearest rows of each
# query are all those of its class.

plain = retrieval_scores(X_test, y_test, X_train, y_train)
learned = retrieval_scores(model.transform(X_test), y_test, model.transform(X_train), y_train)
print(f"map@r: Euclid {plain['map@r']:.2f}, learned {learned['map@r']:.2f}")

# %%
# Queries on the left, each with its five nearest training images.

figure, axes = plt.subplots(4, 6, figsize=(5, 3.4), layout="constrained")
for line, query in zip(axes, np.arange(4), strict=True):
    for ax, image in zip(line, [X_test[query], *X_train[found[query]]], strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel("query")
plt.show()
