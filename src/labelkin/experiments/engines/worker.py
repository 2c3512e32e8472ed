"""A process that trains runs: a job a line on stdin, an event a line on stdout.

    python -m labelkin.experiments.engines.worker

It ends with the process that started it, even where that one was killed.
"""

import json
import os
import queue
import sys
import threading
from typing import TextIO

from labelkin.experiments.engines.attempt import Job, attempt
from labelkin.experiments.run import Bench


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the events
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin, jobs), daemon=True).start()
    bench: Bench | None = None
    try:
        while True:
            job = jobs.get()
            bench = bench if bench is not None and bench.serves(job.spec) else Bench(job.spec)
            event = attempt(job, bench)
            print(json.dumps({"kind": event.kind, "message": event.message}), file=answers, flush=True)
    except KeyboardInterrupt:
        os._exit(130)  # between runs nothing is left to save


def _listen(stdin: TextIO, jobs: "queue.SimpleQueue[Job]") -> None:
    """Hand on jobs until whoever sends them is gone; files are written whole, so that this may end a run at any moment."""
    for line in stdin:
        jobs.put(Job.from_dict(json.loads(line)))
    os._exit(0)


if __name__ == "__main__":
    main()
