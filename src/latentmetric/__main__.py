"""``python -m latentmetric`` is the ``latentmetric`` command."""

from latentmetric.cli.main import run

if __name__ == "__main__":
    run()
