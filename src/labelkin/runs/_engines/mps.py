"""CUDA MPS: lets the kernels of several processes run on one GPU at the same time."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from labelkin._checks import InputError

CONTROL = "nvidia-cuda-mps-control"
PREFIX = "labelkin-mps-"  # of the folder with the pipes and the log of a daemon
PATIENCE = 30.0  # seconds for the daemon to start or to stop


@contextmanager
def cuda_mps() -> Iterator[dict[str, str]]:
    """Start a CUDA MPS daemon, yield the environment variables of its clients, and stop it.

    The daemon has its own pipes and log, so it is not shared with other users, and only this daemon is stopped, also after an
    error or Ctrl-C.

    Yields:
        Variables that let a process use the daemon.
    """
    control = _control()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        variables = {
            "CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(folder / "log"),
        }
        for path in variables.values():
            Path(path).mkdir()
        _start(control, variables)
        try:
            yield variables
        finally:
            _stop(control, variables)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _control() -> str:
    """Return the program that controls MPS; raise `InputError` if this machine cannot use it."""
    if not _has_gpu():
        raise InputError("--mps: expected an NVIDIA GPU, and torch finds none; leave --mps out.")
    control = shutil.which(CONTROL)
    if control is None:
        raise InputError(
            f"--mps: there is no {CONTROL} on the PATH; install it with the NVIDIA driver, or leave --mps out."
        )
    return control


def _has_gpu() -> bool:
    return torch.cuda.is_available() and torch.version.cuda is not None


def _start(control: str, variables: dict[str, str]) -> None:
    try:
        _call([control, "-d"], variables)
    except (subprocess.SubprocessError, OSError) as error:
        raise InputError(f"--mps: {CONTROL} cannot be started ({_reason(error)}); leave --mps out.") from error


def _stop(control: str, variables: dict[str, str]) -> None:
    """Stop the daemon; if it does not stop, kill its process, whose id is in its folder."""
    try:
        _call([control], variables, commands="quit\n")
    except (subprocess.SubprocessError, OSError):
        number = Path(variables["CUDA_MPS_PIPE_DIRECTORY"]) / f"{CONTROL}.pid"
        with suppress(OSError, ValueError):
            os.kill(int(number.read_text(encoding="ascii")), signal.SIGTERM)


def _call(command: list[str], variables: dict[str, str], *, commands: str = "") -> None:
    """Run the control program and wait for it; it has its own session, so that Ctrl-C does not reach it."""
    subprocess.run(
        command,
        input=commands,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=True,
        start_new_session=True,
    )


def _reason(error: Exception) -> str:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else None
    return (said or str(error)).strip().partition("\n")[0]
