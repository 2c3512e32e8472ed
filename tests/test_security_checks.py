"""What CI says about secrets and vulnerabilities: a planted one is found, and a missing network stops nothing."""

import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "security.py"
KEYS = {
    "a private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "a key of AWS": "key = AKIA" + "ABCDEFGH01234567",
    "a token of GitHub": "ghp_" + "a1B2" * 9,
    "a token of GitLab": "glpat-" + "a1B2c" * 4,
    "a token of PyPI": "pypi-AgE" + "a1B2c" * 12,
    "a token of Hugging Face": "hf_" + "aB" * 17,
    "a token of Slack": "xoxb-" + "1234567890-abc",
    "a key of Google": "AIza" + "a1B2c" * 7,
    "a key of OpenAI or Anthropic": "sk-ant-" + "a1B2c" * 9,
    "a password in an address": "postgres://me:" + "hunter22@db.example.com/x",
}


@pytest.fixture(scope="module")
def checks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("security_checks", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def environments(checks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The options of the environments that the check makes: none is made, because that takes seconds."""
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(checks.venv, "create", lambda folder, **options: made.append(options))
    return made


def committed(folder: Path, *contents: str) -> Path:
    git = [
        "git",
        "-C",
        str(folder),
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@example.com",
        "-c",
        "commit.gpgsign=false",
    ]
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for content in contents:
        (folder / "file.txt").write_text(content)
        subprocess.run([*git, "add", "file.txt"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "change"], check=True)
    return folder


def test_every_kind_of_secret_is_found_and_not_repeated(checks: ModuleType, tmp_path: Path):
    assert KEYS.keys() == checks.SECRETS.keys()
    found, why = checks.secrets(committed(tmp_path, "\n".join(KEYS.values())))
    assert why is None
    assert sorted(line.partition(": ")[2] for line in found) == sorted(KEYS)
    assert all(" file.txt: " in line for line in found)
    assert not any(key in line for key in KEYS.values() for line in found)


def test_a_secret_that_was_deleted_is_still_in_the_history(checks: ModuleType, tmp_path: Path):
    assert len(checks.secrets(committed(tmp_path, KEYS["a token of GitHub"], "nothing\n"))[0]) == 1


def test_ordinary_text_is_no_secret(checks: ModuleType, tmp_path: Path):
    text = "https://example.com/a:b@c\nhttp://user:$PASSWORD@host\nsk-learn and hf_transfer\nAKIA\nssh://git@host/x\n"
    assert checks.secrets(committed(tmp_path, text)) == ([], None)


@pytest.mark.usefixtures("environments")
def test_without_a_history_the_check_says_so(
    checks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(checks, "failed", lambda command: "no network")
    assert checks.main(tmp_path) == 0
    assert "secrets: not looked for, because there is no history to read" in capsys.readouterr().out


@pytest.mark.usefixtures("environments")
def test_without_a_network_the_check_says_so_and_passes(
    checks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    committed(tmp_path, "nothing\n")
    monkeypatch.setattr(checks, "failed", lambda command: "ERROR: No matching distribution found for pip-audit")
    assert checks.main(tmp_path) == 0
    said = capsys.readouterr().out
    assert "secrets: 0 found" in said
    assert "vulnerabilities: not looked up, because pip-audit could not do it here (ERROR: No matching" in said


def test_a_known_vulnerability_is_listed_and_fails_if_strict(
    checks: ModuleType,
    environments: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    committed(tmp_path, "nothing\n")
    known = {"id": "PYSEC-1", "fix_versions": ["1.1"]}
    report = {"dependencies": [{"name": "a", "version": "1.0", "vulns": [known]}, {"name": "b", "skip_reason": "x"}]}

    def failed(command: list[object]) -> str | None:
        if "pip_audit" not in command:
            return None
        Path(str(command[command.index("--output") + 1])).write_text(json.dumps(report))
        return "Found 1 known vulnerability in 1 package"

    monkeypatch.setattr(checks, "failed", failed)
    for strict in (False, True):
        assert checks.main(tmp_path, strict=strict) == strict
        assert "a 1.0: PYSEC-1, fixed in 1.1" in capsys.readouterr().out
    assert environments == [{"with_pip": True}] * 2


@pytest.mark.usefixtures("environments")
def test_a_secret_fails(checks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checks, "failed", lambda command: "no network")
    assert checks.main(committed(tmp_path, KEYS["a key of AWS"])) == 1


def test_a_command_that_fails_gives_its_last_line(checks: ModuleType):
    assert checks.failed(["git", "--version"]) is None
    assert "nothing-such" in checks.failed(["git", "nothing-such"])


def test_ci_runs_the_checks():
    root = SCRIPT.parent.parent
    assert ".ci/security.py" in (root / ".ci/run").read_text()
    assert ".ci/security.py" in (root / ".github/workflows/ci.yml").read_text()
