"""Write the models in tests/golden/models, and what they answer, in format version 1.

Run once, with the library at the version that first wrote the format; before the first release
that may be done again. After it files of a version are never written again: they show that what
people have kept can still be read.

    python tests/golden/make_models.py
"""

from pathlib import Path

import numpy as np

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML, save

FOLDER = Path(__file__).parent / "models"
QUERIES = 20


def blobs():
    generator = np.random.default_rng(7)
    codes = np.arange(90) % 3
    X = generator.standard_normal((90, 5)) * [3, 2, 1, 1, 1]
    X[:, 3] += 2.5 * codes
    return X, codes


def models():
    """File names, models, dtypes and labels of the three classes (two where they are Booleans)."""
    few = {"max_iter": 2, "n_steps": 300, "random_state": 0}
    return [
        ("mapml", MaPML(**few), np.float64, np.array([3, 5, 8])),
        ("mapml-original", MaPML(reference="original", weights="kernel", **few), np.float32,
         np.array(["ape", "bee", "crow"])),
        ("mapml-stopping", MaPML({False: 3, True: 2}, early_stopping=True, weights="distance",
                                 **few), np.float32, np.array([False, True, True])),
        ("lmnn", LMNN(max_iter=20), np.float64, np.array([0.0, 1.0, 2.0], dtype=np.float32)),
        ("oasis", OASIS(n_steps=300, random_state=0), np.float32, np.array([0, 1, 2], np.int8)),
        ("oasis-psd", OASIS(psd=True, n_steps=300, weights="distance"), np.float64,
         np.array(["ä", "日本", "z"], dtype=object)),
        ("hrsgd", HRSGD(n_steps=300, random_state=0), np.float32, np.array([2, 4, 2**40])),
        ("euclidean", Euclidean(n_neighbors=1), np.float32, np.array([0, 1, 255], np.uint8)),
    ]  # fmt: skip


def main():
    X, codes = blobs()
    expected = {"queries": X[:QUERIES]}
    for name, model, dtype, labels in models():
        rows = X.astype(dtype)
        model.fit(rows[QUERIES:], labels[codes[QUERIES:]])
        save(model, FOLDER / f"{name}.safetensors")
        distances, neighbours = model.kneighbors(rows[:QUERIES])
        expected[f"{name} distances"] = distances
        expected[f"{name} neighbours"] = neighbours
        expected[f"{name} shares"] = model.predict_proba(rows[:QUERIES])
        expected[f"{name} labels"] = model.predict(rows[:QUERIES]).astype(str)
    np.savez_compressed(FOLDER / "expected.npz", allow_pickle=False, **expected)


if __name__ == "__main__":
    main()
