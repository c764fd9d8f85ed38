"""Data for tests, and helpers to step through and interrupt fits."""

import numpy as np

from latentmetric.core.classes import OneClass
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.estimators import progress


def make_blobs(n_rows=240, n_classes=3, n_features=6, seed=0):
    generator = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    X = generator.standard_normal((n_rows, n_features)) * np.linspace(3, 1, n_features)
    angle = 2 * np.pi * y / n_classes
    X[:, -2] += 2.5 * np.cos(angle)
    X[:, -1] += 2.5 * np.sin(angle)
    return X, y


def make_unbalanced(n_rows=3000, seed=0):
    """Five classes of very different sizes, in float32."""
    X, _ = make_blobs(n_rows, 5, seed=seed)
    generator = np.random.default_rng(seed)
    y = generator.choice(5, n_rows, p=[0.6, 0.2, 0.1, 0.08, 0.02])
    X[:, -1] += 3 * y
    return X.astype(np.float32), np.array(["ant", "bee", "cat", "dog", "elk"])[y]


def one_class(rows, drawing_order=None, weights=None):
    """Rows of one class as Alg. 1 takes them, without a change of coordinates."""
    all_rows = np.arange(len(rows))
    inner = InnerRows(rows, Coordinates(np.zeros(rows.shape[1]), 1.0))
    order = all_rows if drawing_order is None else drawing_order
    return OneClass(inner, all_rows, order, weights=weights)


def states_of(steps, generator=None):
    """All states of an algorithm, one after the other."""
    generator = np.random.default_rng(0) if generator is None else generator
    state = steps.first(generator)
    while state is not None:
        yield state
        done = state.finished or state.record["round"] >= steps.limit
        state = None if done else steps.next(state, generator)


def interrupt_round(monkeypatch, number):
    """Raise KeyboardInterrupt in this round, before its checkpoint is written."""
    ends = progress.Listener.step_ends

    def interrupted(listener, history, attributes):
        if history[-1]["round"] == number:
            raise KeyboardInterrupt
        return ends(listener, history, attributes)

    monkeypatch.setattr(progress.Listener, "step_ends", interrupted)


def arrays_in(found):
    """All arrays in lists and objects, however deep."""
    if isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, list | tuple):
        for item in found:
            yield from arrays_in(item)
    elif hasattr(found, "__dict__"):
        yield from arrays_in(list(vars(found).values()))


def call(*arguments, code=0):
    """The result of a command that must end with this exit code."""
    from typer.testing import CliRunner

    from latentmetric.cli.main import app

    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done
