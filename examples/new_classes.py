"""
Can I add classes without training again?
=========================================

Products, people and requests come and go. The metric says which differences matter, and those
usually matter for new classes as well. So you can add classes to a fitted model in a moment: it
keeps its metric and places latent examples for the new rows.
"""

# %%
# Learn the digits from 0 to 6. The digits 7, 8 and 9 arrive later.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric import MaPML
from latentmetric.viz import plot_latents

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
known = y_train < 7
model = MaPML(random_state=0).fit(X_train[known], y_train[known])
print("classes:", model.classes_)

# %%
# Add the others. Nothing that was learned changes: neither the metric nor the latent examples of
# the first seven digits. The pictures still differ, because each shows the plane that separates its
# own classes best.

figure, (before, after) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plot_latents(model, ax=before)
before.set_title("before")
model.add_classes(X_train[~known], y_train[~known])
plot_latents(model, ax=after)
after.set_title("after")
plt.show()
print("classes:", model.classes_)

# %%
# How much accuracy does it cost? Compare it with a fit to all ten digits.

again = MaPML(random_state=0).fit(X_train, y_train)
for name, compared in (("three classes added", model), ("all ten fitted", again)):
    print(f"{name:20} {100 * (1 - compared.score(X_test, y_test)):.1f} % errors")

# %%
# ``remove_classes`` is the reverse.

model.remove_classes([0, 1])
print("classes:", model.classes_)
