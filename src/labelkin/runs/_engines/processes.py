"""Train several runs at once in processes that share the cores or one GPU. If a process dies, a new one resumes its run."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from labelkin.runs._engines.attempt import CRASHED, ERROR, STOP, Event, Job, Retries
from labelkin.runs._engines.reported import Shown
from labelkin.runs._workspace import sharing
from labelkin.training import Interrupted, Progress, Silent, StopAfterStep

COMMAND = [sys.executable, "-m", "labelkin.runs._engines.worker"]


class Worker:
    """A process that trains one job at a time. Its output lines go to `inbox`, then None when it exits."""

    def __init__(
        self, inbox: "queue.SimpleQueue[tuple[Worker, str | None]]", environment: Mapping[str, str] | None = None
    ) -> None:
        # Ctrl-C reaches only this process, which passes it on through the pipe: a signal in the middle of the worker's imports
        # would end it with a traceback, and `kill -INT` on this process would not reach the worker at all.
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        self.job: Job | None = None
        self.asked_to_stop = False
        self.inbox = inbox
        threading.Thread(target=self._listen, daemon=True).start()

    def give(self, job: Job) -> None:
        self.job = job
        self._write(json.dumps(job.as_dict()))

    def stop(self) -> None:
        """Save the current run and stop."""
        self.asked_to_stop = True
        self._write(json.dumps(STOP))

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # the process died; the end of its output reports that
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):  # a process that dies may leave half a line
                    self.inbox.put((self, line))
        self.inbox.put((self, None))

    def end(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # the process died before it read the job
            self.process.stdin.close()
        self.process.wait()


def run_in_processes(
    jobs: Iterator[Job],
    *,
    count: int,
    environment: Mapping[str, str] | None = None,
    progress: Callable[[str, int, int], Progress] = lambda title, epochs, steps: Silent(),
) -> Iterator[Event]:
    """Train `count` runs at once. After Ctrl-C, current runs are saved and no others begin.

    The processes share one copy of each data set in memory; a GPU still gets a copy from each of them.

    Args:
        jobs: The runs.
        count: The number of processes.
        environment: Further environment variables of the processes.
        progress: Called with a run's title, epochs and steps per epoch; returns the object that shows them.
    """
    inbox: queue.SimpleQueue[tuple[Worker, str | None]] = queue.SimpleQueue()
    workers: list[Worker] = []
    shown: dict[Worker, Shown] = {}
    retries, stopping = Retries(), False

    def begin(job: Job | None) -> None:
        if job is not None:
            workers.append(Worker(inbox, environment))
            shown[workers[-1]] = Shown(progress)
            workers[-1].give(job)

    def forget(worker: Worker) -> None:
        workers.remove(worker)
        shown.pop(worker)
        worker.end()

    try:
        with sharing() as variables, StopAfterStep() as stop:
            environment = {**(environment or {}), **(variables if count > 1 else {})}
            for job in _first(jobs, count):
                begin(job)
            while any(worker.job for worker in workers):
                worker, line = _next(inbox, stop, workers)
                if line is not None and "kind" not in (report := json.loads(line)):
                    assert worker.job is not None, "a worker reports on its job"
                    shown[worker].take(worker.job, report)
                    continue
                shown[worker].end()
                if worker.job is None:  # it waited for the others to finish, and died
                    forget(worker)
                    continue
                event = _event(worker, line, retries)
                stopping = stopping or stop.requested or event.kind == "stopped"
                if line is None:
                    forget(worker)
                if stopping:  # current runs are saved first
                    if event.kind == "finished":
                        yield event
                    continue
                yield event
                if line is None:
                    begin(event.job if event.kind == "retried" else next(jobs, None))
                elif (following := next(jobs, None)) is not None:
                    worker.give(following)
            if stopping:
                raise Interrupted
    finally:
        for display in shown.values():
            display.end()
        for worker in workers:
            worker.end()


def _event(worker: Worker, line: str | None, retries: Retries) -> Event:
    """Return the event for a worker's current job; `line` is None if the worker exited."""
    job, worker.job = worker.job, None
    assert job is not None, "a worker answers once per job"
    if line is None:
        code = worker.process.wait()
        if code == CRASHED:
            return retries.after_death(job, f"the GPU failed (see the traceback in {job.folder / ERROR})", most=1)
        return retries.after_death(job, f"its process ended with {code}")
    return Event(job, **json.loads(line))


def _first(jobs: Iterator[Job], count: int) -> list[Job]:
    return [job for _, job in zip(range(count), jobs, strict=False)]


def _next(
    inbox: "queue.SimpleQueue[tuple[Worker, str | None]]", stop: StopAfterStep, workers: list[Worker]
) -> tuple[Worker, str | None]:
    """Return the next line of a worker. After Ctrl-C, ask each worker once to stop."""
    while True:
        if stop.requested:
            for worker in workers:
                if not worker.asked_to_stop:
                    worker.stop()
        try:
            return inbox.get(timeout=0.2)  # wake up regularly so that Ctrl-C is noticed
        except queue.Empty:
            continue
