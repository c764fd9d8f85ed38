"""
What if my images are noisy?
============================

A camera in the dark, a cheap scanner: the pictures are noisy, but you want to classify clean ones
as well. The latent examples are means of many rows, so noise averages out in them, and the metric
learns which directions are mostly noise.
"""

# %%
# Add noise to the training images of scikit-learn's digits. The brightest pixel is 16, and the
# noise has a standard deviation of 8. The test images stay clean.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from latentmetric import MaPML

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
noisy = X_train + np.random.default_rng(0).normal(0, 8, X_train.shape)

# %%
# Fit three classifiers to the noisy images.

learners = {
    "3-NN": KNeighborsClassifier(3),
    "logistic regression": LogisticRegression(C=1e-3, max_iter=1_000),
    "MaPML": MaPML(random_state=0),
}
errors = {
    name: 100 * (1 - learner.fit(noisy, y_train).score(X_test, y_test))
    for name, learner in learners.items()
}
for name, error in errors.items():
    print(f"{name:20} {error:4.1f} % errors")

# %%
# The upper row shows a noisy image of each digit, the lower row the latent example that stands for
# the most images of that digit.

model = learners["MaPML"]
figure, axes = plt.subplots(2, 10, figsize=(8, 2), layout="constrained")
for digit in model.classes_:
    of_digit = np.flatnonzero(model.latent_labels_ == digit)
    largest = of_digit[np.argmax(model.latent_counts_[of_digit])]
    shown = (noisy[y_train == digit][0], model.latent_examples_[largest])
    for ax, image in zip(axes[:, digit], shown, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("row")
axes[1, 0].set_ylabel("latent")
plt.show()
