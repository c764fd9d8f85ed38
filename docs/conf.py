"""Settings of the site, which ``make docs`` builds with Sphinx.

The source folder is the root of the repository, not ``docs``, so that links between the pages and
to README, CHANGELOG or the benchmarks are the same in a clone, on a forge and on the site. The nav
is at the end of ``index.md``. Nothing here may need a network, neither now nor in the reader's
browser; ``tools/check_site.py`` looks at what was built.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import latentmetric

# The theme's colours would otherwise make all libraries that the examples use log what they do.
warnings_only = logging.StreamHandler()
warnings_only.setLevel(logging.WARNING)
logging.basicConfig(handlers=[warnings_only])

project = "latentmetric"
author = "The latentmetric developers"
project_copyright = author
version = release = latentmetric.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "benchmarks/results/paper/results.md",
    "benchmarks/results/peers.md",
    "benchmarks/results/peers_2026.md",
]
exclude_patterns = ["docs/_templates", "site", ".*"]
# Absolute, because autosummary looks below the source folder and Sphinx beside this file.
templates_path = [str(Path(__file__).parent / "_templates")]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]

# Most blocks without a language are commands.
highlight_language = "text"
# Headings get the names that forges give them.
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "inherited-members": True}
# The docstrings say what a parameter may be, in words.
autodoc_typehints = "none"
autosummary_generate = True
napoleon_google_docstring = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "docs/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "furo"
html_title = "latentmetric"
# The front page is docs/index.html; index.html leads there.
html_extra_path = ["_root"]
html_copy_source = False
html_show_sphinx = False

LINK_TO_EXAMPLE = re.compile(r"\]\((?:\.\./)?examples/(\w+)\.(?:py|rst)\)")


def lead_to_the_gallery(app: Any, page: str, source: list[str]) -> None:
    """Let links to a script lead to its page in the gallery, where its pictures are."""
    folder = "gallery" if page.startswith("docs/") else "docs/gallery"

    def link(found: re.Match[str]) -> str:
        name = "index" if found[1] == "README" else found[1]
        return f"]({folder}/{name}.rst)"

    source[0] = LINK_TO_EXAMPLE.sub(link, source[0])


def skip_inner_members(
    app: Any, kind: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what estimators have from scikit-learn."""
    home = getattr(member, "__module__", None) or ""
    is_foreign = callable(member) and not home.startswith("latentmetric")
    return True if is_foreign else None


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("source-read", lead_to_the_gallery)
    app.connect("autodoc-skip-member", skip_inner_members)
