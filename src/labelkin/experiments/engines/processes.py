"""Several runs at once, in processes that share the cores or one GPU. A process that dies is replaced and its run resumed."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

from labelkin.experiments.engines.attempt import Event, Job
from labelkin.experiments.engines.retries import Retries
from labelkin.training.interrupt import Interrupted, StopAfterStep


class Worker:
    """A process with at most one job in hand; what it says goes to `inbox`, None when it is gone."""

    def __init__(self, inbox: "queue.SimpleQueue[tuple[Worker, str | None]]") -> None:
        command = [sys.executable, "-m", "labelkin.experiments.engines.worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.job: Job | None = None
        self.inbox = inbox
        threading.Thread(target=self._listen, daemon=True).start()

    def give(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.job = job
        with suppress(BrokenPipeError):  # it died in between, which its end of output says as well
            self.process.stdin.write(json.dumps(job.as_dict()) + "\n")
            self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as said:
            for line in said:
                self.inbox.put((self, line))
        self.inbox.put((self, None))

    def end(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # where it died with a job on its way
            self.process.stdin.close()
        self.process.wait()


def run_in_processes(jobs: Iterator[Job], *, count: int) -> Iterator[Event]:
    """`count` runs at once. After Ctrl-C those in hand are saved, and no other is begun."""
    inbox: queue.SimpleQueue[tuple[Worker, str | None]] = queue.SimpleQueue()
    workers: list[Worker] = []
    retries, stopping = Retries(), False

    def begin(job: Job | None) -> None:
        if job is not None:
            workers.append(Worker(inbox))
            workers[-1].give(job)

    try:
        with StopAfterStep() as stop:
            for job in _first(jobs, count):
                begin(job)
            while any(worker.job for worker in workers):
                worker, line = _next(inbox)
                event = _heard(worker, line, retries)
                stopping = stopping or stop.asked or event.kind == "stopped"
                if line is None:
                    workers.remove(worker)
                    worker.end()
                if stopping:  # what is in hand is saved first
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
        for worker in workers:
            worker.end()


def _heard(worker: Worker, line: str | None, retries: Retries) -> Event:
    """What a worker says of the job in its hand, or what its silence means."""
    job, worker.job = worker.job, None
    assert job is not None, "a worker answers once a job"
    if line is None:
        return retries.after_death(job, f"its process ended with {worker.process.wait()}")
    return Event(job, **json.loads(line))


def _first(jobs: Iterator[Job], count: int) -> list[Job]:
    return [job for _, job in zip(range(count), jobs, strict=False)]


def _next(inbox: "queue.SimpleQueue[tuple[Worker, str | None]]") -> tuple[Worker, str | None]:
    while True:
        try:
            return inbox.get(timeout=1.0)  # in turns, so that Ctrl-C is heard
        except queue.Empty:
            continue
