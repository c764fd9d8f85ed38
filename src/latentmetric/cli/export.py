"""``latentmetric export``: a model for tools that do not know latentmetric."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from latentmetric.cli._errors import note
from latentmetric.cli._output import Overwrite, check_output, print_json, say, without_objects
from latentmetric.cli._preparing import joined
from latentmetric.cli._tables import Json, Model, load_model
from latentmetric.persistence.replacing import replacing
from latentmetric.validation.pipelines import Piped


class Target(StrEnum):
    """What a model can become."""

    onnx = "onnx"
    faiss = "faiss"
    sklearn = "sklearn"


def export(
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    to: Annotated[Target, typer.Option(help="Format to write.")] = Target.onnx,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Convert a model to ONNX, a faiss index or plain scikit-learn.

    onnx: a graph from features to label, probabilities and neighbours. faiss: an index, and
    beside it OUT.npz with the labels of its rows and with centre, scale and components: queries
    are (x - centre) / scale @ components.T, where x has passed the steps of a pipeline. sklearn: a
    pickled pipeline, to be opened with joblib; pickles can run code, so open only your own.
    """
    check_output(out, to.value, [model], overwrite)
    if to is Target.faiss:
        check_output(_beside(out), "faiss arrays", [model], overwrite)
    piped = load_model(model, features_follow=False)
    written = _WRITERS[to](piped, out)
    if json:
        print_json({"files": [str(path) for path in written]})
    else:
        for path in written:
            say(f"{path}: {path.stat().st_size:,} bytes")


def _write_onnx(piped: Piped, out: Path) -> list[Path]:
    from latentmetric.export import to_onnx

    to_onnx(joined(piped.steps, piped.estimator), out)
    return [out]


def _write_faiss(piped: Piped, out: Path) -> list[Path]:
    from latentmetric.export import to_faiss

    exported = to_faiss(piped.estimator)
    import faiss

    if piped.steps is not None:
        note("the index is of rows after the steps: queries pass pipeline[:-1].transform first")
    model, beside = piped.estimator.model_, _beside(out)
    labels = without_objects(exported.labels, str(beside))
    with replacing(out) as file:
        file.write(faiss.serialize_index(exported.index).data)
    with replacing(beside) as file:
        np.savez(
            file,
            labels=labels,
            centre=model.coordinates.centre,
            scale=model.coordinates.scale,
            components=np.eye(model.n_features, dtype=np.float32)
            if model.components is None
            else model.components,
        )
    return [out, beside]


def _beside(out: Path) -> Path:
    """Where the arrays go that an index of faiss cannot hold."""
    return out.with_name(out.name + ".npz")


def _write_sklearn(piped: Piped, out: Path) -> list[Path]:
    import pickle

    from latentmetric.export import to_sklearn

    pipeline = to_sklearn(joined(piped.steps, piped.estimator))
    with replacing(out) as file:
        pickle.dump(pipeline, file, protocol=5)
    return [out]


_WRITERS = {Target.onnx: _write_onnx, Target.faiss: _write_faiss, Target.sklearn: _write_sklearn}
