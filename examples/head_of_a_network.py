"""
Can it be the head of my network?
=================================

The last layer of a network for classification is linear and trained with the rest. MaPML can
replace it: its features are the activations before the last layer. You gain latent examples to look
at, a score for rows of unknown classes, and new classes without retraining the network.
"""

# %%
# Train a small network on the digits 0 to 7 of scikit-learn. It stands for any network that you
# have trained, with any library.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from latentmetric import MaPML

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
old, old_test = y_train < 8, y_test < 8
network = MLPClassifier((64, 32), max_iter=300, random_state=0)
network.fit(X_train[old], y_train[old])


def activations(rows):
    """The inputs of the last layer of the network."""
    for weights, biases in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        rows = np.maximum(rows @ weights + biases, 0)
    return rows


train, test = activations(X_train), activations(X_test)

# %%
# Replace the head by k-NN and by MaPML, and compare them with the network's own head.

neighbours = KNeighborsClassifier(3).fit(train[old], y_train[old])
head = MaPML(random_state=0).fit(train[old], y_train[old])
errors = {
    "network's own head": 1 - network.score(X_test[old_test], y_test[old_test]),
    "3-NN head": 1 - neighbours.score(test[old_test], y_test[old_test]),
    "MaPML head": 1 - head.score(test[old_test], y_test[old_test]),
}
for name, error in errors.items():
    print(f"{name:20} {100 * error:.1f} % errors on the digits from 0 to 7")

# %%
# Now the digits 8 and 9 arrive. The network stays as it is, and so does the metric of its head.

head.add_classes(train[~old], y_train[~old])
print(
    f"{'with 8 and 9 added':20} {100 * (1 - head.score(test, y_test)):.1f} % errors on all digits"
)

# %%
# The network has never seen an 8 or a 9, so its features were not made for them. The picture shows
# where the errors are.

shares = np.zeros((10, 10))
np.add.at(shares, (y_test, head.predict(test)), 1)
shares /= shares.sum(axis=1, keepdims=True)
figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
image = ax.imshow(100 * shares, cmap="Blues", vmin=0, vmax=100)
figure.colorbar(image, label="share of the rows of a digit, %")
ax.set(xlabel="predicted", ylabel="digit", xticks=range(10), yticks=range(10))
plt.show()
