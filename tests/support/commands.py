"""The command line for tests: in this process or in one of its own, and real digits as files."""

import os
import subprocess
import sys

import numpy as np
import pytest
import typer.main
from click.testing import CliRunner
from sklearn.datasets import load_digits

from labelkin.cli._app import app

COMMAND = typer.main.get_command(app)  # built once, because that takes longer than most commands
FOUND = load_digits()
PIXELS = (FOUND.images * 15).astype(np.uint8)  # as `labelkin.data` has them


def call(*arguments):
    """The command in this process: `exit_code`, `stdout`, `stderr`."""
    result = CliRunner().invoke(COMMAND, [str(a) for a in arguments], prog_name="labelkin")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*arguments):
    """The sentence with which a command ends that cannot be done."""
    result = call(*arguments)
    assert result.exit_code == 2, (result.stdout, result.stderr)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1 or "Usage:" in result.stderr
    return result.stderr


def start(*arguments, **options):
    """The command in a process of its own, as a shell would run it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **options.pop("env", {})}
    command = [sys.executable, "-m", "labelkin", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes, **options)


def processor_seconds(*command, times=3):
    """The processor time of a command, the least of some runs, and what it printed.

    It grows by a multiple where other programs share caches and memory: compare it with that of another command.
    """
    resource = pytest.importorskip("resource", reason="Windows does not count the time of child processes")
    taken = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        told = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert told.returncode == 0, told.stderr
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken), told.stdout


def write_images(root, places, count=6):
    """`count` images of each digit, `root/place/*.png`, for `{digit: place}`."""
    from PIL import Image

    for digit, place in places.items():
        folder = root / place
        folder.mkdir(parents=True)
        for i, image in enumerate(PIXELS[FOUND.target == digit][:count]):
            Image.fromarray(image).save(folder / f"{i}.png")


def files_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def run_in(store, objective, seed=0):
    """The folder of the one run of an objective in a store."""
    (found,) = store.glob(f"{objective}-seed{seed}-*")
    return found
