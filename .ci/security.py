"""Looks for secrets in the history and for known vulnerabilities of the pinned dependencies.

    python .ci/security.py             # exits 1 if there are secrets
    python .ci/security.py --strict    # exits 1 if there are secrets or vulnerabilities

The secrets need git and the history. The vulnerabilities need the network (pip-audit and its database). Where one of them is
missing, a line says so and that check passes. Without --strict, vulnerabilities are only listed: a new one concerns the
dependencies, not the change that is tested.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

PATIENCE = 120  # seconds for each command that uses the network
SECRETS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "a key of AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a token of GitHub": r"\b(?:gh[pousr]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z_]{60,})",
    "a token of GitLab": r"\bglpat-[0-9A-Za-z_-]{20}",
    "a token of PyPI": r"\bpypi-AgE[0-9A-Za-z_-]{50,}",
    "a token of Hugging Face": r"\bhf_[0-9A-Za-z]{34}\b",
    "a token of Slack": r"\bxox[abprs]-[0-9A-Za-z-]{10,}",
    "a key of Google": r"\bAIza[0-9A-Za-z_-]{35}",
    "a key of OpenAI or Anthropic": r"\bsk-(?:ant-|proj-)?[0-9A-Za-z_-]{40,}",
    "a password in an address": r"\b[a-z]{2,10}://[^\s/:@]+:[^\s/:@$<{]{6,}@[\w.-]+",
}


def secrets(repository: Path) -> tuple[list[str], str | None]:
    """Return a line for each secret in any version of any file: what, in which commit and file; never the secret itself.

    Or none, and why the history could not be read.
    """
    command = ["git", "-C", str(repository), "log", "--all", "-p", "--unified=0", "--no-color", "--format=commit %h"]
    patterns = {what: re.compile(pattern) for what, pattern in SECRETS.items()}
    found, commit, file = [], "", ""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as log:
        assert log.stdout is not None
        for raw in log.stdout:
            line = raw.decode("utf-8", errors="replace").rstrip("\n")
            if line.startswith("commit "):
                commit = line.removeprefix("commit ")
            elif line.startswith("+++ "):
                file = line.removeprefix("+++ ").removeprefix("b/")
            elif line.startswith("+"):
                found += [f"{commit} {file}: {what}" for what, pattern in patterns.items() if pattern.search(line)]
    return ([], f"git log ended with {log.returncode}") if log.returncode else (found, None)


def vulnerabilities(requirements: Path) -> tuple[list[str], str | None]:
    """Return a line for each known vulnerability; or none, and why they could not be looked up."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        report = Path(folder) / "report.json"
        install = [python, "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "15", "pip-audit"]
        look = [
            python,
            "-m",
            "pip_audit",
            "--no-deps",
            "--disable-pip",
            "--progress-spinner",
            "off",
            "--format",
            "json",
        ]
        for command in (install, [*look, "--output", report, "--requirement", requirements]):
            why = failed(command)
            if why is not None and not report.exists():
                return [], why
        return listed(json.loads(report.read_text())), None


def failed(command: list[Any]) -> str | None:
    """Run a command; returns the last line of its errors if it fails."""
    try:
        told = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"no answer within {PATIENCE} s"
    if told.returncode == 0:
        return None
    lines = told.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit {told.returncode}"


def listed(report: dict[str, Any]) -> list[str]:
    """Return a line for each vulnerability in a report of pip-audit."""
    return [
        f"{package['name']} {package['version']}: {known['id']}, fixed in {', '.join(known['fix_versions']) or 'no version'}"
        for package in report["dependencies"]
        for known in package.get("vulns", ())
    ]


def main(repository: Path, *, strict: bool = False) -> int:
    leaked, why = secrets(repository)
    if why is None:
        print(f"secrets: {len(leaked)} found in the history", *leaked, sep="\n  ")
    else:
        print(f"secrets: not looked for, because there is no history to read ({why})")
    known, why = vulnerabilities(repository / "constraints.txt")
    if why is None:
        print(f"vulnerabilities: {len(known)} known in constraints.txt", *known, sep="\n  ")
    else:
        print(f"vulnerabilities: not looked up, because pip-audit could not do it here ({why})")
    return 1 if leaked or (strict and known) else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent, strict="--strict" in sys.argv[1:]))
