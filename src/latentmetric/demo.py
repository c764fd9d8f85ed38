"""A first look, on the digits that come with scikit-learn: ``python -m latentmetric.demo``.

Compares Euclid, MaPML and MaPML-O, and draws the learned latent examples beside originals.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from latentmetric.characters import visible, write_what_encodings_lack_as_codes
from latentmetric.estimators.mapml import MaPML
from latentmetric.persistence.replacing import check_replaceable
from latentmetric.viz.gallery import plot_latent_examples


def main() -> None:
    """``python -m latentmetric.demo``."""
    write_what_encodings_lack_as_codes()
    parser = argparse.ArgumentParser(description="A first look, on digits.")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the picture")
    show(parser.parse_args().out)


def show(folder: Path) -> None:
    """Fit the models, print the table, write the picture."""
    try:
        import matplotlib  # noqa: F401
        from rich.console import Console
    except ImportError as error:
        message = "the demo needs rich and matplotlib: pip install 'latentmetric[demo]'"
        raise SystemExit(message) from error
    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "latent_examples.png"
    check_replaceable(picture)
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=0
    )
    console.print(f"digits: {len(X_train)} rows to fit, {len(X_test)} to test, {X.shape[1]} pixels")
    models = {
        "Euclid": KNeighborsClassifier(3, algorithm="brute"),
        "MaPML": with_progress(MaPML(random_state=0)),
        "MaPML-O": with_progress(MaPML(reference="original", random_state=0)),
    }
    rows = [
        measure(name, model, X_train, y_train, X_test, y_test) for name, model in models.items()
    ]
    console.print(as_table(rows))
    plot_latent_examples(models["MaPML"], X_train, y_train, (8, 8)).savefig(picture, dpi=150)
    written = f"latent examples (framed) beside five originals each: {visible(picture)}"
    console.print(written, soft_wrap=True, markup=False)


def with_progress(model: MaPML) -> MaPML:
    """Show a progress bar if scikit-learn has callbacks, otherwise a line for each round."""
    try:
        from sklearn.callback import ProgressBar
    except ImportError:
        return model.set_params(verbose=1)  # type: ignore[no-any-return]
    model.set_callbacks(ProgressBar())
    return model


def measure(
    name: str, model: Any, X_train: Any, y_train: Any, X_test: Any, y_test: Any
) -> list[str]:
    """One line of the table."""
    start = perf_counter()
    model.fit(X_train, y_train)
    fitted = perf_counter()
    error = 1 - model.score(X_test, y_test)
    queried = perf_counter()
    references = len(model.latent_examples_) if name == "MaPML" else len(X_train)
    return [
        name,
        f"{100 * error:.2f} %",
        str(references),
        f"{fitted - start:.2f} s",
        f"{1e6 * (queried - fitted) / len(X_test):.0f} µs",
    ]


def as_table(rows: list[list[str]]) -> Any:
    """The lines as a rich table."""
    from rich.table import Table

    table = Table("method", title="error on digits")
    for column in ("test error", "references", "fit", "a query"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


if __name__ == "__main__":
    main()
