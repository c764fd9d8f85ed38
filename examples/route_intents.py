"""
What does this person want, and can I help at all?
==================================================

A router sends a request to the part of a program that can answer it. Fitted to a few texts of each
intent, it turns away what has none of them, shows which texts are behind an answer, and takes a new
intent without a refit.
"""

# %%
# Texts, intents and sentence embeddings. For texts of your own, ``pip install
# sentence-transformers``; then ``X = SentenceTransformer("all-MiniLM-L6-v2").encode(texts)``.

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

import latentmetric
from latentmetric import MaPML
from latentmetric.datasets import load_requests

requests = load_requests()
texts, intents, X = requests.texts, requests.intents, requests.X
others, loans = np.flatnonzero(intents == "none"), np.flatnonzero(intents == "loan")
known = np.setdiff1d(np.arange(len(X)), np.append(others, loans))
train, test = train_test_split(known, test_size=0.4, stratify=intents[known], random_state=0)

# %%
# Fit. The texts that were held back tell the error, and the score below which to say "none of
# these": here that of the lowest twentieth of them.

model = MaPML(random_state=0).fit(X[train], intents[train], row_ids=texts[train])
threshold = np.quantile(model.score_samples(X[test]), 0.05)
answers = model.predict(X[others], reject_below=threshold, reject_label="none")
print(f"right: {model.score(X[test], intents[test]):.0%} of the requests with a known intent")
print(f"turned away: {np.mean(answers == 'none'):.0%} of the others")

# %%
# A new intent, from five texts. Then save the model; a service loads it.

model.add_classes(X[loans[:5]], intents[loans[:5]], row_ids=texts[loans[:5]])
with tempfile.TemporaryDirectory() as folder:
    latentmetric.save(model, f"{folder}/router.model")
    router = latentmetric.load(f"{folder}/router.model")
print("loans recognised:", router.score(X[loans[5:]], intents[loans[5:]]))

# %%
# Requests that the router has not seen, its answers, and a text behind each of them: the most
# typical one of the answer's latent example with the largest vote.

asked = np.array([
    "i think a thief has my card", "how many yen do i get for a dollar", "is my flight on time",
    "do you have a seven seater for hire", "what is the interest on a loan",
    "what does an extra suitcase cost", "my knee hurts when i run", "how do i make pancakes",
])  # fmt: skip
rows = X[np.argmax(texts == asked[:, None], axis=1)]
scores = router.score_samples(rows)
answers = router.predict(rows, reject_below=threshold, reject_label="none of these")
voters = router.explain(rows, n_voters=None)  # the largest share of the vote comes first
first = np.argmax(voters.labels == answers[:, None], axis=1)
behind = voters.row_ids[np.arange(len(rows)), first, 0]
for request, answer, text in zip(asked, answers, behind, strict=True):
    print(f"{request:35} {answer:15} {text if answer in router.classes_ else ''}")

plt.figure(figsize=(8, 3), layout="constrained")
plt.barh(asked, scores - threshold, color=np.where(scores < threshold, "tab:red", "tab:green"))
plt.xlabel("score above the threshold")
plt.show()
