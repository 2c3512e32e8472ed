"""Break the code in a copy of the sources and run the tests that should notice.

`tests/mutants.py` lists the mutants and is the command; this module runs them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 2  # mutants that run at the same time, each in its own copy
EXPECTED_ROOMS = (
    *("structure", "relations", "functional", "objectives", "metrics", "decide", "models", "analysis", "data"),
    *(
        "training",
        "runs",
        "comparison",
        "translate",
        "papers",
        "audit",
        "report",
        "cli",
        "bench",
        "doors",
        "serve",
        "docs",
    ),
    "root",
)


class Mutant(NamedTuple):
    """One small breakage of the code."""

    name: str
    file: str  # under src/labelkin, or docs/...
    before: str
    after: str
    tests: str  # files under tests, perhaps followed by -k and words of the tests

    @property
    def room(self) -> str:
        """The part of the package that the broken code belongs to; "root" for the modules that all parts share."""
        return self.file.split("/")[0] if "/" in self.file else "root"

    def path(self, root: Path) -> Path:
        """Return the file in a checkout or a copy of it."""
        return root / self.file if self.room == "docs" else root / "src" / "labelkin" / self.file


def stale(mutant: Mutant, root: Path = ROOT) -> str:
    """Return why a mutant cannot be made, or an empty string if its text occurs exactly once in its file."""
    file = mutant.path(root)
    if not file.is_file():
        return f"stale: there is no file {mutant.file}"
    count = file.read_text(encoding="utf-8").count(mutant.before)
    return "" if count == 1 else f"stale: {mutant.before!r} occurs {count} times in {mutant.file}"


def copy_tree(folder: Path) -> Path:
    """Copy what the tests need to a folder and return the copy: nothing is ever broken in the working tree."""
    copy = folder / "labelkin"
    copy.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache")
    for entry in sorted(ROOT.iterdir()):
        if entry.name.startswith(".") or entry.name in ("build", "data", "dist", "runs", "shared"):
            continue
        if entry.is_dir():
            shutil.copytree(entry, copy / entry.name, ignore=ignored, symlinks=True)
        else:
            shutil.copy2(entry, copy / entry.name)
    return copy


def run_tests(copy: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests of a copy against the sources of that copy."""
    names, _, chosen = tests.partition(" -k ")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += [str(next((copy / "tests").rglob(name))) for name in names.split()] + (["-k", chosen] if chosen else [])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(copy / "src"), str(copy / "tests")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.setdefault("OMP_NUM_THREADS", "1")
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)


def outcome(mutant: Mutant) -> str:
    """Return "caught", "survived", or why the mutant could not be tried."""
    reason = stale(mutant)
    if reason:
        return reason
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_tree(Path(folder))
        file = mutant.path(copy)
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
        ended = run_tests(copy, mutant.tests)
    return {0: "survived", 1: "caught"}.get(ended.returncode, _failure(ended))


def control(tests: str) -> str:
    """Return "green" if the tests pass on the unbroken code, else what they printed."""
    with tempfile.TemporaryDirectory() as folder:
        ended = run_tests(copy_tree(Path(folder)), tests)
    return "green" if ended.returncode == 0 else f"red without a mutant: {_failure(ended)}"


def _failure(ended: subprocess.CompletedProcess[str]) -> str:
    return f"pytest ended with {ended.returncode}:\n{ended.stdout[-2000:]}{ended.stderr[-500:]}"


def select(mutants: Sequence[Mutant], words: Sequence[str], rooms: Sequence[str]) -> list[Mutant]:
    """Return the mutants of the rooms, or whose name contains one of the words; all without either."""
    if not words and not rooms:
        return list(mutants)
    return [m for m in mutants if m.room in rooms or any(word in m.name for word in words)]


def run(mutants: Sequence[Mutant], say: Callable[[str], None] = print) -> int:
    """Run the control of every test named, then the mutants whose control is green; return how many went wrong."""
    wrong = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tests = sorted({mutant.tests for mutant in mutants})
        controls = dict(zip(tests, pool.map(control, tests), strict=True))
        for name, found in controls.items():
            if found != "green":
                say(f"control    {name}: {found}")
        ready = [mutant for mutant in mutants if controls[mutant.tests] == "green"]
        say(f"{sum(found == 'green' for found in controls.values())} of {len(controls)} controls are green")
        wrong = len(mutants) - len(ready)
        for mutant, found in zip(ready, pool.map(outcome, ready), strict=True):
            wrong += found != "caught"
            say(f"{found:10s} {mutant.room}: {mutant.name}")
    say(f"{len(mutants)} mutants, {wrong} not caught or not tried")
    return wrong


def rooms_of(mutants: Iterable[Mutant]) -> dict[str, int]:
    """Return how many mutants each room has."""
    counts = dict.fromkeys(EXPECTED_ROOMS, 0)
    for mutant in mutants:
        counts[mutant.room] = counts.get(mutant.room, 0) + 1
    return counts
