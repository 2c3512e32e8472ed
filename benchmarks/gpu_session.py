"""Check and time everything that has a target for one GPU, in one call and at most six minutes.

    python benchmarks/gpu_session.py --out build/gpu --trees FOLDER
    python benchmarks/gpu_session.py --out build/small --small  # small sizes, for a trial on any machine

Tests of the kernels, of captured steps and of fleets run first. Then each benchmark runs in a process of its own and writes its
JSON to the folder, and a table says which targets are met. What no time is left for is listed as not run. Targets are for one
H200; small sizes are not judged. Peers that are not installed, such as Liger-Kernel, are found on PYTHONPATH.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
KERNEL_TESTS = [
    "tests/functional/test_kernels.py",
    "tests/functional/test_fused_dispatch.py",
    "-k",
    "triton or dispatch",
]
TRAINING_TESTS = ["tests/training/test_gpu.py", "tests/training/test_captured_steps.py", "tests/training/test_fleet.py"]
SMALL_TESTS = ["tests/functional/test_kernels.py", "-k", "identity or made_once"]
RUNS, EPOCHS = 12, 30  # of the target for several runs on one GPU


class Line(NamedTuple):
    """A measured value and its target."""

    what: str
    value: float
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


class Step(NamedTuple):
    """A benchmark: the arguments of `labelkin bench` in full and in small size, and what its JSON says about targets."""

    name: str
    full: str
    small: str
    lines: Callable[[Any], Iterator[Line]]
    prints_json: bool = False  # to stdout, instead of a file
    threads: int | None = None


def loss_lines(found: Any) -> Iterator[Line]:
    """Yield ratios to flat cross entropy: in a CUDA graph on a GPU, else as called."""
    on_cpu = all(row["replay_ratio"] is None for row in found["rows"])
    for row in found["rows"]:
        limit = 2.0 if on_cpu else 0.8 if row["case"].startswith("class targets") else 1.0
        ratio = row["replay_ratio"] or row["ratio"]
        yield Line(f"{row['case']}, batch {row['batch']}", ratio, limit, "x flat")


def training_lines(limits: Sequence[float], first: float) -> Callable[[Any], Iterator[Line]]:
    """Return a function that yields the seconds of an epoch and of the first step of each objective."""

    def lines(found: Any) -> Iterator[Line]:
        for row, limit in zip(found["rows"], limits, strict=True):
            name = f"{found['backbone']}, {row['objective']}, {row['way']}"
            yield Line(f"{name}: epoch", row["epoch"], limit, "s")
            yield Line(f"{name}: first step", row["first_step"], first, "s")
        if found["backbone"] == "resnet-18" and limits[0] == 1.3 and len(limits) > 1:
            row = found["rows"][0]
            whole = RUNS * (EPOCHS * (row["epoch"] + row["end"]) + row["first_step"])
            yield Line(f"{RUNS} runs of {EPOCHS} epochs, from the times of one", whole, 300, "s")

    return lines


def fleet_lines(found: Any) -> Iterator[Line]:
    yield Line(f"fleet of {found['members']} {found['backbone']}", found["throughput"], 8, "x alone", at_least=True)
    yield Line("fleet: difference in the loss of the first steps", found["loss_difference"], 0.01, "of alone")


def linear_lines(found: Any) -> Iterator[Line]:
    for row in found["rows"]:
        for peer, ratios in row["peers"].items():
            if "liger" in peer.lower():
                yield Line(f"fused linear, {row['case']}: time", ratios["times_time"], 1.2, f"x {peer}")
                if ratios["times_memory"] is not None:
                    yield Line(f"fused linear, {row['case']}: memory", ratios["times_memory"], 1.2, f"x {peer}")


def many_labels_lines(found: Any) -> Iterator[Line]:
    yield Line("compressed label embedding: time", found["times_time"], 1.5, "x plain")
    if found["times_memory"] is not None:
        yield Line("compressed label embedding: memory", found["times_memory"], 1.2, "x plain")


TINY = "--samples 256 --batch 32 --epochs 2 --size 8 --precision 32-true"
STEPS = [  # the most important ones first
    Step("losses", "losses --repeats 30 {trees}", "losses --small --repeats 3", loss_lines),
    Step(
        "training",
        "training one-hot label-embedding --way captured --epochs 3",
        f"training one-hot label-embedding --way plain --backbone tiny-cnn {TINY}",
        training_lines((1.3, 1.5), 10),
    ),
    Step(
        "linear",
        "linear --kind hard --repeats 5",
        "linear --rows 16 --features 4 --classes 12 --repeats 1",
        linear_lines,
    ),
    Step(
        "many-labels",
        "many-labels --repeats 10 --json",
        "many-labels --labels 50 --features 8 --tokens 16 --rank 4 --repeats 1 --json",
        many_labels_lines,
        prints_json=True,
    ),
    Step("fleet", "fleet", "fleet --members 2 --samples 128 --batch 32 --epochs 2", fleet_lines),
    Step(
        "training-double",
        "training one-hot --backbone resnet-18-double --way captured --epochs 3",
        f"training one-hot --way plain --backbone mlp {TINY}",
        training_lines((2.6,), 10),
    ),
    Step(
        "training-wrn",
        "training one-hot --backbone wrn-28-8 --samples 45000 --way captured --epochs 3",
        f"training one-hot --way plain --backbone mlp {TINY}",
        training_lines((2.8,), 10),
    ),
    Step(
        "training-wrn-compiled",
        "training one-hot --backbone wrn-28-8 --samples 45000 --epochs 3 --way 'compiled and captured'",
        f"training one-hot --way plain --backbone mlp {TINY}",
        training_lines((2.8,), 60),
    ),
    Step(
        "losses-cpu",
        "losses --device cpu --only inat21 --repeats 9 {trees}",
        "losses --device cpu --only even --small --repeats 3",
        loss_lines,
        threads=2,
    ),
    Step(
        "training-compiled",
        "training one-hot --epochs 3 --way 'compiled and captured'",
        f"training one-hot --way plain --backbone tiny-cnn {TINY}",
        training_lines((1.3,), 60),
    ),
]


class Session:
    """A folder for results, and the time that is left.

    Args:
        out: The folder.
        seconds: The time for everything.
        judged: Whether the sizes are those of the targets.
    """

    def __init__(self, out: Path, seconds: float, *, judged: bool = True) -> None:
        self.out, self.end, self.judged = out, time.monotonic() + seconds, judged
        self.lines: list[Line] = []
        self.notes: list[str] = []
        out.mkdir(parents=True, exist_ok=True)

    def call(self, name: str, command: Sequence[str], threads: int | None = None) -> str | None:
        """Run a command and return its output; None with a note if it fails or no time is left. Its log stays in the folder."""
        left = self.end - time.monotonic()
        if left < 5:
            self.notes.append(f"{name}: not run, because no time was left")
            return None
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        }
        environment |= {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
        begun = time.monotonic()
        log = self.out / f"{name}.log"
        with log.open("w", encoding="utf-8") as errors:
            try:
                done = subprocess.run(
                    command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=left
                )
            except subprocess.TimeoutExpired:
                self.notes.append(f"{name}: not finished in the {left:.0f} s that were left")
                return None
        with log.open("a", encoding="utf-8") as errors:
            errors.write(done.stdout)
        print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
        if done.returncode:
            last = (log.read_text(encoding="utf-8").strip().splitlines() or ["no output"])[-1]
            self.notes.append(f"{name}: exit code {done.returncode}: {last[:200]}")
        return done.stdout

    def test(self, name: str, tests: Sequence[str]) -> None:
        if find_spec("pytest") is None:
            self.notes.append(f"{name}: not run, because pytest is not installed")
            return
        options = ["-q", "-p", "no:cacheprovider", "-o", "addopts="]  # the project's own options need plugins
        self.call(name, [sys.executable, "-m", "pytest", *options, *tests])

    def bench(self, step: Step, arguments: Sequence[str]) -> None:
        """Run a benchmark and keep its lines."""
        path = self.out / f"{step.name}.json"
        path.unlink(missing_ok=True)
        more = [] if step.prints_json else ["-o", str(path.resolve())]
        said = self.call(step.name, [sys.executable, "-m", "labelkin", "bench", *arguments, *more], step.threads)
        if step.prints_json and said:
            path.write_text(said, encoding="utf-8")
        if said is None or not path.exists():
            return
        try:
            found = list(step.lines(json.loads(path.read_text(encoding="utf-8"))))
        except json.JSONDecodeError:
            self.notes.append(f"{step.name}: no JSON, see {step.name}.log")
            return
        if not found:
            self.notes.append(f"{step.name}: nothing to compare with (is the peer installed?)")
        self.lines += found

    def table(self) -> str:
        """Return the lines as text, what is missing, and the number of targets that are met."""
        width = max((len(line.what) for line in self.lines), default=0)
        rows = [
            f"{line.what:{width}}  {line.value:8.3g} {line.unit:12}{self._verdict(line)}".rstrip()
            for line in self.lines
        ]
        met = sum(line.met for line in self.lines)
        last = f"{met} of {len(self.lines)} targets met." if self.judged else f"{len(self.lines)} values, small sizes."
        return "\n".join([*rows, *(f"Note: {note}." for note in self.notes), last])

    def _verdict(self, line: Line) -> str:
        if not self.judged:
            return ""
        sign, word = ">=" if line.at_least else "<=", "met" if line.met else "missed"
        return f" {sign} {line.limit:<5g} {word} ({line.value / line.limit:.2f} of the target)"


def main(given: Sequence[str] | None = None) -> int:
    """Run everything and return 0, or 1 if a test or a benchmark failed; a missed target is no failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/gpu"), help="folder for JSON files, logs and the table")
    parser.add_argument("--trees", type=Path, help="folder with imagenet.csv and inat21.csv; default: generated trees")
    parser.add_argument("--seconds", type=float, default=360, help="time for everything")
    parser.add_argument("--only", default="", help="run these parts only, separated by commas; 'tests' are the tests")
    parser.add_argument("--small", action="store_true", help="small sizes")
    options = parser.parse_args(given)
    session = Session(options.out, options.seconds, judged=not options.small)
    names = {name.strip() for name in options.only.split(",")} if options.only else {"tests", *(s.name for s in STEPS)}
    if unknown := names - {"tests", *(s.name for s in STEPS)}:
        parser.error(
            f"--only: unknown {', '.join(sorted(unknown))}; choose from tests, {', '.join(s.name for s in STEPS)}"
        )
    if "tests" in names:
        session.test("kernel-tests", SMALL_TESTS if options.small else KERNEL_TESTS)
        if not options.small:
            session.test("training-tests", TRAINING_TESTS)
    trees = ["--trees", str(options.trees.resolve())] if options.trees else []
    for step in STEPS:
        if step.name in names:
            words = _words(step.small if options.small else step.full)
            session.bench(step, [part for word in words for part in (trees if word == "{trees}" else [word])])
    text = session.table()
    (options.out / "table.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
    return int(any("exit code" in note or "not finished" in note for note in session.notes))


def _words(command: str) -> list[str]:
    """Split a command; single quotes hold words together."""
    parts = command.split("'")
    return [word for place, part in enumerate(parts) for word in ([part] if place % 2 else part.split())]


if __name__ == "__main__":
    sys.exit(main())
