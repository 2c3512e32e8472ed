"""What continuous integration runs, and on which systems."""

import ast
import os
import subprocess
from pathlib import Path
from shutil import which

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
EVERYWHERE = ["python .ci/security.py", "make check", "make test"]
POSIX = pytest.mark.skipif(os.name == "nt", reason="stand-ins for commands are shell scripts")


def commands_on(system: str, tmp_path: Path, *, apt: bool, failing: str = "") -> tuple[int, list[str], str]:
    """The exit code of .ci/run, the commands that it gives, and what it prints, with stand-ins for all of them."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("dirname", "bash"):
        (tools / name).symlink_to(str(which(name)))
    told = tmp_path / "commands.txt"
    for name in ("make", "python", *(["apt-get"] if apt else [])):
        (tools / name).write_text(
            f'#!{which("bash")}\nline="{name} $*"\necho "$line [$LABELKIN_REQUIRE]" >> {told}\n[ "$line" != "{failing}" ]\n'
        )
        (tools / name).chmod(0o755)
    (tools / "uname").write_text(f"#!{which('bash')}\necho {system}\n")
    (tools / "uname").chmod(0o755)
    found = subprocess.run(
        [str(which("bash")), str(ROOT / ".ci" / "run")],
        env={"PATH": str(tools), "PYTHON": "python"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.stderr == ""
    return found.returncode, told.read_text().splitlines(), found.stdout


def steps(lines: list[str]) -> list[str]:
    return [line.partition(" [")[0] for line in lines if not line.startswith("apt-get")]


@POSIX
def test_debian_runs_everything_and_skips_nothing(tmp_path: Path):
    code, lines, printed = commands_on("Linux", tmp_path, apt=True)
    assert code == 0
    assert steps(lines) == [*EVERYWHERE, "make test-slow", "make kernels", "make wheel"]
    assert [line.split()[1] for line in lines if line.startswith("apt-get")] == ["update", "install"]
    assert lines[-1].endswith("[browser,ray,ddp,data,lightning,transformers,site]")
    assert printed == ""


@POSIX
@pytest.mark.parametrize(
    ("system", "expected", "reasons"),
    [
        ("Darwin", [*EVERYWHERE, "make test-slow", "make wheel"], ["no apt-get on Darwin", "Triton has wheels"]),
        (
            "MINGW64_NT-10.0-20348",
            [*EVERYWHERE, "make wheel"],
            ["no apt-get on MINGW64", "signals that Windows does not have", "Triton has wheels"],
        ),
    ],
)
def test_other_systems_name_what_they_skip(system: str, expected: list[str], reasons: list[str], tmp_path: Path):
    code, lines, printed = commands_on(system, tmp_path, apt=False)
    assert code == 0
    assert steps(lines) == expected
    assert lines[-1].endswith("[lightning,transformers,site]")
    for reason, line in zip(reasons, printed.splitlines(), strict=True):
        assert line.startswith(".ci/run: skipped ")
        assert reason in line


@POSIX
@pytest.mark.parametrize("failing", ["make check", "make test-slow", "make wheel"])
def test_a_failing_step_ends_it(failing: str, tmp_path: Path):
    code, lines, _ = commands_on("Linux", tmp_path, apt=True, failing=failing)
    assert code == 1
    assert steps(lines)[-1] == failing


def test_the_workflow_runs_it_on_three_systems():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    runs = {name: [step.get("run") for step in job["steps"]] for name, job in jobs.items()}
    assert ".ci/run" in runs["linux"]
    assert ".ci/run" in runs["others"]
    assert jobs["others"]["strategy"]["matrix"]["os"] == ["macos-latest", "windows-latest"]
    assert jobs["others"]["defaults"]["run"]["shell"] == "bash"
    tried = {version for name in ("linux", "others") for version in jobs[name]["strategy"]["matrix"]["python"]}
    assert tried == {"3.11", "3.12", "3.13"}
    listed = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f'"Programming Language :: Python :: {version}"' in listed for version in tried)


UNIX_ONLY = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}


def test_no_module_needs_unix_when_it_is_imported():
    """On Windows, a module that did would take all of its functions or tests along."""
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            if isinstance(node, ast.ImportFrom):
                names = {node.module or ""}
            assert not names & UNIX_ONLY, path
