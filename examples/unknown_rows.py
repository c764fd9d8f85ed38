"""
What does it say about rows of no known class?
==============================================

A classifier gives every row one of its classes, even a row that belongs to none of them.
``score_samples`` says how much a row looks like known ones, by its distance from the nearest latent
example, and ``predict`` can reject rows with a low score.
"""

# %%
# The model learns the digits from 0 to 7 and never sees an 8 or a 9.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric import MaPML

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
known = y_train < 8
model = MaPML(random_state=0).fit(X_train[known], y_train[known])

# %%
# Choose the share of known rows that you can afford to reject. ``reject_threshold`` gives the score
# below which about that share of new rows lies.

threshold = model.reject_threshold(0.05)
answers = model.predict(X_test, reject_below=threshold, reject_label=-1)
is_known = y_test < 8
print(f"rejected among known digits:   {100 * np.mean(answers[is_known] == -1):.0f} %")
print(f"rejected among unknown digits: {100 * np.mean(answers[~is_known] == -1):.0f} %")

# %%
# The picture shows why: scores of unknown digits are lower, but the two groups overlap. Move the
# threshold to the right to reject more of both.

scores = model.score_samples(X_test)
edges = np.linspace(scores.min(), scores.max(), 40)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.hist(scores[is_known], edges, alpha=0.6, density=True, label="known: 0 to 7")
ax.hist(scores[~is_known], edges, alpha=0.6, density=True, label="unknown: 8 and 9")
ax.axvline(threshold, color="black", linestyle="--", label="threshold")
ax.set(xlabel="score: how much a row looks like known ones", yticks=[])
ax.legend()
plt.show()
