"""The ``latentmetric`` command. A command's file is imported when it is run, so that help is quick.

Exit codes: 0 done, 1 bad input, 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

COMMANDS = {
    "fit": "Learn a model from features and labels, and save it.",
    "predict": "Predict labels, or probabilities, for the rows of a file.",
    "evaluate": "Measure the error of a model on labelled rows, by class and by confused pair.",
    "neighbors": "Find the nearest references of the rows of a file.",
    "doubts": "List the rows whose labels are most doubtful, the worst first.",
    "latents": "Write the latent examples of a model, with how many rows each stands for.",
    "compare": "Compare methods on your data by cross-validation, and say which to use.",
    "report": "Write an HTML report: data, errors, map, latent examples, confusions.",
    "export": "Convert a model to ONNX, a faiss index or plain scikit-learn.",
    "info": "Show what a model file holds.",
    "demo": "Show what this is for, on digits, in less than a minute; write a report.",
}
"""Names with one line each; ``latentmetric.cli.NAME`` has a function NAME."""

ABOUT = "Learn a distance and a few clean examples from labelled data."


def run() -> None:
    """Entry point."""
    try:
        import typer  # noqa: F401
    except ImportError as error:
        message = "the command line needs typer and rich: pip install 'latentmetric[cli]'"
        raise SystemExit(message) from error
    from latentmetric.characters import write_what_encodings_lack_as_codes
    from latentmetric.cli._errors import run_into_pipes, show_traceback
    from latentmetric.cli._streams import take_streams

    take_streams()
    write_what_encodings_lack_as_codes()
    sys.excepthook = show_traceback
    run_into_pipes(application())


def application() -> Any:
    """The command with its subcommands, none of them imported yet."""
    import typer
    from typer.core import TyperGroup

    from latentmetric.cli._errors import one_line_errors, visible_usage_errors

    class Commands(TyperGroup):
        def resolve_command(self, context: Any, arguments: list[str]) -> Any:
            if arguments and arguments[0] in COMMANDS:
                self.commands[arguments[0]] = _command(arguments[0])
            return super().resolve_command(context, arguments)

        def make_context(self, *arguments: Any, **options: Any) -> Any:
            with visible_usage_errors():
                return super().make_context(*arguments, **options)

        def invoke(self, context: Any) -> Any:
            with visible_usage_errors(), one_line_errors():
                return super().invoke(context)

    app = typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    version = typer.Option(
        False, "--version", is_eager=True, callback=_version, help="Show the version and exit."
    )

    def every_command(version: bool = version) -> None:
        """Options that come before the name of a command."""

    app.callback(help=ABOUT)(every_command)
    for name, line in COMMANDS.items():
        app.command(name, help=line)(_not_imported)
    return app


def _command(name: str) -> Any:
    """A command, imported."""
    import typer

    function: Callable[..., None] = getattr(import_module(f"latentmetric.cli.{name}"), name)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, help=_reflowed(function))(function)
    return typer.main.get_command(alone)


def _reflowed(function: Callable[..., None]) -> str:
    """The help of a command, one line per paragraph, so that it wraps to the terminal's width."""
    from latentmetric.cli._docstrings import docstring_of

    paragraphs = docstring_of(function).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _not_imported() -> None:
    """Placeholder for a command in the list."""


def _version(requested: bool) -> None:
    if requested:
        import typer

        from latentmetric import __version__

        typer.echo(__version__)
        raise typer.Exit
