"""Files of strangers: whatever they hold, loading ends in a model that answers or ModelFileError.

No code runs, and memory and time are bounded by the size of the file.
"""

import json
import sys
import tracemalloc
import warnings
from contextlib import suppress

import numpy as np
import pytest
from helpers import make_blobs
from mutations import CODE_EVENTS, NEW_CHECKSUMS, OLD_CHECKSUMS, Opened
from pipelines import OF_FRAMES, OF_NUMBERS, make_frame, make_numbers, model
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

from latentmetric import OASIS, Euclidean, MaPML, ModelFileError, load, save

X, Y = make_blobs(90)
NUMBERS, FRAME = make_numbers(), make_frame()

MODELS = {
    "MaPML": (MaPML(5, max_iter=1, n_steps=50, refine=1, random_state=0), X, Y),
    "MaPML of words": (MaPML({"a": 2, "b": 1, "c": 3}, max_iter=1, n_steps=50, refine=0,
                             reference="original"), X.astype(np.float32), np.array([*"abc"])[Y]),
    "OASIS": (OASIS(psd=False, n_steps=50, random_state=0), X, Y),
    "Euclidean": (Euclidean(), X.astype(np.float32), Y > 0),
    "numbers": (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), PCA(3), model()),
                *NUMBERS),
    "columns": (make_pipeline(*map(clone, OF_NUMBERS["columns"]), model()), *NUMBERS),
    "frame": (make_pipeline(OF_FRAMES["chosen by type"], model()), *FRAME),
}  # fmt: skip


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """The bytes of a file of each model."""
    path, found = tmp_path_factory.mktemp("strangers") / "model", {}
    for name, (estimator, rows, labels) in MODELS.items():
        save(estimator.fit(rows, labels), path)
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


def test_a_changed_file_is_a_model_or_is_refused(tmp_path, contents):
    for seed in range(250):
        mutate(tmp_path, contents, seed)


@pytest.mark.slow
def test_many_changed_files_are_models_or_are_refused(tmp_path, contents):
    for seed in range(1_000, 4_000):
        mutate(tmp_path, contents, seed)


def step_of(kind, n_features, found=None, **more):
    """A step as a file describes it."""
    return {
        "step": kind, "parameters": {}, "n_features": n_features, "feature_names": None,
        "output": None, "found": found or {}, **more,
    }  # fmt: skip


def columns_of(n_features, *parts, remainder="drop"):
    named = [[f"p{number}", *part] for number, part in enumerate(parts)]
    return step_of("ColumnTransformer", n_features, parts=named, remainder=remainder, sparse=False)


def doubled(depth, n_features=1):
    """Columns that each of ``depth`` nested steps gives twice."""
    if not depth:
        return step_of("Normalizer", n_features)
    everything = {"$slice": [None, None, None]}
    inner = doubled(depth - 1, n_features)
    return columns_of(n_features, [inner, everything], [inner, everything])


def in_a_row(depth):
    everything = ["passthrough", {"$slice": [None, None, None]}]
    return [[str(n), columns_of(2**n, everything, everything)] for n in range(depth)]


def nested(depth):
    step = step_of("Normalizer", 8)
    for _ in range(depth):
        step = step_of("Pipeline", 8, steps=[["a", step]])
    return [["a", step]]


def wide_encoder(n_features, n_categories):
    known = [{"$values": ["a"], "dtype": "object"}] * (n_features - 1)
    known.append({"$values": [str(n) for n in range(n_categories)], "dtype": "object"})
    found = {"categories": known, "infrequent": [[] for _ in known]}
    return step_of("OneHotEncoder", n_features, found)


BOMBS = {
    "features that nothing backs": [["a", step_of("Normalizer", 10**12)]],
    "columns doubled by nested steps": [["a", doubled(10)]],
    "columns doubled 30 times": in_a_row(30),
    "columns in millions of parts": [
        ["a", columns_of(1000, *[["passthrough", {"$slice": [0, 1000, 1]}]] * 5_000)]
    ],
    "an encoder of 2,000 by 2,000": [["a", wide_encoder(2_000, 2_000)]],
    "2,000 scalers": [[str(n), step_of("Normalizer", 8)] for n in range(2_000)],
    "steps nested 100 deep": nested(100),
}


@pytest.mark.parametrize("name", BOMBS)
def test_steps_take_no_more_than_their_file_allows(tmp_path, contents, name):
    opened = Opened.of(contents["numbers"])
    opened.document["steps"] = BOMBS[name]
    opened.arrays = {
        key: array for key, array in opened.arrays.items() if not key.startswith("step_")
    }
    content = opened.closed()
    load_bytes(tmp_path, contents["numbers"])
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"more \w+ than a file of this|Recursion"):
            load_bytes(tmp_path, content)
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20 + 20 * len(content)
    finally:
        tracemalloc.stop()


def test_arrays_cannot_multiply_their_size(tmp_path, contents):
    """A mean of 5,000 rows times 5,000 components would be 200 MB from 80 kB."""
    opened = Opened.of(contents["numbers"])
    opened.arrays["bomb_mean"] = np.zeros((5_000, 1))
    opened.arrays["bomb_components"] = np.ones((5_000, 1))
    found = {"mean_": {"$array": "bomb_mean"}, "components_": {"$array": "bomb_components"}}
    opened.document["steps"] = [["a", step_of("PCA", 1, found)]]
    with pytest.raises(ModelFileError, match="mean_ of a PCA does not fit its 1 features"):
        load_bytes(tmp_path, opened.closed())


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


def attributes(opened):
    return opened.document["model"]["attributes"]


CHANGES = [
    (lambda o: o.document.update(estimator="os.system"), "is not one of MaPML"),
    (lambda o: o.document.update(versions={"numpy": 2}), "versions"),
    (lambda o: o.document["model"].update(estimator=3), "another estimator than"),
    (lambda o: o.document["model"]["parameters"].update(more=1), "parameter .'more'. is unknown"),
    (lambda o: o.document["model"]["parameters"].update(n_neighbors=0), "n_neighbors"),
    (lambda o: o.document["model"]["parameters"].update(random_state=-1), "random_state"),
    (lambda o: o.document["model"]["parameters"].update(n_components=7), "n_components"),
    (lambda o: attributes(o).pop("margins_"), "a MaPML lacks margins_"),
    (lambda o: attributes(o).update(predict=1), "the name of one"),
    (lambda o: attributes(o).update(n_iter_=-1), "n_iter_ is not a count"),
    (lambda o: attributes(o).update(n_features_in_=5), "the others require"),
    (lambda o: attributes(o).update(reference_="os"), "reference_ is not one of"),
    (lambda o: attributes(o).update(columns_in_={"label": 1}), "columns"),
    (lambda o: attributes(o).update(feature_names_in_={"$values": ["a"], "dtype": "object"}),
     "feature names are not 6 strings"),
    (lambda o: attributes(o).update(history_=[]), "the history holds no round"),
    (lambda o: attributes(o).update(history_=[{"round": -1, "seconds": {}}]), "without its number"),
    (lambda o: attributes(o)["history_"][0].update(start="\x1b[2J"), "start of a round"),
    (lambda o: attributes(o)["history_"][0].update(loss=[1]), "not a number"),
    (lambda o: attributes(o)["history_"][0].update(loss={"a": 1}), "not a number"),
    (lambda o: attributes(o)["history_"][0].update(start_losses={"zz": 1}), "not by start"),
    (lambda o: attributes(o)["history_"][0].update(start_errors=3), "not valid"),
    (lambda o: attributes(o).update(
        {f"b{i}_": {"$values": ["x" * 7000] + [""] * 2300, "dtype": "str"} for i in range(20)}),
     "too much memory"),
    (lambda o: o.document["model"]["parameters"].update(latent_reg=1e308), "latent_reg must be"),
    (lambda o: o.document["model"]["parameters"].update(reference="x" * 10**6), "xx…|…"),
    (lambda o: attributes(o).update(classes_={"$values": ["b", "a", "c"], "dtype": "str"}),
     "ascending order"),
    (lambda o: attributes(o).update(
        classes_={"$values": ["a", "b", "c" * 2**23], "dtype": "str"}), "too much memory"),
    (lambda o: o.document["model"]["voting"].update(scale=0.0), "scale and temperature"),
    (lambda o: o.document["model"]["voting"].update(temperature=10**400), "not valid"),
    (lambda o: o.arrays.pop("margins"), "the array 'margins' is missing"),
    (lambda o: o.arrays.update(more=np.zeros(3)), "'more' is not part of this model"),
    (lambda o: o.arrays.update(margins=np.zeros(4)), "the others require"),
    (lambda o: o.arrays.update(margins=np.full(3, np.nan)), "'margins_' holds .* not finite"),
    (lambda o: o.arrays.update(margins=np.full(3, 1e308)), "margins_ holds 1e.308"),
    (lambda o: attributes(o)["history_"][0].update(seconds={"a": float("inf")}), "seconds"),
    (lambda o: o.arrays.update(margins=np.zeros(3, np.float32)), "is float32, not float64"),
    (lambda o: o.arrays.update(codes=o.arrays["codes"] + 1), "code outside the classes"),
    (lambda o: o.arrays["latent_labels"].__setitem__(0, 2), "not in ascending order"),
    (lambda o: o.arrays["latent_counts"].__setitem__(0, -1), "number below 0"),
    (lambda o: o.arrays["latent_examples"].__setitem__(0, 1e308), "distances in float64"),
    (lambda o: o.arrays["components"].__imul__(1e300), "overflow in float64"),
    (lambda o: o.arrays.update(references=o.arrays["references"][:-1],
                               codes=o.arrays["codes"][:-1]),
     "latent examples are not the .* references"),
    (lambda o: o.arrays.update(components=np.ones((7, 6)), references=np.ones((15, 7))), "rank 7"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_contents_that_do_not_fit_each_other_are_refused(tmp_path, contents, change, message):
    opened = Opened.of(contents["MaPML"])
    change(opened)
    with pytest.raises(ModelFileError, match=f"changed: .*({message})"):
        load_bytes(tmp_path, opened.closed())


@pytest.mark.parametrize("codes", [[0] * 15, [2] * 15, [0] * 7 + [2] * 8, [1] * 14 + [2]])
@pytest.mark.parametrize("votes_too", [False, True])
def test_a_model_may_lack_latent_examples_of_a_class(tmp_path, contents, codes, votes_too):
    opened = Opened.of(contents["MaPML"])
    opened.arrays["latent_labels"][:] = codes
    if votes_too:
        opened.arrays["codes"][:] = codes
    content = opened.closed()
    for method, *rows in (
        ("predict_proba", X), ("label_scores", X, Y), ("partial_fit", X, Y),
        ("add_classes", X + 9, Y + 5), ("remove_classes", [1]), ("fit", X, Y),
    ):  # fmt: skip
        loaded = load_bytes(tmp_path, content).set_params(warm_start=True)
        with suppress(ValueError):
            getattr(loaded, method)(*rows)
        assert np.isfinite(loaded.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(scale=1e-60), "scale 1e-60"),
        (lambda v: v.update(scale=3e38), "overflow in float32"),
    ],
)
def test_numbers_that_float32_cannot_hold_are_refused(tmp_path, contents, change, message):
    opened = Opened.of(contents["Euclidean"])
    change(opened.document["model"]["voting"])
    with pytest.raises(ModelFileError, match=message):
        load_bytes(tmp_path, opened.closed())


def step(document, *path):
    found = document["steps"][path[0]][1]
    for number in path[1:]:
        found = found["parts"][number][1]
    return found


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("numbers", lambda d: d.update(name="pca"), "name of the last step"),
        ("numbers", lambda d: d["parameters"].update(memory="cache"), "no parameter 'memory'"),
        ("numbers", lambda d: d["steps"][1].__setitem__(0, "pca"), "no name of its own"),
        ("numbers", lambda d: d["steps"][1].__setitem__(1, "drop"), "only columns can be dropped"),
        ("numbers", lambda d: step(d, 1).update(step="Popen"), "'standardscaler' is not one of"),
        ("numbers", lambda d: step(d, 1).update(n_features=5), "takes 5 features, but 8 come"),
        ("numbers", lambda d: d["steps"].pop(), "give 8 features, but the model takes 3"),
        ("numbers", lambda d: step(d, 1)["found"].update(_x=1), "'_x' is not found"),
        ("numbers", lambda d: step(d, 2)["found"].update(mean_=float("nan")), "not valid"),
        ("numbers", lambda d: step(d, 1)["parameters"].update(with_mean="yes"), "with_mean"),
        ("numbers", lambda d: step(d, 1).update(output="os"), "of no known kind"),
        ("numbers", lambda d: step(d, 1).update(feature_names=["a"]), "not have 8 feature names"),
        ("numbers", lambda d: step(d, 0)["found"].update(fitted_to="M8[s]"), "no statistics"),
        ("numbers", lambda d: step(d, 0)["found"].update(indicated=[-1]), "indicates other"),
        ("frame", lambda d: step(d, 0)["parts"][0].__setitem__(2, [99]), "IndexError"),
        ("frame", lambda d: step(d, 0)["parts"][0].__setitem__(2, {"$slice": [0, 9, 0]}), "zero"),
        ("frame", lambda d: step(d, 0)["parts"][0].__setitem__(2, []), "but 0 come to it"),
        ("frame", lambda d: step(d, 0)["remainder"]["found"].update(infrequent=[[0, 1, 2, 3]]),
         "is infrequent"),
        ("frame", lambda d: step(d, 0)["remainder"]["found"].update(categories=[]), "categories"),
        ("frame", lambda d: step(d, 0)["parameters"].update(transformer_weights={"words": "a"}),
         "weights of columns"),
        ("frame", lambda d: step(d, 0)["parameters"].update(
            verbose_feature_names_out="{feature_name:>99999999}"), "no parameter 'verbose_fe"),
    ],
)  # fmt: skip
def test_steps_that_do_not_fit_each_other_are_refused(tmp_path, contents, name, change, message):
    opened = Opened.of(contents[name])
    change(opened.document)
    with pytest.raises(ModelFileError, match=f"changed: .*({message})"):
        load_bytes(tmp_path, opened.closed())


def test_categories_out_of_order_are_refused(tmp_path):
    columns = ColumnTransformer([("a", OneHotEncoder(), [6])], remainder=Normalizer())
    save(make_pipeline(columns, model()).fit(*NUMBERS), tmp_path / "model")
    opened = Opened.of((tmp_path / "model").read_bytes())
    (name,) = (name for name in opened.arrays if "categories" in name)
    opened.arrays[name] = opened.arrays[name][::-1].copy()
    with pytest.raises(ModelFileError, match="not in ascending order"):
        load_bytes(tmp_path, opened.closed())


def test_a_text_of_json_that_is_no_document_is_refused(tmp_path, contents):
    opened = Opened.of(contents["Euclidean"])
    for text in ("null", "[]", "{}", "nonsense", "[" * 100_000, json.dumps([0] * 600_000)):
        with pytest.raises(ModelFileError, match="changed: "):
            load_bytes(tmp_path, opened.closed(text))


STEP_CHANGES = [
    (lambda step: step.update(feature_names="abcd"), "feature names"),
    (lambda step: encoder(step)["parameters"].update(dtype="V1000000000"), "no parameter 'dtype'"),
    (lambda step: encoder(step)["parameters"].update(dtype=5), "no parameter 'dtype'"),
    (lambda step: encoder(step).update(feature_names="e"), "feature names"),
]


def encoder(step):
    """The first encoder within a stored step."""
    held = [part[1] for part in step.get("parts", [])] + [part[1] for part in step.get("steps", [])]
    if step["step"] == "OneHotEncoder":
        return step
    found = [encoder(inner) for inner in held if isinstance(inner, dict)]
    return next((one for one in found if one), None)


@pytest.mark.parametrize(("change", "message"), STEP_CHANGES)
def test_steps_that_could_not_transform_are_refused(tmp_path, contents, change, message):
    opened = Opened.of(contents["frame"])
    change(opened.document["steps"][0][1])
    with pytest.raises(ModelFileError, match=message):
        load_bytes(tmp_path, opened.closed())
