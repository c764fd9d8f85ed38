"""Write the models in tests/golden/models, and what they answer, in format version 1.

Files that exist are kept, and so is what they answered: they show that what people have kept can
still be read. Those that begin with "published" were written when ``MaPML`` had only the parameters
of the paper, with its defaults at the time, which are those of ``MaPML.as_published``.

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
        ("published", MaPML.as_published(**few), np.float64, np.array([3, 5, 8])),
        ("published-original",
         MaPML.as_published(reference="original", weights="kernel", **few), np.float32,
         np.array(["ape", "bee", "crow"])),
        ("published-stopping",
         MaPML.as_published(n_latents={False: 3, True: 2}, early_stopping=True,
                            weights="distance", **few), np.float32,
         np.array([False, True, True])),
        ("mapml", MaPML(**few), np.float64, np.array([3, 5, 8])),
        ("mapml-stopping", MaPML(early_stopping=True, start="within", n_components=2, **few),
         np.float32, np.array(["ape", "bee", "crow"])),
        ("lmnn", LMNN(max_iter=20), np.float64, np.array([0.0, 1.0, 2.0], dtype=np.float32)),
        ("oasis", OASIS(psd=False, n_steps=300, random_state=0), np.float32,
         np.array([0, 1, 2], np.int8)),
        ("oasis-psd", OASIS(psd=True, n_steps=300, weights="distance"), np.float64,
         np.array(["ä", "日本", "z"], dtype=object)),
        ("hrsgd", HRSGD(n_steps=300, random_state=0), np.float32, np.array([2, 4, 2**40])),
        ("euclidean", Euclidean(n_neighbors=1), np.float32, np.array([0, 1, 255], np.uint8)),
    ]  # fmt: skip


def main():
    X, codes = blobs()
    answers = FOLDER / "expected.npz"
    expected = dict(np.load(answers)) if answers.exists() else {"queries": X[:QUERIES]}
    for name, model, dtype, labels in models():
        if (FOLDER / f"{name}.safetensors").exists():
            continue
        rows = X.astype(dtype)
        model.fit(rows[QUERIES:], labels[codes[QUERIES:]])
        save(model, FOLDER / f"{name}.safetensors")
        distances, neighbours = model.kneighbors(rows[:QUERIES])
        expected[f"{name} distances"] = distances
        expected[f"{name} neighbours"] = neighbours
        expected[f"{name} shares"] = model.predict_proba(rows[:QUERIES])
        expected[f"{name} labels"] = model.predict(rows[:QUERIES]).astype(str)
    np.savez_compressed(answers, **expected)


if __name__ == "__main__":
    main()
