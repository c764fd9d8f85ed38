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


def shortened(array):
    return array[:-1]


CHANGES = [
    (lambda o: o.document.update(estimator="OASIS"), "another estimator than"),
    (lambda o: o.document["model"].update(estimator="os.system"), "is not one of MaPML"),
    (of_model("parameters", more=1), "parameter .'more'. is unknown"),
    (of_model("parameters", n_neighbors=0), "n_neighbors"),
    (of_model("parameters", reference="x" * 10**6), "xx…|…"),
    (lambda o: o.document["model"]["attributes"].pop("margins_"), "a MaPML lacks margins_"),
    (of_model("attributes", predict=1), "attribute .'predict'. is unknown"),
    (of_model("attributes", n_iter_=-1), "n_iter_ is not a count"),
    (of_model("attributes", n_features_in_=5), "the others require"),
    (of_model("attributes", reference_="os"), "reference_ is not one of"),
    (of_model("attributes", feature_names_in_=words("a")), "feature names are not 6 strings"),
    (of_model("attributes", history_=[]), "the history holds no round"),
    (of_round(round="1"), "has no number"),
    (of_round(start="\x1b[2J"), "holds a 'start' that is"),
    (of_round(seconds={"a": "b"}), "holds a 'seconds' that is"),
    (of_round(bandwidth="wide"), "holds a 'bandwidth' that is"),
    (of_tried(start="\x1b[2J"), "holds a 'tried' that is"),
    (of_tried(ridge="1"), "holds a 'tried' that is"),
    (of_tried(more=1), "holds a 'tried' that is"),
    (of_round(tried=[[]]), "not valid"),
    (of_model("attributes", n_latents_="auto"), "n_latents_"),
    (of_model("attributes", n_latents_=0), "n_latents_"),
    (of_model("attributes", classes_=words("b", "a", "c")), "ascending order"),
    (of_model("attributes", classes_=words("a", "b", "c" * 2**23)), "too much memory"),
    (of_model("attributes", classes_={"$values": [1, 2, 3], "dtype": "str"}), "what its dtype"),
    (of_model("parameters", random_state=-1), "random_state must be .* got -1"),
    (of_model("parameters", random_state="0"), "random_state must be .* got '0'"),
    (of_model("voting", scale=0.0), "scale and temperature"),
    (lambda o: o.document["model"]["voting"].pop("log_weights"), "are a pair"),
    (of_arrays(log_scales=filled(np.inf)), "'log_scales' holds .* not finite"),
    (of_arrays(log_scales=filled(-1e300)), "'log_scales' holds .* not from -1e.20 to 1e.20"),
    (of_arrays(latent_counts=filled(-1.0)), "'latent_counts_' holds .* not from 0 to"),
    (of_arrays(latent_counts=filled(1e308)), "'latent_counts_' holds .* not from 0 to"),
    (of_arrays(margins=filled(1e308)), "the margin 1e.308 is too large"),
    (of_arrays(codes=filled(0)), "not of the classes of the references"),
    (of_arrays(log_weights=lambda array: array[1:]), "'log_weights' has shape"),
    (of_arrays(log_weights=lambda array: array.astype("f4")), "is float32, not float64"),
    (lambda o: o.arrays.pop("margins"), "the array 'margins' is missing"),
    (of_arrays(more=lambda _: np.zeros(3)), "'more' is not part of this model"),
    (of_arrays(margins=filled(np.nan)), "'margins_' holds .* not finite"),
    (of_arrays(margins=lambda array: array.astype("f4")), "is float32, not float64"),
    (of_arrays(references=lambda array: array.astype("i8")), "references are int64, not floats"),
    (of_arrays(codes=filled(3)), "code outside the classes"),
    (of_arrays(latent_labels=lambda array: array[::-1].copy()), "not in ascending order"),
    (of_arrays(latent_examples=filled(1e308)), "distances in float64"),
    (of_arrays(components=lambda array: array * 1e300), "overflow in float64"),
    (of_arrays(components=filled(0.0)), "the metric is 0"),
    (of_arrays(id_lengths=filled(1)), "ids of rows are not those"),
    (of_arrays(id_lengths=filled(2**62)), "ids of rows are not those"),
    (of_arrays(id_lengths=lambda array: -array), "ids of rows are not those"),
    (of_arrays(id_lengths=lambda array: array[:, :2].copy()), "ids of rows are not those"),
    (of_arrays(row_ids=lambda array: array.astype("i8")), "ids of rows are not those"),
    (of_arrays(row_ids=filled(ord("x"))), "neither text nor a number"),
    (of_arrays(row_ids=filled(ord("i"))), "invalid literal"),
    (of_arrays(row_ids=filled(255)), "can't decode"),
    (lambda o: o.document["model"]["voting"].pop("id_lengths"), "id_lengths"),
    (of_arrays(**dict.fromkeys(("references", "codes", "log_scales", "log_weights"), shortened)),
     "latent examples are not the .* references"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_contents_that_do_not_fit_each_other_are_refused(tmp_path, contents, change, message):
    opened = Opened.of(contents["MaPML"])
    change(opened)
    with pytest.raises(ModelFileError, match=f"changed: .*({message})"):
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
        (*numbers(1, feature_names=["a"]), "not have 8 feature names"),
        (*numbers(1, feature_names="abcdefgh"), "not have 8 feature names"),
        (*numbers(1, output="latent"), "'standardscaler' gives 'latent'"),
        (*numbers(1, output=[]), "'standardscaler' gives "),
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
