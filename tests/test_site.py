import runpy
from pathlib import Path

import pytest

CHECK = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "check_site.py"))
PAGE = '<h1 id="top">Title</h1>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "other.html").write_text(PAGE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "body",
    [
        '<a href="docs/other.html#top">a place</a>',
        '<a href="#here" id="here">this page</a>',
        '<a href="https://example.org">a link to click</a>',
        '<a href="mailto:somebody@example.org">mail</a>',
        '<link rel="canonical" href="https://example.org/page.html">',
        '<img src="data:image/png;base64,AAAA">',
        '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
    ],
)
def test_good_pages_pass(body, site, capsys):
    (site / "index.html").write_text(body, encoding="utf-8")
    assert CHECK["main"](site) == 0
    assert capsys.readouterr().out == "2 pages, 0 problems\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.html", '<a href="gone.html">x</a>', "a.html: gone.html leads nowhere"),
        ("a.html", '<a href="docs/other.html#gone">x</a>', "docs/other.html#gone leads nowhere"),
        ("a.html", '<a href="#gone">x</a>', "a.html: #gone leads nowhere"),
        ("a.html", '<img src="gone.png">', "a.html: gone.png leads nowhere"),
        ("a.html", '<script src="https://example.org/a.js">', "loads https://example.org/a.js"),
        ("a.html", '<link rel="preconnect" href="//example.org">', "loads //example.org"),
        ("a.html", "<style>@import 'https://example.org/a.css'</style>", "loads https://example"),
        ("a.css", "b { src: url(https://example.org/a.woff2) }", "a.css: loads https://example"),
        ("a.js", 'fetch("https://example.org/stars")', "a.js: loads https://example.org/stars"),
        ("a.js", 'tag.src = "//example.org/a.js"', "a.js: loads //example.org/a.js"),
    ],
)
def test_what_is_wrong_is_named(name, text, said, site, capsys):
    (site / name).write_text(text, encoding="utf-8")
    assert CHECK["main"](site) == 1
    assert said in capsys.readouterr().out


def test_a_folder_without_pages_is_no_site(tmp_path):
    assert CHECK["main"](tmp_path) == 1
