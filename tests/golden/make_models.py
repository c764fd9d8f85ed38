"""Write the models in tests/golden/models, and what they answer, in format version 1.

Files that exist are kept, and so is what they answered: they show that what people have kept can
still be read. Those that begin with "published" hold what ``MaPML`` learned when it had only the
parameters of the paper, with its defaults at the time: those of ``MaPML.as_published``.

    python tests/golden/make_models.py
"""

from pathlib import Path

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from latentmetric import OASIS, MaPML, save

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
    words = np.array(["ape", "bee", "crow"])
    columns = ColumnTransformer(
        [("numbers", make_pipeline(SimpleImputer(), StandardScaler(), PCA(3)), slice(0, 4)),
         ("codes", OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist"), [4])]
    )  # fmt: skip
    return [
        ("published", MaPML.as_published(**few), np.float64, np.array([3, 5, 8])),
        ("published-original",
         MaPML.as_published(reference="original", weights="kernel", **few), np.float32, words),
        ("published-stopping",
         MaPML.as_published(n_latents={False: 3, True: 2}, early_stopping=True,
                            weights="distance", **few), np.float32,
         np.array([False, True, True])),
        ("mapml", MaPML(early_stopping=True, **few), np.float64, words.astype(object)),
        ("bandwidths", MaPML(4, bandwidth="latent", **few), np.float32, words),
        ("oasis", OASIS(psd=False, n_steps=300, random_state=0), np.float32,
         np.array([0, 1, 2], np.int8)),
        ("pipeline", make_pipeline(columns, MaPML(**few)), np.int8, words),
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
        expected[name] = model.predict_proba(rows[:QUERIES])
    np.savez_compressed(answers, **expected)


if __name__ == "__main__":
    main()
