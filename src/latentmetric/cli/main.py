"""The ``latentmetric`` command. A command's module is imported when it is run: help is quick.

Exit codes: 0 done, 1 bad input, 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

from latentmetric import __version__
from latentmetric.characters import set_stdio_errors
from latentmetric.extras import pip_install

try:
    import typer
    from typer.core import TyperGroup
except ImportError as error:
    raise SystemExit(f"the command line needs {error.name}: {pip_install('cli')}") from error

COMMANDS = {
    "fit": ("fit", "Learn a model from features and labels, and save it."),
    "predict": ("answers", "Predict labels, or probabilities, for the rows of a file."),
    "evaluate": ("evaluate", "Measure the error of a model on labelled rows."),
    "neighbors": ("answers", "Find the nearest references of the rows of a file."),
    "doubts": ("answers", "List the rows whose labels are most doubtful, the worst first."),
    "latents": ("answers", "Write the latent examples of a model."),
    "compare": (
        "compare",
        "Compare methods on your data by cross-validation, and say which to use.",
    ),
    "report": ("models", "Write an HTML report: data, errors, map, latent examples, confusions."),
    "export": ("models", "Convert a model to ONNX, a faiss index or plain scikit-learn."),
    "info": ("models", "Show what a model file holds: estimator, data, parameters, rounds."),
    "demo": ("models", "Show what this is for, on digits, in less than a minute."),
}
"""The module of each command, and its line in the list of commands."""


class Commands(TyperGroup):
    """The commands: a module is imported when its command is run, so that help is quick."""

    def resolve_command(self, context: Any, arguments: list[str]) -> Any:
        """Import the command that is named."""
        name = arguments[0] if arguments else ""
        if name in COMMANDS:
            from latentmetric.cli._options import expanded

            function = getattr(import_module(f"latentmetric.cli.{COMMANDS[name][0]}"), name)
            # One line a paragraph, so that help wraps to the width of the terminal.
            paragraphs = [" ".join(part.split()) for part in (function.__doc__ or "").split("\n\n")]
            alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
            alone.command(name, help="\n\n".join(paragraphs))(expanded(function))
            self.commands[name] = typer.main.get_command(alone)
        return super().resolve_command(context, arguments)

    def invoke(self, context: Any) -> Any:
        """Run a command; bad input ends in one line."""
        from latentmetric.cli._messages import one_line_errors

        with one_line_errors():
            return super().invoke(context)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, (_, _line) in COMMANDS.items():
    app.command(_name, help=_line)(lambda: None)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version."),
    ] = False,
) -> None:
    """Learn a distance and a few clean examples from labelled data."""


def run() -> None:
    """Entry point; it is no error if the reader of a pipe ends first, as ``head`` does."""
    set_stdio_errors()
    try:
        app()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            raise SystemExit(0) from None
        raise
