"""Break the code in a copy of the sources and run the tests that should notice.

`tests/mutants.py` lists the mutants and is the command; this module runs them.
"""

import gc
import importlib.util
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import pytest

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
PRELOADED = (  # what many tests and pytest's own plugins import
    *(
        "torch",
        "torch.testing",
        "torch.distributed.tensor",
        "torch.utils.data",
        "torch.fx.experimental.symbolic_shapes",
    ),
    *(
        "numpy",
        "numpy.testing",
        "scipy.stats",
        "scipy.sparse",
        "scipy.optimize",
        "sklearn.datasets",
        "yaml",
        "PIL.Image",
    ),
    *(
        "anyio.pytest_plugin",
        "anyio._backends._asyncio",
        "xdist.plugin",
        "pytest_timeout",
        "hypothesis",
        "unittest.mock",
    ),
)
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
    ignored = shutil.ignore_patterns(".git", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache")
    for entry in sorted(ROOT.iterdir()):
        if entry.name.startswith(".") or entry.name in ("build", "data", "dist", "runs", "shared"):
            continue
        if entry.is_dir():
            shutil.copytree(entry, copy / entry.name, ignore=ignored, symlinks=True)
        else:
            shutil.copy2(entry, copy / entry.name)
    return copy


def outcome(mutant: Mutant) -> str:
    """Return "caught", "survived", or why the mutant could not be tried; only for a process of its own."""
    reason = stale(mutant)
    if reason:
        return reason
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_tree(Path(folder))
        file = mutant.path(copy)
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
        shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)
        code, printed = run_tests(copy, mutant.tests)
    return {0: "survived", 1: "caught"}.get(code, f"pytest ended with {code}:\n{printed[-2500:]}")


def control(tests: str) -> str:
    """Return "green" if the tests pass on the unbroken code, else what they printed; only for a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        code, printed = run_tests(copy_tree(Path(folder)), tests)
    return "green" if code == 0 else f"red without a mutant: pytest ended with {code}:\n{printed[-2500:]}"


def run_tests(copy: Path, tests: str) -> tuple[int, str]:
    """Run tests of a copy against the sources of that copy in this process; return the exit code and what was printed.

    The process cannot be used for anything else afterwards: it has the modules of the copy.
    """
    names, _, chosen = tests.partition(" -k ")
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain"]
    arguments += [str(next((copy / "tests").rglob(name))) for name in names.split()] + (
        ["-k", chosen] if chosen else []
    )
    for module in [name for name in sys.modules if name.partition(".")[0] in ("labelkin", "support")]:
        del sys.modules[module]
    ours = [str(copy / "src"), str(copy / "tests")]
    sys.path[:] = ours + [entry for entry in sys.path if not entry or not Path(entry).is_relative_to(ROOT / "tests")]
    sys.dont_write_bytecode = True
    os.environ["PYTHONPATH"] = os.pathsep.join(ours)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.chdir(copy)
    printed = copy.parent / "printed"
    with printed.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    code = int(pytest.main(arguments))
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir("/")
    return code, printed.read_text(encoding="utf-8", errors="replace")


def forked(function: Callable[[T], str], items: Sequence[T], workers: int = 2) -> Iterator[str]:
    """Call a function on every item, each in a forked process, `workers` at a time; yield the results in order.

    The processes start with the modules of this one, which saves the seconds that each would need to import torch.
    """
    running: dict[int, tuple[int, BinaryIO]] = {}  # process -> position of its item, its answer
    answers: dict[int, str] = {}
    position = 0
    for start, item in enumerate(items):
        if len(running) == workers:
            _collect(running, answers)
        while position in answers:
            yield answers.pop(position)
            position += 1
        sys.stdout.flush()
        sys.stderr.flush()
        answer = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _collect
        process = os.fork()
        if not process:
            try:
                answer.write(function(item).encode())
                answer.flush()
            except Exception:
                answer.write(f"failed: {traceback.format_exc()}".encode())
                answer.flush()
            finally:
                os._exit(0)
        running[process] = start, answer
    while running:
        _collect(running, answers)
        while position in answers:
            yield answers.pop(position)
            position += 1


def _collect(running: dict[int, tuple[int, BinaryIO]], answers: dict[int, str]) -> None:
    """Wait until one or more of the processes end and store their answers."""
    ended: list[tuple[int, int]] = []
    while not ended:
        time.sleep(0.01)
        ended = [(process, status) for process in running for done, status in [os.waitpid(process, os.WNOHANG)] if done]
    for process, status in ended:
        place, answer = running.pop(process)
        with answer:
            answer.seek(0)
            answers[place] = answer.read().decode() or f"the process ended with status {status} and no answer"


def preload() -> None:
    """Import what most tests import, so that forked processes have it."""
    for name in PRELOADED:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    gc.freeze()  # forked processes need not look through these modules for garbage


def select(mutants: Sequence[Mutant], words: Sequence[str], rooms: Sequence[str]) -> list[Mutant]:
    """Return the mutants of the rooms, or whose name contains one of the words; all without either."""
    if not words and not rooms:
        return list(mutants)
    return [m for m in mutants if m.room in rooms or any(word in m.name for word in words)]


def run(
    mutants: Sequence[Mutant],
    say: Callable[[str], None] = print,
    *,
    first: int = 1,
    last: int | None = None,
    workers: int = 2,
) -> int:
    """Run the control of every test named, then the mutants whose control is green; return how many went wrong.

    Lines have the position of a mutant, so that `first` can be the position at which an interrupted run goes on.
    """
    remaining = list(enumerate(mutants, start=1))[first - 1 : last]
    red = _red_controls({mutant.tests for _, mutant in remaining}, say, workers)
    ready = [(position, mutant) for position, mutant in remaining if mutant.tests not in red]
    wrong = len(remaining) - len(ready)
    outcomes = forked(outcome, [mutant for _, mutant in ready], workers)
    for (position, mutant), found in zip(ready, outcomes, strict=True):
        wrong += found != "caught"
        say(f"{position:4d} {found:10s} {mutant.room}: {mutant.name}")
    say(f"{len(remaining)} mutants, {wrong} not caught or not tried")
    return wrong


def _red_controls(tests: set[str], say: Callable[[str], None], workers: int) -> set[str]:
    """Return which tests fail without a mutant: all tests of a file at once, and one by one where a file is red."""
    files = joined(tests)
    together = dict(zip(files, forked(control, list(files), workers), strict=True))
    suspects = sorted(single for whole, found in together.items() if found != "green" for single in files[whole])
    red = {
        single: found
        for single, found in zip(suspects, forked(control, suspects, workers), strict=True)
        if found != "green"
    }
    for single, found in red.items():
        say(f"control    {single}: {found}")
    say(f"{len(tests) - len(red)} of {len(tests)} controls are green")
    return set(red)


def joined(tests: Iterable[str]) -> dict[str, list[str]]:
    """Return selections that name each file once, with the selections that they stand for."""
    by_file: dict[str, list[str]] = {}
    for single in sorted(tests):
        by_file.setdefault(single.partition(" -k ")[0], []).append(single)
    found: dict[str, list[str]] = {}
    for file, singles in by_file.items():
        words = [single.partition(" -k ")[2] for single in singles]
        found[f"{file} -k " + " or ".join(f"({word})" for word in words) if all(words) else file] = singles
    return found


def rooms_of(mutants: Iterable[Mutant]) -> dict[str, int]:
    """Return how many mutants each room has."""
    counts = dict.fromkeys(EXPECTED_ROOMS, 0)
    for mutant in mutants:
        counts[mutant.room] = counts.get(mutant.room, 0) + 1
    return counts
