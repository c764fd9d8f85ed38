"""The command as a whole: help, exit codes, messages for people, and never a traceback."""

import inspect
import sys
from importlib import import_module

import numpy as np
import pytest
from helpers import call
from typer.main import get_command

import latentmetric
from latentmetric.cli.main import COMMANDS, app


def test_the_help_of_fit_fits_on_one_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    shown = call("fit", "--help").stdout.rstrip("\n").splitlines()
    assert len(shown) <= 40
    assert max(map(len, shown)) <= 100
    for name in ("--out", "--estimator", "--n-latents", "--label", "--impute", "--one-hot"):
        assert sum(f"{name} " in line for line in shown) == 1, name
    first = ("--n-latents, ", "label_noise", "class_weight", "Ctrl-C", "--estimator ")
    places = ["".join(shown).index(word) for word in first]
    assert places == sorted(places), "what to change first comes first"


def test_the_help_of_every_command_begins_with_its_line_in_the_list(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    listed = call("--help").stdout
    for name, (module, line) in COMMANDS.items():
        assert line in listed
        function = getattr(import_module(f"latentmetric.cli.{module}"), name)
        assert line.rstrip(".") in inspect.getdoc(function).splitlines()[0], name
        assert call(name, "-h").stdout == call(name, "--help").stdout
        assert "--quiet" in call(name, "-h").stdout, name
    assert set(get_command(app).commands) == set(COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "model", "test.csv"),
        ("compare", "train.csv", "--methods", "euclid"),
        ("report", "model", "test.csv", "--quick"),
    ],
)
def test_quiet_is_an_option_of_every_command(folder, arguments):
    assert call(*arguments).stderr
    done = call(*arguments, "--quiet")
    assert done.stderr == ""
    assert done.stdout
    assert call("predict", "model", "none.csv", "-q", code=1).stderr.startswith("Error: none.csv")


def test_version():
    assert call("--version").stdout.strip() == latentmetric.__version__


def test_without_typer_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "latentmetric.cli.main")
    with pytest.raises(SystemExit, match=r"pip install .*\btyper\b"):
        import_module("latentmetric.cli.main")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fitt",), "Did you mean 'fit'"),
        (("fit", "train.csv"), "'--out'"),
        (("fit", "train.csv", "-o", "new", "--imput", "mean"), "--impute"),
        (("fit", "train.csv", "-o", "new", "--resume"), "--checkpoint"),
        (("predict", "model", "test.csv", "-o", "out.docx"), ".parquet"),
        (("compare", "absent.csv", "--random-state", "-1"), "'--random-state'"),
        (("compare", "train.csv", "--methods", "magic"), "'magic' is not among majority class"),
        (("report", "model", "test.csv", "--image-shape", "square"), "28x28"),
        (("report", "model", "-", "--train", "-"), "read only once"),
        (("doubts", "train.csv", "--model", "model", "--set", "refine=2"), "fitted already"),
    ],
)
def test_wrong_calls(folder, arguments, message):
    done = call(*arguments, code=2)
    assert done.stdout == ""
    assert message in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "trains.csv", "-o", "new"), "did you mean 'train.csv'?"),
        (("fit", "bad.csv", "-o", "new"), "bad.csv, line 3, column 'b'"),
        (("fit", "test.csv", "-o", "nowhere/new"), "there is no folder"),
        (("fit", "one.csv", "-o", "new"), "at least 2 classes"),
        (("fit", "model", "train.csv", "-o", "new"), "fit learns a new model and takes none"),
        (("predict", "test.csv", "model"), "the model is the first argument"),
        (("predict", "model", "model"), "features come second"),
        (("predict", "models", "test.csv"), "did you mean 'model'?"),
        (("predict", "model", "narrow.csv"), "the model was fitted with"),
        (("predict", "model", "wide.npy"), "has 9 features, but the model was fitted with 6"),
        (("neighbors", "model", "test.csv", "-k", "999"), "the model holds only"),
        (("doubts", "train.csv", "--model", "euclidean"), "no latent examples; fit mapml"),
        (("demo", "--out", "test.csv"), "test.csv"),
    ],
)
def test_bad_input_is_reported_in_one_line(folder, arguments, message):
    (folder / "bad.csv").write_text("a,b,label\n1,2,x\n1,two,y\n")
    (folder / "one.csv").write_text("a,b,label\n1,2,x\n1,3,x\n")
    (folder / "narrow.csv").write_text("f0,c\n1,2\n")
    np.save("wide.npy", np.zeros((3, 9)))
    done = call(*arguments, code=1)
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert message in last
    assert not (folder / "new").exists()


@pytest.mark.parametrize("error", [OverflowError("too large"), MemoryError("8 GB")])
def test_what_a_fit_raises_is_reported_as_bad_input(folder, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(latentmetric.MaPML, "fit", fail)
    assert str(error) in call("fit", "train.csv", "-o", "new", code=1).stderr.splitlines()[-1]
