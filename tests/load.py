"""Measures what large inputs take, and fails if one of them takes more than its limit. Seconds are those of the processor.

    python tests/load.py                # what `make load` runs
    python tests/load.py store trees    # some of them

- store: `labelkin runs list` on 10,000 runs, at most 2 s
- trees: a tree of 100,000 classes from a file of each format, at most 2 s each
- page: `labelkin report` on 20 objectives x 10 seeds, at most 25 MB
- audit: `labelkin audit` on probabilities of 1,000,000 samples takes at most 1.5 times the memory of 100,000 samples: 1,000
  classes in a .npz file of 4 GB, 100 classes in a .csv file of 0.7 GB
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np


class Measured(NamedTuple):
    """A figure and its limit, with the unit."""

    name: str
    value: float
    limit: float
    unit: str
    note: str = ""


class Ran(NamedTuple):
    """What a command in a process of its own printed, and the processor time in s and memory in MB that it took."""

    lines: list[str]
    seconds: float
    megabytes: float


def ran(*arguments: object) -> Ran:
    """Run a command of labelkin."""
    command = [sys.executable, "-m", "labelkin", *map(str, arguments)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise SystemExit(f"{arguments[0]}: {err.read().decode()}")
        lines = out.read().decode().splitlines()
    unit = 1 if sys.platform == "darwin" else 1024
    return Ran(lines, used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 1e6)


def trained(folder: Path) -> Path:
    ran("train", "digits", "--objective", "label-smoothing", "--epochs", 1, "--out", folder / "one")
    return folder / "one"


def copies(one: Path, store: Path, settings: list[tuple[float, int]], files: tuple[str, ...]) -> None:
    """Copy files of a run into a store, once for each smoothing and seed."""
    config = json.loads((one / "config.json").read_text())
    store.mkdir()
    for k, (smoothing, seed) in enumerate(settings):
        to = store / f"label-smoothing-seed{seed}-{k:012x}"
        to.mkdir()
        own = {"id": f"{k:012x}", "options": {"smoothing": smoothing}, "settings": {**config["settings"], "seed": seed}}
        (to / "config.json").write_text(json.dumps({**config, **own}, indent=1))
        for name in files:
            shutil.copy(one / name, to / name)


def store(folder: Path) -> Iterator[Measured]:
    copies(
        trained(folder),
        folder / "store",
        [(0.1, k) for k in range(10_000)],
        ("final.json", "timing.json", "metrics.csv"),
    )
    found = ran("runs", "list", folder / "store")
    assert len(found.lines) == 10_001
    yield Measured("runs list, 10,000 runs", found.seconds, 2, "s")


def trees(folder: Path) -> Iterator[Measured]:
    from labelkin import Taxonomy

    groups = {f"group {g}": [f"class {g} {i}" for i in range(100)] for g in range(1000)}
    tree = Taxonomy.from_nested(groups)
    nested = "".join(f"{name}:\n" + "".join(f"- {one}\n" for one in classes) for name, classes in groups.items())
    (folder / "nested.yaml").write_text(nested)
    (folder / "nested.json").write_text(json.dumps(groups))
    for name in ("t.json", "t.csv", "t.nwk", "t.yaml", "nested.yaml", "nested.json"):
        if name.startswith("t."):
            tree.save(folder / name)
        begun = process_time()
        found = Taxonomy.load(folder / name)
        yield Measured(f"tree of 100,000 classes, {name}", process_time() - begun, 2, "s")
        assert len(found.classes) == 100_000


def page(folder: Path) -> Iterator[Measured]:
    one = trained(folder)
    files = tuple(file.name for file in one.iterdir() if file.name not in ("config.json", "lock"))
    copies(one, folder / "store", [(k / 40, seed) for k in range(20) for seed in range(10)], files)
    found = ran("report", folder / "store", "-o", folder / "page.html", "--reference", "label-smoothing smoothing=0.0")
    seconds = f"in {found.seconds:.0f} s"
    yield Measured("report, 20 objectives x 10 seeds", (folder / "page.html").stat().st_size / 1e6, 25, "MB", seconds)


def audit(folder: Path) -> Iterator[Measured]:
    if shutil.disk_usage(folder).free < 8e9:
        print("audit: left out, because it needs 8 GB of disk")
        return
    for name, classes, write in (("npz", 1000, write_npz), ("csv", 100, write_csv)):
        groups = {f"group {g}": [f"class {k}" for k in range(g, classes, 10)] for g in range(10)}
        (folder / "tree.json").write_text(json.dumps(groups))
        found = []
        for count in (100_000, 1_000_000):
            write(folder / f"p.{name}", count, classes)
            found.append(ran("audit", folder / f"p.{name}", "--kind", "probs", "--taxonomy", folder / "tree.json"))
            (folder / f"p.{name}").unlink()
        less, more = found
        note = (
            f"times: {less.megabytes:.0f} and {more.megabytes:.0f} MB, in {less.seconds:.0f} and {more.seconds:.0f} s"
        )
        yield Measured(
            f"audit, 1,000,000 x {classes:,} .{name}, memory", more.megabytes / less.megabytes, 1.5, "x", note
        )


def samples(count: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random true classes, and probabilities in float32 that know them half of the time."""
    make = np.random.default_rng(seed)
    target = make.integers(0, classes, count)
    logits = make.standard_normal((count, classes), dtype=np.float32)
    logits[np.arange(count), target] += 4
    powers = np.exp(logits)
    return target, powers / powers.sum(1, keepdims=True)


def write_npz(file: Path, count: int, classes: int) -> None:
    at_once = 10_000
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, classes)}
    targets = []
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open("probs.npy", "w", force_zip64=True) as into:
            np.lib.format.write_array_header_1_0(into, header)
            for seed in range(count // at_once):
                target, probs = samples(at_once, classes, seed)
                targets.append(target)
                into.write(probs.tobytes())
        for name, array in (("target", np.concatenate(targets)), ("classes", np.array(names(classes)))):
            with archive.open(f"{name}.npy", "w") as into:
                np.lib.format.write_array(into, array)


def write_csv(file: Path, count: int, classes: int) -> None:
    target, probs = samples(1000, classes, 0)
    lines = [
        f"class {true},{','.join(f'{value:.5f}' for value in row)}\n"
        for true, row in zip(target.tolist(), probs.tolist(), strict=True)
    ]
    with file.open("w") as into:
        into.write(f"label,{','.join(names(classes))}\n")
        for _ in range(count // len(lines)):
            into.writelines(lines)


def names(classes: int) -> list[str]:
    return [f"class {k}" for k in range(classes)]


CASES: dict[str, Callable[[Path], Iterator[Measured]]] = {"store": store, "trees": trees, "page": page, "audit": audit}


def main() -> int:
    wrong = 0
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            for found in CASES[name](Path(folder)):
                wrong += found.value > found.limit
                kept = "" if found.value <= found.limit else "  TOO MUCH"
                print(
                    f"{found.name:40} {found.value:7.2f} {found.unit}, at most {found.limit:g} {found.note}{kept}",
                    flush=True,
                )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
