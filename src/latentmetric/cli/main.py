"""The ``latentmetric`` command. A command's module is imported when it is run: help is quick.

Exit codes: 0 done, 1 bad input, 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

COMMANDS = {
    "fit": ("fit", "Learn a model from features and labels, and save it."),
    "predict": ("answers", "Predict labels, or probabilities, for the rows of a file."),
    "evaluate": ("evaluate", "Measure the error of a model on labelled rows."),
    "neighbors": ("answers", "Find the nearest references of the rows of a file."),
    "doubts": ("answers", "List the rows whose labels are most doubtful, the worst first."),
    "latents": ("answers", "Write the latent examples of a model."),
    "compare": ("compare", "Compare methods on your data by cross-validation, and say which to use."),
    "report": ("report", "Write an HTML report: data, errors, map, latent examples, confusions."),
    "export": ("models", "Convert a model to ONNX, a faiss index or plain scikit-learn."),
    "info": ("models", "Show what a model file holds: estimator, data, parameters, rounds."),
    "demo": ("report", "Show what this is for, on digits, in less than a minute."),
}
"""The module of each command, and its line in the list of commands."""


def run() -> None:
    """Entry point; it is no error if the reader of a pipe ends first, as ``head`` does."""
    try:
        import typer  # noqa: F401
    except ImportError as error:
        message = "the command line needs typer and rich: pip install 'latentmetric[cli]'"
        raise SystemExit(message) from error
    from latentmetric.characters import set_stdio_errors
    from latentmetric.cli._messages import discard

    set_stdio_errors()
    code: Any = 0
    try:
        application()()
    except SystemExit as ended:
        code = 0 if isinstance(ended.__context__, BrokenPipeError) else ended.code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    raise SystemExit(code)


def application() -> Any:
    """The command with its subcommands, none of them imported yet."""
    import typer
    from typer.core import TyperGroup

    from latentmetric.cli._messages import one_line_errors

    class Commands(TyperGroup):
        def resolve_command(self, context: Any, arguments: list[str]) -> Any:
            if arguments and arguments[0] in COMMANDS:
                self.commands[arguments[0]] = _imported(arguments[0])
            return super().resolve_command(context, arguments)

        def invoke(self, context: Any) -> Any:
            with one_line_errors():
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

    def main(version: bool = version) -> None:
        """Learn a distance and a few clean examples from labelled data."""

    app.callback()(main)
    for name, (_, line) in COMMANDS.items():
        app.command(name, help=line)(lambda: None)
    return app


def _imported(name: str) -> Any:
    """A command, imported; the paragraphs of its help wrap to the width of the terminal."""
    import typer

    function = getattr(import_module(f"latentmetric.cli.{COMMANDS[name][0]}"), name)
    paragraphs = [" ".join(part.split()) for part in (function.__doc__ or "").split("\n\n")]
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name, help="\n\n".join(paragraphs))(function)
    return typer.main.get_command(app)


def _version(requested: bool) -> None:
    if requested:
        import typer

        from latentmetric import __version__

        typer.echo(__version__)
        raise typer.Exit
