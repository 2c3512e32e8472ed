"""Stops commands at random moments, runs them again, and compares what they leave with what an undisturbed run leaves.

    python tests/chaos.py --kills 100            # what `make chaos` runs
    python tests/chaos.py --kills 10 --only sweep,disk --seed 3

A stop is SIGKILL or SIGINT to the command, a SIGKILL to one of its workers (in `ray` to one of Ray's, not to Ray itself), or a
SIGKILL to all of its processes; in `disk` the disk fills up instead, which needs the right to mount. The same command then has
to finish and to leave the same bytes. Each command is a forked child, so that one process pays for the imports. Prints a line
for each stop; exits 1 if any went wrong.
"""

import argparse
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

RUN = ("train", "digits", "--objective", "label-embedding", "--epochs", "3", "--batch-size", "128", "--out", "run")
SWEEP = ("compare", "plan.yaml", "--out", "store")
PLAN = "data: digits\nobjectives: [one-hot, label-smoothing]\nseeds: [0, 1]\ntraining: {epochs: 2, batch_size: 128}\n"
TREE = {
    "round": ["zero", "six", "eight", "nine"],
    "straight": {"lines": ["one", "four", "seven"], "curves": ["two", "three", "five"]},
}
# Files with times, or that only an unfinished run has.
VARYING = {"timing.json", "state.json", "lock"}
MARK = "LABELKIN_CHAOS"
# Seconds for a command to finish, and for the workers of a killed one to notice it: at least so many, and so many times those
# of an undisturbed run, because a busy machine is no hang.
PATIENCE, TIMES = 300, 20


@dataclass(frozen=True)
class Scenario:
    """A command and what it leaves.

    Attributes:
        argv: The command.
        left: Returns the content of what the command wrote.
        whole: Whether outputs appear complete or not at all, also when the command is killed.
        workers: Whether the command has workers to kill.
        done: What a command says that finds its work done.
    """

    argv: tuple[str, ...]
    left: Callable[[Path], dict[str, bytes]]
    whole: bool = False
    workers: bool = False
    done: str = "this run is finished"


def run_files(*folders: str) -> Callable[[Path], dict[str, bytes]]:
    """Read the files of runs that must not depend on whether they were stopped."""

    def left(place: Path) -> dict[str, bytes]:
        files = (file for folder in folders for file in (place / folder).rglob("*") if file.is_file())
        return {str(file.relative_to(place)): file.read_bytes() for file in files if file.name not in VARYING}

    return left


def one_file(name: str) -> Callable[[Path], dict[str, bytes]]:
    """Read one file that a command wrote, if it is there."""
    return lambda place: {name: (place / name).read_bytes()} if (place / name).exists() else {}


SCENARIOS = {
    "train": Scenario(RUN, run_files("run")),
    "sweep": Scenario((*SWEEP, "--jobs", "2"), run_files("store"), workers=True),
    "report": Scenario(("report", "done-store", "-o", "page.html"), one_file("page.html"), whole=True),
    "export": Scenario(("export", "done", "-o", "model.onnx"), one_file("model.onnx"), whole=True),
    "predict": Scenario(
        ("predict", "done", "new.npy", "-o", "out.csv", "--all-probs"), one_file("out.csv"), whole=True
    ),
    "decide": Scenario(
        ("decide", "scores.csv", "-o", "decided.csv", "--kind", "probs", "--taxonomy", "tree.json", "--explain"),
        one_file("decided.csv"),
        whole=True,
    ),
    "disk": Scenario(RUN, run_files("run")),
    "fleet": Scenario((*SWEEP, "--fleet", "4"), run_files("store")),
    "ray": Scenario((*SWEEP, "--engine", "ray", "--jobs", "2"), run_files("store"), workers=True),
}


def begin(argv: tuple[str, ...], place: Path, log: Path) -> int:
    """Start a command in a forked child that leads a process group; returns its process id."""
    pid = os.fork()
    if pid:
        return pid
    os.setpgid(0, 0)
    os.environ[MARK] = str(os.getpid())  # workers may lead sessions of their own
    # Ray gives its workers a niceness of 15, with which they stand still on a busy machine.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray's name
    os.chdir(place)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["labelkin", *argv]
    code: object = 1
    try:
        from labelkin.cli import main

        main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except KeyboardInterrupt:
        code = 130
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def here(argv: tuple[str, ...], place: Path) -> None:
    """Run a command in this process, so that the children inherit its imports."""
    from labelkin.cli import main

    former, sys.argv = os.getcwd(), ["labelkin", *argv]
    os.chdir(place)
    try:
        with redirect_stdout(io.StringIO()):
            main()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        os.chdir(former)


def end(pid: int, seconds: float) -> int:
    """Wait for a child, and for all processes of its group; returns its exit code. Kills what is left in the end."""
    until = time.monotonic() + seconds
    code = None
    while time.monotonic() < until:
        if code is None:
            ended, status = os.waitpid(pid, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if ended else None
        if code is not None and not group(pid):
            return code
        time.sleep(0.02)
    left = group(pid)
    kill_all([pid, *left] if code is None else left)
    if code is None:
        os.waitpid(pid, 0)
    raise TimeoutError(f"{len(left)} processes did not end within {seconds:.0f} s")


def kill_all(processes: list[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def group(pid: int) -> list[int]:
    """The living processes that a command started: those of its process group, and those with its mark in their environment."""
    found, mark = [], f"{MARK}={pid}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != pid:
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                marked = mark in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # it ended meanwhile
            if (int(fields[2]) == pid or marked) and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def stop(pid: int, how: str, choose: random.Random, *, ray: bool) -> str:
    """Stop a command; returns what was done. A worker is any process that it started, with Ray one of Ray's workers."""
    workers = group(pid)
    try:
        if how == "worker" and (workers := ray_workers(workers) if ray else workers):
            os.kill(choose.choice(workers), signal.SIGKILL)
        elif how == "all":
            kill_all([pid, *workers])
        else:
            how = "int" if how == "int" else "kill"
            os.kill(pid, signal.SIGINT if how == "int" else signal.SIGKILL)
    except ProcessLookupError:
        return "too late"
    return how


def ray_workers(processes: list[int]) -> list[int]:
    """Those of a command's processes that train: Ray titles its workers, and not its servers, without which it ends."""
    agents = (b"ray::DashboardAgent", b"ray::RuntimeEnvAgent")
    found = []
    for process in processes:
        with suppress(OSError):  # it ended meanwhile
            title = Path(f"/proc/{process}/cmdline").read_bytes()
            if title.startswith(b"ray::") and not title.startswith(agents):
                found.append(process)
    return found


def alike(found: bytes, expected: bytes) -> bool:
    """Whether two final.json have the same accuracy but for a few samples of 359."""
    return abs(json.loads(found)["accuracy"] - json.loads(expected)["accuracy"]) < 0.02


class Chaos:
    """The scenarios in a folder, with what they leave undisturbed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.choose = folder, random.Random(seed)
        self.expected: dict[str, dict[str, bytes]] = {}
        self.seconds: dict[str, float] = {}
        self.wrong: list[str] = []
        self.count = 0

    def prepare(self, names: list[str]) -> None:
        """Train what the other commands need, and run each command undisturbed."""
        base = self.folder / "base"
        base.mkdir()
        (base / "plan.yaml").write_text(PLAN)
        np.save(base / "new.npy", np.random.default_rng(0).integers(0, 256, (2000, 1, 8, 8), dtype=np.uint8))
        write_scores(base)
        here((*RUN[:-1], "done"), base)
        if "report" in names:
            here((*SWEEP[:3], "done-store"), base)
        for name in names:
            if SCENARIOS[name].whole:
                here(SCENARIOS[name].argv, base)
                for file in SCENARIOS[name].left(base):
                    (base / file).unlink()
        for name in names:
            place, begun = self.place(name), time.monotonic()
            self.finish(SCENARIOS[name].argv, place)
            self.seconds[name] = time.monotonic() - begun
            self.expected[name] = SCENARIOS[name].left(place)
            shutil.rmtree(place)

    def finish(self, argv: tuple[str, ...], place: Path) -> None:
        log = self.folder / "log"
        code = end(begin(argv, place, log), TIMES * PATIENCE)
        if code:
            raise SystemExit(f"{' '.join(argv)}: exit {code}\n{log.read_text(errors='replace')}")

    def end(self, name: str, pid: int) -> int:
        """Wait for a command of a scenario."""
        return end(pid, max(PATIENCE, TIMES * self.seconds[name]))

    def place(self, name: str) -> Path:
        """A new folder with what the command reads."""
        self.count += 1
        place = self.folder / f"{name}-{self.count}"
        shutil.copytree(self.folder / "base", place)
        return place

    def disturb(self, name: str) -> None:
        """Stop a command once at a random moment, run it again and compare."""
        scenario, place = SCENARIOS[name], self.place(name)
        log = self.folder / f"log-{self.count}"
        how = self.choose.choice(["kill", "int", *(["worker", "worker", "all"] if scenario.workers else [])])
        at = self.choose.uniform(0, self.seconds[name])
        pid = begin(scenario.argv, place, log)
        time.sleep(at)
        how = stop(pid, how, self.choose, ray="ray" in scenario.argv)
        problems = []
        try:
            code = self.end(name, pid)
        except TimeoutError as error:
            code, problems = -1, [str(error)]
        said = log.read_text(errors="replace")
        if how == "int" and "Traceback" in said:
            problems.append("a traceback after Ctrl-C")
        if how == "worker" and code != 0:
            problems.append(f"exit {code} after a worker was killed")
        problems += self.half_written(name, place)
        self.again(name, place, f"{how} after {at:.2f} s", problems)

    def fill_disk(self, name: str) -> None:
        """Let the disk fill up at a random moment, free it, run the command again and compare."""
        place = self.place(name)
        need = 3 * sum(map(len, self.expected[name].values()))
        with small_disk(place / "run", self.choose.randrange(4096, need)):
            log = self.folder / f"log-{self.count}"
            code = self.end(name, begin(SCENARIOS[name].argv, place, log))
            said = log.read_text(errors="replace")
            problems = (
                [] if code in (0, 2) and "Traceback" not in said else [f"exit {code} on a full disk: {said[-200:]}"]
            )
            if code == 2 and "no space left" not in said:
                problems.append(f"it does not say that the disk is full: {said[-200:]}")
            problems += self.half_written(name, place)
            subprocess.run(["mount", "-o", "remount,size=256m", str(place / "run")], check=True)
            self.again(name, place, "disk full" if code else "disk not full", problems)

    def half_written(self, name: str, place: Path) -> list[str]:
        """What is there after the stop must be whole."""
        found = []
        for file in place.rglob("*.json"):
            try:
                json.loads(file.read_bytes())
            except ValueError:
                found.append(f"{file.relative_to(place)} is half written")
        if SCENARIOS[name].whole:
            left = SCENARIOS[name].left(place)
            found += [f"{file} is half written" for file in left if left[file] != self.expected[name][file]]
        return found

    def again(self, name: str, place: Path, label: str, problems: list[str]) -> None:
        scenario, log = SCENARIOS[name], self.folder / f"log-{self.count}-again"
        try:
            code = self.end(name, begin(scenario.argv, place, log))
        except TimeoutError as error:
            code, problems = -1, [*problems, str(error)]
        said = log.read_text(errors="replace")
        if code and scenario.done not in said:
            problems.append(f"the second time exit {code}: {said[-300:]}")
        left, expected = scenario.left(place), self.expected[name]
        same = "same bytes"
        different = sorted(n for n in expected.keys() | left.keys() if expected.get(n) != left.get(n))
        if different and name == "fleet" and left.keys() == expected.keys():
            # Members that had finished or saved another epoch are not in the second fleet; a smaller one rounds differently.
            different = [n for n in different if n.endswith("final.json") and not alike(left[n], expected[n])]
            same = "same numbers"
        if different:
            problems.append(f"differs: {', '.join(different[:5])}")
        self.wrong += [f"{name}, {label}: {problem}" for problem in problems]
        print(f"{name:8} {label:24} {'; '.join(problems) or same}", flush=True)
        if not problems:
            shutil.rmtree(place, ignore_errors=True)


def write_scores(folder: Path) -> None:
    """Write random probabilities of ten classes, and a tree over them."""
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    probs = np.random.default_rng(0).dirichlet(np.ones(10), 20_000)
    np.savetxt(folder / "scores.csv", probs, "%.6f", delimiter=",", header=",".join(names), comments="")
    (folder / "tree.json").write_text(json.dumps(TREE))


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[None]:
    """Mount a file system of so many bytes (rounded up to pages) at a new folder."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "labelkin-chaos", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


def can_mount() -> bool:
    """Whether this process may mount file systems."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4096", "x", folder], capture_output=True)
        if made.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        return made.returncode == 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="scenarios: " + ", ".join(SCENARIOS))
    given = parser.parse_args(arguments)
    names = given.only.split(",") if given.only else list(SCENARIOS)
    if "disk" in names and not can_mount():
        print("disk: left out, because this process may not mount file systems")
        names.remove("disk")
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(Path(folder), given.seed)
        chaos.prepare(names)
        print(", ".join(f"{name} takes {seconds:.1f} s" for name, seconds in chaos.seconds.items()), flush=True)
        for k in range(given.kills):
            name = names[k % len(names)]
            chaos.fill_disk(name) if name == "disk" else chaos.disturb(name)
    print(f"{given.kills} stops, {len(chaos.wrong)} wrong")
    for line in chaos.wrong:
        print(line)
    return 1 if chaos.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
