"""Check the site that ``make docs`` has built: links resolve, and no page asks another host.

``python tools/check_site.py site`` prints what is wrong and exits with 1 if there is anything.
Links to other hosts that a reader may click are fine; what a browser loads by itself is not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "video": "src",
}
"""The attribute of each element that a browser follows without being asked."""
NOT_LOADED = {"canonical", "license", "author"}
"""Relations of a ``link`` that a browser does not follow."""
IN_STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?//[^\"')\s]+)")
IN_SCRIPTS = re.compile(
    r"(?:fetch|import|importScripts|open|sendBeacon)\(\s*[\"'`]((?:https?:|wss?:)?//[^\"'`\s]+)"
    r"|\.(?:src|href)\s*=\s*[\"'`]((?:https?:)?//[^\"'`\s]+)"
)


class Page(HTMLParser):
    """What a page offers to links and asks for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the names and addresses of an element."""
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        address = given.get(LOADING.get(tag, ""))
        if address is not None and given.get("rel") not in NOT_LOADED:
            self.loaded.append(address)
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])


def problems(site: Path) -> Iterator[str]:
    """One line for each link that leads nowhere and each request to another host."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    pages = {path.resolve(): Page(text) for path, text in texts.items()}
    if not pages:
        yield f"{site} has no page"
    for path, page in pages.items():
        place = path.relative_to(site.resolve())
        yield from (f"{place}: loads {address}" for address in page.loaded if _is_foreign(address))
        own = [address for address in page.loaded if not _is_foreign(address)]
        for address in [*own, *page.links]:
            if not _resolves(path, address, pages):
                yield f"{place}: {address} leads nowhere"
    for pattern, found in (("*.css", IN_STYLES), ("*.html", IN_STYLES), ("*.js", IN_SCRIPTS)):
        for path in sorted(site.rglob(pattern)):
            for request in found.finditer(path.read_text(encoding="utf-8")):
                address = next(filter(None, request.groups()))
                yield f"{path.relative_to(site)}: loads {address}"


def _is_foreign(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def _resolves(page: Path, address: str, pages: dict[Path, Page]) -> bool:
    """Whether an address on a page leads to a file of the site, and to a place on it."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return False
    if not parts.fragment or target not in pages:
        return True
    return unquote(parts.fragment) in pages[target].names


def main(site: Path) -> int:
    """Print the problems and return the exit code."""
    found = list(problems(site))
    sys.stdout.writelines(f"{line}\n" for line in found)
    pages = len(list(site.rglob("*.html")))
    sys.stdout.write(f"{pages} pages, {len(found)} problems\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
