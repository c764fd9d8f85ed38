"""An interrupted fit resumes to the same model, bit for bit, or says why it cannot."""

import copy
import errno

import numpy as np
import pytest
from helpers import interrupt_round, make_blobs

from latentmetric import MaPML, save
from latentmetric.estimators import driver
from latentmetric.io import open_rows
from latentmetric.persistence import checkpoints
from latentmetric.persistence.checkpoints import FILE_NAME, CheckpointWarning
from latentmetric.persistence.model_file import ModelFileError, read_model_file

X, y = make_blobs(120)

PARAMETERS = {"n_latents": 8, "n_steps": 200, "max_iter": 4, "random_state": 3}


def fit(X, y, folder=None, resume=True, **parameters):
    resume = resume and folder is not None
    return MaPML(**PARAMETERS | parameters).fit(X, y, checkpoint=folder, resume=resume)


def interrupted_fit(monkeypatch, X, y, folder, number, **parameters):
    with monkeypatch.context() as patched:
        interrupt_round(patched, number)
        with pytest.raises(KeyboardInterrupt):
            fit(X, y, folder, **parameters)


def assert_same(model, other):
    for name in ("components_", "latent_examples_", "margins_", "latent_labels_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    for name in ("log_scales", "log_weights"):
        np.testing.assert_array_equal(getattr(model.model_, name), getattr(other.model_, name))
    assert model.best_iter_ == other.best_iter_
    timeless = [
        [{k: v for k, v in record.items() if k != "seconds"} for record in one.history_]
        for one in (model, other)
    ]
    assert timeless[0] == timeless[1]


@pytest.mark.parametrize(
    ("number", "few_rows", "dtype", "parameters"),
    [
        (1, False, np.float32, {}),
        (4, False, np.float64, {"early_stopping": True}),
        (2, True, np.float64, {"start": "auto"}),
        (5, True, np.float32, {"refine": 2, "keep": "best"}),
    ],
)
def test_a_resumed_fit_equals_one_never_interrupted(
    tmp_path, monkeypatch, number, few_rows, dtype, parameters
):
    X, y = make_blobs(30, n_features=40) if few_rows else make_blobs(120)
    X = X.astype(dtype)
    interrupted_fit(monkeypatch, X, y, tmp_path, number, **parameters)
    assert_same(fit(X, y, tmp_path, **parameters), fit(X, y, **parameters))


def test_a_refinement_in_batches_is_resumed(tmp_path, monkeypatch, short_passes):
    monkeypatch.setattr("latentmetric.estimators.setup.CHOOSING_ROWS", 0)
    monkeypatch.setattr("latentmetric.estimators.setup.ROWS_PER_FEATURE", 10)
    given = {"n_latents": "auto"}  # in two sets
    interrupted_fit(monkeypatch, X, y, tmp_path, 6, **given)
    resumed = fit(X, y, tmp_path, **given)
    assert resumed.n_sets_ == 2
    assert_same(resumed, fit(X, y, **given))


def test_a_fit_on_a_file_is_resumed_and_recognises_the_file(tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", X)
    rows, folder = open_rows(tmp_path / "rows.npy"), tmp_path / "checkpoints"
    interrupted_fit(monkeypatch, rows, y, folder, 2)
    assert_same(fit(rows, y, folder), fit(rows, y))
    interrupted_fit(monkeypatch, rows, y, tmp_path / "others", 2)
    np.save(tmp_path / "rows.npy", X + np.eye(*X.shape) * 1e-6)
    with pytest.raises(ValueError, match="other data: fingerprint is"):
        fit(open_rows(tmp_path / "rows.npy"), y, tmp_path / "others")


def test_a_fit_without_a_seed_resumes_with_the_one_it_drew(tmp_path, monkeypatch):
    state = np.random.RandomState(5)
    whole = fit(X, y, early_stopping=True, random_state=np.random.RandomState(5))
    interrupted_fit(monkeypatch, X, y, tmp_path, 2, early_stopping=True, random_state=state)
    assert_same(fit(X, y, tmp_path, early_stopping=True, random_state=None), whole)


def test_a_finished_fit_is_not_done_again_and_its_folder_can_be_used_again(tmp_path, monkeypatch):
    (tmp_path / f".{FILE_NAME}.0123456789abcdef.tmp").write_bytes(b"half")
    whole = fit(X, y, tmp_path, bandwidth="latent")
    assert whole.model_.log_scales.any()
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME], "remains are removed"
    with monkeypatch.context() as patched:
        patched.setattr(driver, "next_step", None)
        assert_same(fit(X, y, tmp_path, bandwidth="latent"), whole)
    assert_same(fit(X[:90], y[:90], tmp_path, resume=False), fit(X[:90], y[:90]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_steps": 300}, "n_steps is 300 now and was 200"),
        (
            {"max_iter": 5, "init": "spaced"},
            r'init is "spaced" now and was "auto"; max_iter is 5 now',
        ),
        ({"random_state": None}, "random_state is null now and was 3"),
    ],
)
def test_other_parameters_are_refused(tmp_path, monkeypatch, change, message):
    interrupted_fit(monkeypatch, X, y, tmp_path, 2)
    being_written = tmp_path / f".{FILE_NAME}.0123456789abcdef.tmp"
    being_written.write_bytes(b"half")
    with pytest.raises(ValueError, match=message):
        fit(X, y, tmp_path, **change)
    assert being_written.exists(), "a fit that is refused touches nothing in the folder"


def test_other_data_is_refused(tmp_path, monkeypatch):
    interrupted_fit(monkeypatch, X, y, tmp_path, 2)
    touched, mirrored = X.copy(), X.copy()
    touched[17, 2] += 1e-6
    mirrored[:, 0] = 2 * X[:, 0].mean() - X[:, 0]  # every row is as far from the mean as before
    for other, labels, message in (
        (touched, y, "other data: fingerprint is"),
        (mirrored, y, "other data: fingerprint is"),
        (X, np.array(["a", "b", "c"])[y], "other data: fingerprint is"),
        (X[:90], y[:90], "number of training rows is 90 now and was 120"),
        (X[:, :5], y, "number of features is 5 now and was 6"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(other, labels, tmp_path)
    assert_same(fit(X, y, tmp_path, verbose=1, n_jobs=2), fit(X, y))


def test_one_latent_is_not_a_share_of_one_and_counts_have_no_order(tmp_path, monkeypatch):
    interrupted_fit(monkeypatch, X, y, tmp_path / "one", 2, n_latents=1)
    with pytest.raises(ValueError, match=r"n_latents is 1\.0 now and was 1"):
        fit(X, y, tmp_path / "one", n_latents=1.0)
    counts = {0: 5, 1: 6, 2: 7}
    interrupted_fit(monkeypatch, X, y, tmp_path / "counts", 2, n_latents=counts)
    backwards = dict(reversed(counts.items()))
    assert_same(fit(X, y, tmp_path / "counts", n_latents=backwards), fit(X, y, n_latents=counts))


def test_a_warm_start_is_resumed_from_its_own_beginning_only(tmp_path, monkeypatch):
    one = MaPML(**PARAMETERS | {"warm_start": True}).fit(X, y)
    other = MaPML(**PARAMETERS | {"warm_start": True}).fit(X[:60], y[:60])
    whole = copy.deepcopy(one).fit(X, y)
    with monkeypatch.context() as patched:
        interrupt_round(patched, 2)
        with pytest.raises(KeyboardInterrupt):
            one.fit(X, y, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="warm start from is "):
        other.fit(X, y, checkpoint=tmp_path, resume=True)
    assert_same(one.fit(X, y, checkpoint=tmp_path, resume=True), whole)


def test_resume_needs_a_folder():
    with pytest.raises(ValueError, match="resume=True needs checkpoint"):
        MaPML(**PARAMETERS).fit(X, y, resume=True)


def test_a_damaged_checkpoint_and_one_of_another_version_are_refused(tmp_path, monkeypatch):
    interrupted_fit(monkeypatch, X, y, tmp_path, 5)
    path = tmp_path / FILE_NAME
    written = path.read_bytes()
    for at in range(100, len(written), len(written) // 5):
        path.write_bytes(written[:at] + bytes([written[at] ^ 1]) + written[at + 1 :])
        with pytest.raises(ModelFileError, match=FILE_NAME):
            fit(X, y, tmp_path)
    path.write_bytes(written)
    monkeypatch.setattr("latentmetric.__version__", "99")
    with pytest.raises(ValueError, match='latentmetric is "99" now and was "'):
        fit(X, y, tmp_path)


def test_other_files_are_refused_as_checkpoints(tmp_path):
    save(fit(X, y), tmp_path / FILE_NAME)
    with pytest.raises(ModelFileError, match="is not a checkpoint"):
        fit(X, y, tmp_path)
    (tmp_path / FILE_NAME).write_bytes(b"half a file")
    with pytest.raises(ModelFileError):
        fit(X, y, tmp_path)
    with pytest.raises(NotADirectoryError, match="must be a folder"):
        fit(X, y, tmp_path / FILE_NAME)


def test_a_full_disk_does_not_end_the_fit_and_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    write, calls = checkpoints.write_model_file, []

    def full(path, *contents):
        calls.append(path)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, *contents)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "write_model_file", full)
        with pytest.warns(CheckpointWarning, match="continues without checkpoints") as warned:
            assert_same(fit(X, y, tmp_path), fit(X, y))
    assert len(warned) == 1
    assert len(calls) == 6
    document, _ = read_model_file(tmp_path / FILE_NAME)
    assert document["progress"]["history"][-1]["round"] == 1
    assert_same(fit(X, y, tmp_path), fit(X, y))
