"""The ``latentmetric`` command. A command's file is imported when it is run, so that help is quick.

Exit codes: 0 done, 1 the input was bad, 2 the command was called wrongly, 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

COMMANDS = {
    "fit": "Learn a model from features and labels, and save it.",
    "predict": "Labels, or probabilities, of the rows of a file.",
    "evaluate": "The error of a model on labelled rows, by class and by confused pair.",
    "neighbors": "The nearest references of the rows of a file.",
    "compare": "Cross-validated errors of Euclid, MaPML and its rivals on your data.",
    "report": "A page to look at: data, errors, map, latent examples, confusions.",
    "export": "A model as ONNX, faiss index or plain scikit-learn.",
    "info": "What a model file holds.",
    "demo": "Compare Euclid, MaPML and MaPML-O on digits, and draw the latent examples.",
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
    application()()


def application() -> Any:
    """The command with its subcommands, none of them imported yet."""
    import typer
    from typer.core import TyperGroup

    from latentmetric.cli._mistakes import in_one_line

    class Commands(TyperGroup):
        def resolve_command(self, context: Any, arguments: list[str]) -> Any:
            if arguments and arguments[0] in COMMANDS:
                self.commands[arguments[0]] = _command(arguments[0])
            return super().resolve_command(context, arguments)

        def invoke(self, context: Any) -> Any:
            with in_one_line():
                return super().invoke(context)

    app = typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    version = typer.Option(False, "--version", is_eager=True, callback=_version, help="Its number.")

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
    alone.command(name)(function)
    return typer.main.get_command(alone)


def _not_imported() -> None:
    """Stands in the list of commands."""


def _version(asked: bool) -> None:
    if asked:
        import typer

        from latentmetric import __version__

        typer.echo(__version__)
        raise typer.Exit
