"""A lazy property is computed once, on frozen instances too, and holds no lock over a fork."""

import pickle
from dataclasses import dataclass
from threading import Event, Thread

import numpy as np
import pytest
from forking import forked, needs_forks

from latentmetric import Euclidean
from latentmetric.core import model as models
from latentmetric.core.parallel import lazy_property


@dataclass(frozen=True)
class Square:
    side: float

    @lazy_property
    def area(self) -> list[float]:
        """The area, in a list of its own."""
        return [self.side**2]


def test_it_is_computed_once_and_pickled_with_its_instance():
    square = Square(3.0)
    assert square.area == [9.0]
    assert square.area is square.area
    assert vars(pickle.loads(pickle.dumps(square))) == {"side": 3.0, "area": [9.0]}
    assert Square.area.__doc__ == "The area, in a list of its own."
    assert square == Square(3.0)


@pytest.mark.slow
@needs_forks
def test_a_child_forked_while_a_thread_computes_predicts(monkeypatch):
    X = np.arange(20.0).reshape(-1, 1)
    model, other = (Euclidean().fit(X, np.arange(20) % 2) for _ in range(2))
    inside, go_on, largest_norm = Event(), Event(), models._largest_norm

    def slow(*arguments):
        inside.set()
        go_on.wait(30)
        return largest_norm(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(models, "_largest_norm", slow)
        thread = Thread(target=other.predict, args=(X,))
        thread.start()
        inside.wait(10)
    try:
        assert forked(lambda: len(model.predict(X)) == 20)
    finally:
        go_on.set()
        thread.join()
