"""
How many labels do I need?
==========================

Labels cost time and money. Here three classifiers learn scikit-learn's handwritten digits from 3 to
30 labelled images of each digit, and predict the same unseen images.
"""

# %%
# Draw a few labelled images of each digit. A stratified split gives each digit its share.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentmetric import MaPML

X, y = load_digits(return_X_y=True)
X_pool, X_test, y_pool, y_test = train_test_split(X, y, stratify=y, random_state=0)
labels_per_digit = [3, 10, 30]
seeds = range(2)


def some_labels(per_digit, seed):
    """Rows and labels of this many images of each digit."""
    return train_test_split(
        X_pool, y_pool, train_size=10 * per_digit, stratify=y_pool, random_state=seed
    )[::2]


# %%
# By default, MaPML has one latent example for every ten rows of a class. With so few rows that
# would often be a single one, so we ask for one for every two rows.

learners = {
    "3-NN": lambda: KNeighborsClassifier(3),
    "logistic regression": lambda: make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=1_000)
    ),
    "MaPML": lambda: MaPML(n_latents=0.5, random_state=0),
}
errors = {
    name: [
        [100 * (1 - make().fit(*some_labels(n, seed)).score(X_test, y_test)) for seed in seeds]
        for n in labels_per_digit
    ]
    for name, make in learners.items()
}

# %%
# The mean error over two draws of the labelled images, in percent.

print("labels per digit:   ", *(f"{n:5d}" for n in labels_per_digit))
for name, measured in errors.items():
    print(f"{name:20}", *(f"{mean:5.1f}" for mean in np.mean(measured, axis=1)))

# %%
# All three make fewer errors with more labels. Read the picture along a horizontal line: it says
# how many labels each classifier needs for the same error. The bars are standard deviations.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, measured in errors.items():
    ax.errorbar(
        labels_per_digit,
        np.mean(measured, axis=1),
        np.std(measured, axis=1),
        label=name,
        marker="o",
    )
ax.set(xscale="log", xlabel="labels per digit", ylabel="test error, %", ylim=(0, None))
ax.set_xticks(labels_per_digit, labels_per_digit)
ax.minorticks_off()
ax.legend()
plt.show()
