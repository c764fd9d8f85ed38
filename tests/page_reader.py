"""Parses a page for tests: elements, attributes and text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "</script><!-- a'b\"c&amp;",
    "\x00\x07a\tb\nc\x7f",
    "\u202eright to left\u2028",
    "x" * 10_000,
    "x" * 9_999 + "<",
    "",
    "\ud800 alone",
    "</style></title>日本",
]
"""Labels that try to break out of their element."""

VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}


@dataclass
class Node:
    name: str
    attributes: dict
    children: list = field(default_factory=list)

    @property
    def text(self):
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def all(self, name=None, **attributes):
        """Every element below with this name and these attributes; class_ matches one class."""
        for child in self.children:
            if isinstance(child, str):
                continue
            if (name is None or child.name == name) and child._has(attributes):
                yield child
            yield from child.all(name, **attributes)

    def one(self, name=None, **attributes):
        (found,) = self.all(name, **attributes)
        return found

    def _has(self, wanted):
        for key, value in wanted.items():
            found = self.attributes.get(key.rstrip("_").replace("_", "-"))
            if found is None or value not in (found.split() if key == "class_" else [found]):
                return False
        return True


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.root = Node("", {})
        self._open = [self.root]

    def handle_starttag(self, name, attributes):
        node = Node(name, dict(attributes))
        self._open[-1].children.append(node)
        if name not in VOID:
            self._open.append(node)

    def handle_endtag(self, name):
        assert self._open[-1].name == name, (name, self._open[-1].name)
        self._open.pop()

    def handle_data(self, text):
        self._open[-1].children.append(text)


@dataclass
class Page:
    path: Path
    source: str
    root: Node

    @classmethod
    def read(cls, path):
        source = path.read_text(encoding="utf-8")
        reader = _Reader()
        reader.feed(source)
        reader.close()
        assert reader._open == [reader.root], "an element was left open"
        return cls(path, source, reader.root)

    def section(self, name):
        return self.root.one("section", id=name)

    @property
    def map_data(self):
        return json.loads(self.root.one("script", id="map-data").text)
