import runpy
from pathlib import Path

import pytest

CHECK = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "check_site.py"))


@pytest.mark.parametrize(
    "body",
    [
        '<a href="https://example.org">a link to click</a>',
        '<img src="data:image/png;base64,AAAA"><script src="own.js"></script>',
        '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
    ],
)
def test_good_pages_pass(body, tmp_path, capsys):
    (tmp_path / "index.html").write_text(body, encoding="utf-8")
    assert CHECK["main"](tmp_path) == 0
    assert capsys.readouterr().out == "1 pages, 0 problems\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.html", '<script async src="https://example.org/a.js">', "https://example.org/a.js"),
        ("a.html", "<style>@import 'https://example.org/a.css'</style>", "https://example"),
        ("a.css", "b { src: url(https://example.org/a.woff2) }", "https://example.org/a.woff2"),
        ("a.js", 'fetch("https://example.org/stars")', "https://example.org/stars"),
    ],
)
def test_what_is_loaded_from_another_host_is_named(name, text, said, tmp_path, capsys):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert CHECK["main"](tmp_path) == 1
    assert f"{name}: loads {said}" in capsys.readouterr().out


def test_a_folder_without_pages_is_no_site(tmp_path):
    assert CHECK["main"](tmp_path) == 1
