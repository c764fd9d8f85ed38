"""Look up the installed dependencies among known vulnerabilities, and list those that are found.

Ends with 1 if there are any. The audit needs pip-audit and a database on the network; without
either it says so and ends with 0, so that work goes on without a network.
"""

from __future__ import annotations

import json
import subprocess
import sys

COMMAND = ["-m", "pip_audit", "--local", "--skip-editable", "--format", "json"]
QUIET = ["--progress-spinner", "off", "--timeout", "15"]


def findings(report: str) -> list[str] | None:
    """A line for each vulnerability in the JSON of pip-audit; None if it is not complete."""
    try:
        dependencies = json.loads(report)["dependencies"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return None
    return [
        f"{dependency['name']} {dependency['version']}: {found['id']}, mended in "
        f"{', '.join(found['fix_versions']) or 'no version yet'}"
        for dependency in dependencies
        for found in dependency.get("vulns", [])
    ]


def main() -> int:
    """Run the audit and print what it found."""
    try:
        # The command is written above, nothing is read.
        ended = subprocess.run(  # nosec B603
            [sys.executable, *COMMAND, *QUIET],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        found, said = findings(ended.stdout), ended.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        found, said = None, ["it took more than 300 seconds"]
    if found is None:
        reason = said[-1] if said else "it printed nothing"
        print(f"dependencies were not audited: {reason}")  # noqa: T201
        return 0
    print("\n".join(found) or "no dependency has a known vulnerability")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
