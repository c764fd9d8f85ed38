"""
What if some labels are wrong?
==============================

Labels come from tired people, from rules or from clicks, and some of them are wrong. Two things
help: tell the fit that labels may be wrong, and look at the labels that the model doubts most.
"""

# %%
# Replace three in ten of the training labels by random ones. The test labels stay right.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric import MaPML

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
generator = np.random.default_rng(0)
replaced = generator.random(len(y_train)) < 0.3
given = np.where(replaced, generator.integers(0, 10, len(y_train)), y_train)
wrong = given != y_train
print(f"{wrong.sum()} of {len(wrong)} labels are wrong")

# %%
# With ``label_noise=True``, rows with unlikely labels count less. The fewer labels are wrong, the
# less that helps, and it can cost a little: compare both on rows whose labels you have checked.

for label_noise in (False, True):
    model = MaPML(label_noise=label_noise, random_state=0).fit(X_train, given)
    error = 100 * (1 - model.score(X_test, y_test))
    print(f"label_noise={label_noise}: {error:.1f} % errors")

# %%
# ``label_scores`` says how likely each given label is, with the row left out of its own latent
# example. Sort by it and check the lowest scores first: nearly all of them are wrong.

scores = model.label_scores(X_train, given)
order = np.argsort(scores)
checked = np.arange(1, len(order) + 1)
found = np.cumsum(wrong[order])
half = np.searchsorted(found, 0.5 * wrong.sum()) + 1
print(f"Half of the wrong labels are among the {half} most doubtful ones.")

# %%
# Left: how many wrong labels you find by checking the most doubtful ones first, compared with a
# perfect order and with a random one. Right: the eight most doubtful images with their labels.

figure, (ax, grid) = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
ax.plot(checked, found, label="most doubtful first")
ax.plot(checked, np.minimum(checked, wrong.sum()), "k:", label="perfect order")
ax.plot(checked, checked * wrong.mean(), "k--", label="random order")
ax.set(xlabel="labels checked", ylabel="wrong labels found", xlim=(0, 800))
ax.legend()
pictures = [np.pad(X_train[row].reshape(8, 8), 1) for row in order[:8]]
grid.imshow(np.block([pictures[:4], pictures[4:]]), cmap="gray_r")
for place, row in enumerate(order[:8]):
    grid.text(10 * (place % 4) + 0.5, 10 * (place // 4) + 1.5, given[row], color="tab:red")
grid.set(xticks=[], yticks=[], title="labels in red")
plt.show()
