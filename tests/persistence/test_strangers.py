"""Files of strangers: whatever they hold, loading ends in a model that answers or ModelFileError.

No code runs, and memory and time are bounded by the size of the file.
"""

import json
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from helpers import make_blobs
from mutations import CODE_EVENTS, NEW_CHECKSUMS, OLD_CHECKSUMS, Opened
from pipelines import OF_FRAMES, OF_NUMBERS, make_frame, make_numbers, model
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentmetric import OASIS, Euclidean, MaPML, ModelFileError, load, save

X, Y = make_blobs(90)
NUMBERS, FRAME = make_numbers(), make_frame()

MODELS = {
    "MaPML": (MaPML(5, max_iter=1, n_steps=50, refine=1, bandwidth="latent", random_state=0), X, Y),
    "MaPML of words": (MaPML({"a": 2, "b": 1, "c": 3}, max_iter=1, n_steps=50, refine=0,
                             reference="original"), X.astype(np.float32), np.array([*"abc"])[Y]),
    "OASIS": (OASIS(psd=False, n_steps=50, random_state=0), X, Y),
    "Euclidean": (Euclidean(), X.astype(np.float32), Y > 0),
    "numbers": (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), PCA(3), model()),
                *NUMBERS),
    "columns": (make_pipeline(*map(clone, OF_NUMBERS["columns"]), model()), *NUMBERS),
    "frame": (make_pipeline(OF_FRAMES["chosen by type"], model()), *FRAME),
}  # fmt: skip


ROW_IDS = {
    "MaPML": {"row_ids": [f"text {number}" for number in range(90)]},
    "Euclidean": {"row_ids": range(90)},
}
"""What some of the fits are given beside rows and labels."""


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """The bytes of a file of each model."""
    path, found = tmp_path_factory.mktemp("strangers") / "model", {}
    for name, (estimator, rows, labels) in MODELS.items():
        save(estimator.fit(rows, labels, **ROW_IDS.get(name, {})), path)
        found[name] = path.read_bytes()
    return found


def load_bytes(folder, content):
    (folder / "changed").write_bytes(content)
    return load(folder / "changed")


def answer(loaded, rows):
    """What a model answers; rows that are too far away for it may be refused, nothing else."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shares = loaded.predict_proba(rows)
        except ValueError as error:
            return str(error)
        assert np.isfinite(shares).all()
        assert np.isin(loaded.predict(rows), loaded.classes_).all()
        last = loaded[-1] if hasattr(loaded, "steps") else loaded
        if last.model_.row_ids is not None:
            assert repr(last.explain(rows))
        return shares.tobytes()


def mutate(folder, contents, seed):
    generator = np.random.default_rng(seed)
    name = list(contents)[generator.integers(len(contents))]
    changes = OLD_CHECKSUMS + NEW_CHECKSUMS * 2
    change = changes[generator.integers(len(changes))]
    changed = change(contents[name], generator)
    try:
        loaded = load_bytes(folder, changed)
    except ModelFileError:
        return
    found = answer(loaded, MODELS[name][1])
    if change in OLD_CHECKSUMS:
        assert found == answer(MODELS[name][0], MODELS[name][1])


@pytest.mark.parametrize(
    "seeds", [range(250), pytest.param(range(1_000, 4_000), marks=pytest.mark.slow)]
)
def test_a_changed_file_is_a_model_or_is_refused(tmp_path, contents, seeds):
    for seed in seeds:
        mutate(tmp_path, contents, seed)


def step_of(kind, n_features, fitted=None, **more):
    """A step as a file describes it."""
    return {
        "step": kind, "parameters": {}, "n_features": n_features, "feature_names": None,
        "output": None, "fitted": fitted or {}, **more,
    }  # fmt: skip


def columns_of(n_features, *parts, remainder="drop"):
    named = [[f"p{number}", *part] for number, part in enumerate(parts)]
    return step_of("ColumnTransformer", n_features, parts=named, remainder=remainder, sparse=False)


def doubled(depth, n_features=1):
    """Columns that each of ``depth`` nested steps gives twice."""
    if not depth:
        return step_of("Normalizer", n_features)
    everything = {"slice": [0, n_features]}
    inner = doubled(depth - 1, n_features)
    return columns_of(n_features, [inner, everything], [inner, everything])


def in_a_row(depth):
    parts = [["passthrough", {"slice": [0, 2**n]}] for n in range(depth)]
    return [[str(n), columns_of(2**n, part, part)] for n, part in enumerate(parts)]


def nested(depth, name="a"):
    step = step_of("Normalizer", 8)
    for _ in range(depth):
        step = {"step": "Pipeline", "parameters": {}, "steps": [[name, step]]}
    return [["a", step]]


def wide_encoder(n_features, n_categories):
    known = [{"$values": ["a"], "dtype": "object"}] * (n_features - 1)
    known.append({"$values": [str(n) for n in range(n_categories)], "dtype": "object"})
    found = {"categories": known, "infrequent": [[] for _ in known]}
    return step_of("OneHotEncoder", n_features, found)


BOMBS = {
    "features that nothing backs": [["a", step_of("Normalizer", 10**12)]],
    "columns that no step takes": [["a", columns_of(10**9)]],
    "columns doubled by nested steps": [["a", doubled(10)]],
    "columns doubled 30 times": in_a_row(30),
    "columns in millions of parts": [
        ["a", columns_of(1000, *[["passthrough", {"slice": [0, 1000]}]] * 5_000)]
    ],
    "an encoder of 2,000 by 2,000": [["a", wide_encoder(2_000, 2_000)]],
    "20,000 scalers": [[str(n), step_of("Normalizer", 8)] for n in range(20_000)],
    "categories as wide as 8 million": [
        [
            "a",
            step_of(
                "OneHotEncoder",
                1,
                {
                    "categories": [{"$values": ["a", "b", "c" * 2**23], "dtype": "str"}],
                    "infrequent": None,
                },
            ),
        ]
    ],
    "steps nested 30 deep": nested(30),
    "steps without names": nested(30, ""),
}


@pytest.mark.parametrize("name", BOMBS)
def test_steps_take_no_more_than_their_file_allows(tmp_path, contents, name):
    opened = Opened.of(contents["numbers"])
    opened.document["model"]["steps"][:-1] = BOMBS[name]
    content = opened.closed()
    load_bytes(tmp_path, contents["numbers"])
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"too much memory for a file of|8 deep"):
            load_bytes(tmp_path, content)
        assert tracemalloc.get_traced_memory()[1] < 96 * 2**20 + 20 * len(content)
    finally:
        tracemalloc.stop()


def test_loading_runs_no_code_of_the_file(tmp_path, contents):
    events, watching = [], [False]
    for content in contents.values():
        load_bytes(tmp_path, content)  # imports what is imported on first use
    sys.addaudithook(
        lambda event, _: events.append(event) if watching[0] and event in CODE_EVENTS else None
    )
    watching[0] = True
    try:
        for content in contents.values():
            load_bytes(tmp_path, content)
    finally:
        watching[0] = False
    assert not events


def of_model(part, **changes):
    return lambda opened: opened.document["model"][part].update(changes)


def of_round(**changes):
    return lambda opened: opened.document["model"]["attributes"]["history_"][0].update(changes)


def of_tried(**changes):
    return lambda opened: opened.document["model"]["attributes"]["history_"][0]["tried"][0].update(
        changes
    )


def of_arrays(**changes):
    """Each array is replaced by a function of itself."""
    return lambda opened: opened.arrays.update(
        {name: change(opened.arrays.get(name)) for name, change in changes.items()}
    )


def words(*texts):
    return {"$values": texts, "dtype": "str"}


def filled(number):
    return lambda array: np.full_like(array, number)


CHANGES = {
    "another estimator": lambda o: o.document.update(estimator="OASIS"),
    "code": lambda o: o.document["model"].update(estimator="os.system"),
    "another parameter": of_model("parameters", more=1),
    "a wrong parameter": of_model("parameters", n_neighbors=0),
    "no margins": lambda o: o.document["model"]["attributes"].pop("margins_"),
    "a method": of_model("attributes", predict=1),
    "a negative count": of_model("attributes", n_iter_=-1),
    "other features": of_model("attributes", n_features_in_=5),
    "other references": of_model("attributes", reference_="os"),
    "too few names": of_model("attributes", feature_names_in_=words("a")),
    "no rounds": of_model("attributes", history_=[]),
    "a round without a number": of_round(round="1"),
    "a start that is no start": of_round(start="\x1b[2J"),
    "a candidate with more": of_tried(more=1),
    "no number of latents": of_model("attributes", n_latents_="auto"),
    "no sets": of_model("attributes", n_sets_=0),
    "more sets than latents": of_model("attributes", n_sets_=2**40),
    "classes out of order": of_model("attributes", classes_=words("b", "a", "c")),
    "classes too wide": of_model("attributes", classes_=words("a", "b", "c" * 2**23)),
    "no weights": lambda o: o.document["model"]["voting"].pop("log_weights"),
    "no lengths of ids": lambda o: o.document["model"]["voting"].pop("id_lengths"),
    "a missing array": lambda o: o.arrays.pop("margins"),
    "infinite scales": of_arrays(log_scales=filled(np.inf)),
    "negative counts": of_arrays(latent_counts=filled(-1.0)),
    "huge margins": of_arrays(margins=filled(1e308)),
    "classes of other references": of_arrays(codes=filled(0)),
    "codes outside the classes": of_arrays(codes=filled(3)),
    "latent labels out of order": of_arrays(latent_labels=lambda array: array[::-1].copy()),
    "latent examples too far": of_arrays(latent_examples=filled(1e308)),
    "distances that overflow": of_arrays(components=lambda array: array * 1e300),
    "no metric": of_arrays(components=filled(0.0)),
    "ids of any length": of_arrays(id_lengths=filled(2**62)),
    "ids that are not text": of_arrays(row_ids=filled(255)),
    "fewer references": of_arrays(
        **dict.fromkeys(("references", "codes", "log_scales", "log_weights"), lambda one: one[:-1])
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_contents_that_do_not_fit_each_other_are_refused(tmp_path, contents, what):
    opened = Opened.of(contents["MaPML"])
    CHANGES[what](opened)
    with pytest.raises(ModelFileError, match="changed: "):
        load_bytes(tmp_path, opened.closed())


@pytest.mark.parametrize("scale", [1e-60, 3e38])
def test_numbers_that_float32_cannot_hold_are_refused(tmp_path, contents, scale):
    opened = Opened.of(contents["Euclidean"])
    opened.document["model"]["voting"]["scale"] = scale
    with pytest.raises(ModelFileError, match="overflow in float32: the scale"):
        load_bytes(tmp_path, opened.closed())


@pytest.mark.parametrize("number", [-1e4, 1e4, 1e20])
def test_bandwidths_and_weights_of_any_size_give_probabilities(tmp_path, contents, number):
    for name in ("log_scales", "log_weights"):
        opened = Opened.of(contents["MaPML"])
        opened.arrays[name][::2] = number
        opened.document["model"]["voting"]["temperature"] = 0.0
        loaded = load_bytes(tmp_path, opened.closed())
        shares = loaded.predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert (shares > 0).all()
        assert np.isfinite(loaded.label_scores(X, Y)).all()


def numbers(index, *keys, **changes):
    """Changes a step of the pipeline of numbers, or a part of it."""

    def change(steps):
        entry = steps[index][1]
        for key in keys:
            entry = entry[key]
        entry.update(changes)

    return "numbers", change


def frame(*keys, **changes):
    return "frame", numbers(0, *keys, **changes)[1]


ENCODER = ("parts", 1, 1, "steps", 1, 1)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("numbers", lambda steps: steps[-1].__setitem__(0, "pca"), "no name of its own"),
        ("numbers", lambda steps: steps[1].__setitem__(1, "drop"), "or drops all"),
        ("numbers", lambda steps: steps.pop(2), "takes 3 features, but 8 come"),
        ("numbers", lambda steps: steps.pop(), "must end in one of MaPML"),
        (*numbers(1, step="Popen"), "'standardscaler' is not one of"),
        (*numbers(1, feature_names=["a"]), "has not 8 feature names"),
        (*numbers(1, output="latent"), "no known output"),
        (
            *numbers(2, "fitted", mean_={"$array": "references"}),
            "mean_ of a PCA does not fit its 8",
        ),
        (*numbers(1, "parameters", with_mean="yes"), "with_mean"),
        (*numbers(0, "fitted", fitted_to="M8[s]"), "no statistics"),
        ("frame", lambda steps: steps[0][1]["parts"][0].__setitem__(2, [99]), "there are not"),
        ("frame", lambda steps: steps[0][1]["parts"][0].__setitem__(2, []), "but 0 come to it"),
        (*frame("remainder", "fitted", infrequent=[[0, 1, 2, 3]]), "is infrequent"),
        (*frame("remainder", "fitted", categories=[]), "categories"),
        (*frame("parameters", verbose_feature_names_out="{feature_name:>99999999}"), "verbose_fe"),
        (*frame("parameters", transformer_weights={"words": "a"}), "weights of columns"),
        (*frame(feature_names="abcd"), "not valid|feature names"),
        (*frame(*ENCODER, "parameters", dtype="V1000000000"), "no parameter 'dtype'"),
    ],
)
def test_steps_that_do_not_fit_each_other_are_refused(tmp_path, contents, name, change, message):
    opened = Opened.of(contents[name])
    change(opened.document["model"]["steps"])
    with pytest.raises(ModelFileError, match=f"changed: .*({message})"):
        load_bytes(tmp_path, opened.closed())


@pytest.mark.parametrize(
    ("part", "number"),
    [("scale_", np.nan), ("scale_", 0.0), ("components_", np.inf), ("statistics", np.inf)],
)
def test_steps_that_would_spoil_rows_are_refused(tmp_path, contents, part, number):
    opened = Opened.of(contents["numbers"])
    (name,) = (name for name in opened.arrays if name.endswith(part))
    opened.arrays[name][:] = number
    with pytest.raises(ModelFileError, match="infinite"):
        load_bytes(tmp_path, opened.closed())


def test_a_file_names_no_cache(tmp_path, contents):
    opened = Opened.of(contents["numbers"])
    opened.document["model"]["parameters"]["memory"] = "cache"
    with pytest.raises(ModelFileError, match="Pipeline has no parameter 'memory'"):
        load_bytes(tmp_path, opened.closed())


def test_categories_out_of_order_are_refused(tmp_path, contents):
    """Their indices would be larger than the encoder is wide."""
    opened = Opened.of(contents["columns"])
    name = next(name for name in opened.arrays if "categories" in name)
    opened.arrays[name] = opened.arrays[name][::-1].copy()
    with pytest.raises(ModelFileError, match="not in ascending order"):
        load_bytes(tmp_path, opened.closed())


def test_a_text_of_json_that_is_no_document_is_refused(tmp_path, contents):
    opened = Opened.of(contents["Euclidean"])
    for text in ("null", "[]", "{}", "nonsense", "[" * 100_000, json.dumps([0] * 600_000)):
        with pytest.raises(ModelFileError, match="changed: "):
            load_bytes(tmp_path, opened.closed(text))
