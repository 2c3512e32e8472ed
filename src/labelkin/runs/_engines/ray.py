"""Train runs on Ray: a local instance, or a cluster whose nodes share the store's file system."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.runs._engines.attempt import Event, Job, Retries, train_job
from labelkin.runs._workspace import DataCache

TOKEN = ".ray-"  # how the names of tokens begin


def run_on_ray(
    jobs: Iterator[Job], *, store: Path, count: int | None = None, address: str | None = None
) -> Iterator[Event]:
    """Train as many runs at once as Ray has cores or GPUs, or `count` of them, which share the GPUs.

    A run whose worker or node is lost resumes on another one from its last saved state.
    """
    ray: Any = require("ray", extra="ray", use="--engine ray")
    connected_here = _connect(ray, address)
    try:
        with _token(store.resolve()) as token:
            limit, gpus = _shares(ray, count)
            remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0, max_calls=0)(_train_on_node)
            yield from _drive(ray, remote, jobs, limit, token)
    finally:
        if connected_here:
            ray.shutdown()


@contextmanager
def _token(store: Path) -> Iterator[Path]:
    """Yield a file in the store that only nodes with the same file system have; it is locked while it is used."""
    from filelock import FileLock

    token = store / f"{TOKEN}{secrets.token_hex(8)}"
    with FileLock(token):
        token.touch()
        try:
            yield token
        finally:
            token.unlink(missing_ok=True)


def drop_lost_tokens(store: Path) -> None:
    """Delete the tokens of commands that were killed: nobody holds their locks."""
    from filelock import FileLock, Timeout

    for token in store.glob(f"{TOKEN}*"):
        with suppress(Timeout), FileLock(token, timeout=0):
            token.unlink(missing_ok=True)


def _connect(ray: Any, address: str | None) -> bool:
    """Connect to Ray or start it. Returns whether this call did so."""
    if ray.is_initialized():
        return False
    _check_reachable(address)
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # tasks that request no GPU can still see it
    try:
        ray.init(address=address, include_dashboard=False, log_to_driver=False, configure_logging=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(
            f"--address: there is no Ray at {address or 'this machine'} ({str(error).partition(chr(10))[0]})."
        ) from error
    return True


def _check_reachable(address: str | None) -> None:
    """Check that HOST:PORT accepts connections, because Ray itself takes minutes to give up."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise InputError(f"--address: there is no Ray at {address} ({error.strerror or error}).") from error


def _shares(ray: Any, count: int | None) -> tuple[int, float]:
    """Return how many runs to train at once, and the share of a GPU for each."""
    resources = ray.cluster_resources()
    gpus = resources.get("GPU", 0)
    limit = count or max(1, int(gpus or resources.get("CPU", 1)))
    return limit, min(1.0, gpus / limit) if gpus else 0


def _drive(ray: Any, remote: Any, jobs: Iterator[Job], limit: int, token: Path) -> Iterator[Event]:
    retries, running = Retries(), dict[Any, Job]()

    def submit(job: Job) -> None:
        running[remote.remote(job.as_dict() | {"folder": str(job.folder.resolve())}, str(token))] = job

    for _, job in zip(range(limit), jobs, strict=False):
        submit(job)
    while running:
        done, _ = ray.wait(list(running), num_returns=1, timeout=None)
        job = running.pop(done[0])
        try:
            event = Event(job, **ray.get(done[0]))
        except ray.exceptions.RayError as error:
            event = retries.after_death(job, f"its worker was lost ({type(error).__name__})")
        yield event
        again = job if event.kind == "retried" else next(jobs, None)
        if again is not None:
            submit(again)


def _train_on_node(values: dict[str, Any], token: str) -> dict[str, str]:
    """Train a job on a node and return its event as plain text."""
    if not Path(token).exists():
        folder = Path(token).parent
        reason = f"{folder}: a Ray node cannot read this folder; put the store on a file system that all nodes share."
        return {"kind": "refused", "message": reason}
    job = Job.from_dict(values)
    event = train_job(job, DataCache())
    return {"kind": event.kind, "message": event.message}
