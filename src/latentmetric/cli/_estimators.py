"""Estimators and the steps before them, from the options of a command."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import typer
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder
from typer import Option

from latentmetric.cli._reading import as_numbers
from latentmetric.io import Table
from latentmetric.registry import ESTIMATORS, estimator_class
from latentmetric.validation.parameters import validated_copy

WORDS = {"true": True, "false": False, "none": None}

MIN_ROWS, MAX_DISTINCT = 20, 0.5
"""From so many rows on, a column of categories may have different values in this share of them."""


@dataclass
class Parameters:
    """Options for the parameters of an estimator."""

    n_latents: Annotated[
        str | None,
        Option(metavar="NUMBER", help="Latent examples of a class: 9, or 0.1 of its rows."),
    ] = None
    set_: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="NAME=VALUE",
            help="Another parameter, as max_iter=9; a wrong name lists all.",
        ),
    ] = None
    random_state: Annotated[
        int, Option(metavar="SEED", help="The same seed gives the same model.")
    ] = 0

    def estimator(self, name: str, **defaults: Any) -> Any:
        """An estimator with these parameters; a wrong one is a usage error."""
        names = {known.lower(): known for known in ESTIMATORS}
        if name.lower() not in names:
            message = f"{name!r} is not one of {', '.join(names)}"
            raise typer.BadParameter(message, param_hint="--estimator")
        made = estimator_class(names[name.lower()])(random_state=self.random_state, **defaults)
        given = {} if self.n_latents is None else {"n_latents": _value(self.n_latents)}
        for setting in self.set_ or ():
            parameter, sign, text = setting.partition("=")
            if not sign:
                raise typer.BadParameter(f"{setting!r} is not NAME=VALUE", param_hint="--set")
            given[parameter.strip().replace("-", "_")] = _value(text.strip())
        try:
            validated_copy(made.set_params(**given))
        except (OverflowError, TypeError, ValueError) as error:
            raise typer.BadParameter(str(error)) from error
        return made


def _value(text: str) -> Any:
    """A number, a word such as true or none, a dict, or else the text itself."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


@dataclass
class Steps:
    """Options for the steps before an estimator."""

    impute: Annotated[
        Literal["median", "mean", "most_frequent"] | None,
        Option(metavar="HOW", help="Fill empty cells by median, mean or most_frequent."),
    ] = None
    one_hot: Annotated[
        list[str] | None, Option(metavar="COLUMNS", help="Columns of categories: a,b; repeatable.")
    ] = None
    normalize: Annotated[bool, Option("--normalize", help="Scale each row to length 1.")] = False

    def make(self, table: Table) -> Pipeline | None:
        """The steps, not fitted, for the columns of a table; None without any."""
        for index in table.words:  # as categories, words of a row's own would tell nothing
            n_rows, n_distinct = len(table.rows), len(set(map(str, table.rows[:, index])))
            if n_rows >= MIN_ROWS and n_distinct > MAX_DISTINCT * n_rows:
                name = table.feature_names[index] if table.feature_names else index + 1
                raise ValueError(
                    f"column {name!r} has {n_distinct:,} different values in {n_rows:,} rows, so "
                    "they name rows and are no categories; leave it out with --ignore, or keep it "
                    "beside the answers with --id"
                )
        steps: list[tuple[str, Any]] = []
        imputer = None if self.impute is None else SimpleImputer(strategy=self.impute)
        if table.words:
            numbers = [index for index in range(table.rows.shape[1]) if index not in table.words]
            encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            parts = [("numbers", imputer or "passthrough", numbers)] if numbers else []
            parts.append(("one_hot", encoder, table.words))
            steps.append(("columns", ColumnTransformer(parts)))
        elif imputer is not None:
            steps.append(("impute", imputer))
        if self.normalize:
            steps.append(("normalize", Normalizer()))
        return Pipeline(steps) if steps else None


def fit_steps(steps: Pipeline | None, table: Table) -> Any:
    """Fit steps to the rows of a table; the rows after them."""
    if steps is None:
        return table.rows
    prepared = steps.fit_transform(np.asarray(table.rows))
    if table.feature_names is not None:
        # The steps were fitted to an array; later, frames with these names are welcome, too.
        names, first = np.array(table.feature_names, dtype=object), steps[0]
        first.feature_names_in_ = names
        for name, part, columns in getattr(first, "transformers", ()):
            if part != "passthrough":
                first.named_transformers_[name].feature_names_in_ = names[columns]
    return as_numbers(prepared)


def joined(steps: Pipeline | None, estimator: Any) -> Any:
    """The whole model: the estimator, after the steps if there are any."""
    if steps is None:
        return estimator
    return Pipeline([*steps.steps, (type(estimator).__name__.lower(), estimator)])
