"""The ``latentmetric`` command. Commands import what they need when run, so that help is quick."""

from __future__ import annotations


def run() -> None:
    """Entry point."""
    try:
        import typer
    except ImportError as error:
        message = "the command line needs typer and rich: pip install 'latentmetric[cli]'"
        raise SystemExit(message) from error
    from latentmetric.cli.demo import demo
    from latentmetric.cli.reproduce import reproduce

    app = typer.Typer(
        help="Learn a distance and a few clean examples from labelled data.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.command()(demo)
    app.command()(reproduce)
    app()
