"""One run, tried once: whatever happens becomes an event that a process or a cluster can send home as text."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError
from labelkin._extras import MissingExtra
from labelkin._files import is_full, write_text
from labelkin.experiments.lock import RunInUse
from labelkin.experiments.run import Bench, train
from labelkin.experiments.spec import RunSpec
from labelkin.training import Diverged
from labelkin.training.progress import Progress, Silent

ERROR = "error.txt"  # the traceback of a run that failed, in its folder until it succeeds


class Job(NamedTuple):
    title: str
    spec: RunSpec
    folder: Path

    def as_dict(self) -> dict[str, Any]:
        return {"title": self.title, "spec": self.spec.as_dict(), "folder": str(self.folder)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Job":
        return cls(values["title"], RunSpec.from_dict(values["spec"]), Path(values["folder"]))


class Event(NamedTuple):
    """What became of a job: "finished", "busy" (another process trains it), "retried", "failed", "refused" (bad input),
    "stopped" (by the user) or "full" (the disk)."""

    job: Job
    kind: str
    message: str = ""


def attempt(job: Job, bench: Bench, progress: Callable[[int], Progress] = lambda steps: Silent()) -> Event:
    """Train the run, or go on with it."""
    try:
        train(job.spec, job.folder, resume=True, bench=bench, progress=progress)
    except RunInUse as error:
        return Event(job, "busy", str(error))
    except Diverged as error:
        return Event(job, "failed", str(error))
    except (InputError, MissingExtra) as error:
        return Event(job, "refused", str(error))
    except KeyboardInterrupt:
        return Event(job, "stopped")
    except OSError as error:
        return Event(job, "full" if is_full(error) else "failed", str(error))
    except Exception as error:  # one run's failure must not take the others down
        return Event(job, "failed", _noted(job, error))
    _remove_traceback(job.folder / ERROR)
    return Event(job, "finished")


def _remove_traceback(path: Path) -> None:
    """Delete the traceback of an earlier attempt; a file of that name with other content is kept."""
    try:
        ours = path.read_bytes().startswith(b"Traceback")
    except FileNotFoundError:
        return
    if ours:
        path.unlink(missing_ok=True)


def _noted(job: Job, error: Exception) -> str:
    """Keep the traceback beside the run, and say where."""
    said = (str(error).strip() or type(error).__name__).partition("\n")[0]
    try:
        write_text(job.folder / ERROR, "".join(traceback.format_exception(error)))
    except OSError:
        return said
    return f"{said} (all of it in {job.folder / ERROR})"
