"""Check that no page of the site, as ``make docs`` has built it, loads anything from another host.

``python tools/check_site.py site`` prints what is wrong and exits with 1 if there is anything.
Links that a reader may click are fine. Sphinx itself warns of links within the site that lead
nowhere, and ``make docs`` makes its warnings errors.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HOST = r"((?:https?:|wss?:)?//[^\"'`)\s>]+)"
NOT_LOADED = r"(?![^>]*\brel=[\"']?(?:canonical|license|author))"
ELEMENTS = re.compile(
    rf"<(?:audio|embed|iframe|img|link|object|script|source|video)\b{NOT_LOADED}"
    rf"[^>]*\b(?:src|href|data)\s*=\s*[\"']?{HOST}"
)
STYLES = re.compile(rf"(?:url\(|@import)\s*[\"']?\s*{HOST}")
SCRIPTS = re.compile(
    r"(?:(?:fetch|import|importScripts|open|sendBeacon)\(|\.(?:src|href)\s*=)\s*[\"'`]" + HOST
)
LOADING = {".html": (ELEMENTS, STYLES), ".css": (STYLES,), ".js": (SCRIPTS,)}
"""What a browser follows in each kind of file without being asked."""


def main(site: Path) -> int:
    """Print the problems and return the exit code."""
    pages = sorted(path for path in site.rglob("*") if path.suffix in LOADING)
    found = [
        f"{path.relative_to(site)}: loads {address}"
        for path in pages
        for pattern in LOADING[path.suffix]
        for address in pattern.findall(path.read_text(encoding="utf-8"))
    ]
    n_pages = sum(path.suffix == ".html" for path in pages)
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.stdout.write(f"{n_pages} pages, {len(found)} problems\n")
    return 1 if found or not n_pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
