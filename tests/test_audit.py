import runpy
import subprocess
from pathlib import Path

import pytest

AUDIT = Path(__file__).parent.parent / "tools" / "audit_dependencies.py"

CLEAN = '{"dependencies": [{"name": "numpy", "version": "2.0", "vulns": []}], "fixes": []}'
FOUND = (
    '{"dependencies": [{"name": "old", "version": "1.0", "vulns": [{"id": "PYSEC-1", '
    '"fix_versions": ["1.1"]}]}, {"name": "own", "skip_reason": "not on an index"}]}'
)


@pytest.mark.parametrize(
    ("printed", "complained", "code", "said"),
    [
        (CLEAN, "", 0, "no dependency has a known vulnerability"),
        (FOUND, "Found 1 known vulnerability", 1, "old 1.0: PYSEC-1, mended in 1.1"),
        ("", "…\nConnectionError: no network", 0, "not audited: ConnectionError: no network"),
        ("{}", "", 0, "not audited: it printed nothing"),
    ],
)
def test_only_known_vulnerabilities_fail_the_audit(
    printed, complained, code, said, monkeypatch, capsys
):
    ended = subprocess.CompletedProcess([], 1, printed, complained)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    assert runpy.run_path(str(AUDIT))["main"]() == code
    assert said in capsys.readouterr().out
