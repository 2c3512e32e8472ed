"""Train a run and report the outcome as an event; train runs one after another in this process."""

import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError, counted
from labelkin._extras import MissingExtra
from labelkin._files import is_full, write_text
from labelkin.runs._run_files import RunInUse
from labelkin.runs._spec import RunSpec
from labelkin.runs._train import train_run
from labelkin.runs._workspace import DataCache
from labelkin.training import Diverged, Progress, Silent

STOP = "stop"  # tells a worker to save its run and stop
CRASHED = 86  # the exit code of a worker whose GPU context an error of CUDA has made unusable
ERROR = "error.txt"  # the traceback of a run that failed, in its folder until it succeeds


class Job(NamedTuple):
    """A run to train and its folder."""

    title: str
    spec: RunSpec
    folder: Path

    def as_dict(self) -> dict[str, Any]:
        return {"title": self.title, "spec": self.spec.as_dict(), "folder": str(self.folder)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Job":
        return cls(values["title"], RunSpec.from_dict(values["spec"]), Path(values["folder"]))


class Event(NamedTuple):
    """The outcome of a job.

    `kind` is "finished", "busy" (another process trains the run), "retried", "failed", "refused" (bad input), "stopped" (by the
    user) or "full" (the disk).
    """

    job: Job
    kind: str
    message: str = ""


def train_job(job: Job, data: DataCache, progress: Callable[[int], Progress] = lambda steps: Silent()) -> Event:
    """Train or resume a run, and return the outcome instead of raising an error.

    Args:
        job: The run.
        data: Data sets that are already loaded; newly loaded ones are added.
        progress: Called with the number of steps per epoch; returns the object that shows them.
    """
    try:
        train_run(job.spec, job.folder, resume=True, workspace=data.workspace(job.spec), progress=progress)
    except (Exception, KeyboardInterrupt) as error:  # one failed run must not stop the others
        return event_after(job, error)
    return event_after(job, None)


def is_gpu_crash(event: Event) -> bool:
    """Return whether a run failed by an error of CUDA, after which its process cannot use the GPU.

    Under CUDA MPS the cause may be another process on the same GPU. Running out of memory is not such an error.
    """
    return event.kind == "failed" and event.message.startswith("CUDA error")


def event_after(job: Job, error: BaseException | None) -> Event:
    """Return the outcome of a run that ended with an error, or without one."""
    if error is None:
        _remove_traceback(job.folder / ERROR)
        return Event(job, "finished")
    if isinstance(error, KeyboardInterrupt):
        return Event(job, "stopped")
    if isinstance(error, RunInUse):
        return Event(job, "busy", str(error))
    if isinstance(error, Diverged):
        return Event(job, "failed", str(error))
    if isinstance(error, (InputError, MissingExtra)):
        return Event(job, "refused", str(error))
    if isinstance(error, OSError):
        return Event(job, "full" if is_full(error) else "failed", str(error))
    return Event(job, "failed", _write_traceback(job, error))


def _remove_traceback(path: Path) -> None:
    """Delete the traceback of an earlier attempt; a file of that name with other content is kept."""
    try:
        ours = path.read_bytes().startswith(b"Traceback")
    except FileNotFoundError:
        return
    if ours:
        path.unlink(missing_ok=True)


def _write_traceback(job: Job, error: BaseException) -> str:
    """Write the traceback to the run's folder and return a message that names the file."""
    message = (str(error).strip() or type(error).__name__).partition("\n")[0]
    try:
        write_text(job.folder / ERROR, "".join(traceback.format_exception(error)))
    except OSError:
        return message
    return f"{message} (see the traceback in {job.folder / ERROR})"


MAX_RETRIES = 3


class Retries:
    """Count how often the process of each run died."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def after_death(self, job: Job, how: str, *, most: int = MAX_RETRIES) -> Event:
        """Return a "retried" event, or "failed" if the process of the run died more than `most` times."""
        self.count[str(job.folder)] += 1
        if self.count[str(job.folder)] <= most:
            return Event(job, "retried", how)
        return Event(job, "failed", f"{how}, {counted(self.count[str(job.folder)], 'time')}; is there enough memory?")


def run_here(jobs: Iterator[Job], *, data: DataCache, progress: Callable[[str, int, int], Progress]) -> Iterator[Event]:
    """Train each job and yield its event. `data` holds the data sets that are already loaded."""
    for job in jobs:
        yield train_job(job, data, partial(progress, job.title, job.spec.settings.epochs))
