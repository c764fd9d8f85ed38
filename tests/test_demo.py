import sys

import pytest

from latentmetric import demo


def test_the_demo_prints_its_table_and_writes_its_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo", "--out", str(tmp_path / "new folder")])
    demo.main()
    printed = capsys.readouterr().out
    for word in ("Euclid", "MaPML", "MaPML-O", "test error", "references", "fit", "a query"):
        assert word in printed
    picture = tmp_path / "new folder" / "latent_examples.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def test_without_rich_the_demo_names_the_extra(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(SystemExit, match=r"latentmetric\[demo\]"):
        demo.main()
