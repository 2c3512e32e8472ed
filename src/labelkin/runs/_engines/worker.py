"""A process that trains runs. It reads one job per line from stdin and writes reports of its progress and one event to stdout.

    python -m labelkin.runs._engines.worker

It exits when the process that started it ends, even if that one was killed.
"""

import _thread
import json
import os
import queue
import sys
import threading
import warnings
from functools import partial
from typing import Any, TextIO

from labelkin._checks import InputError, print_note
from labelkin.runs._engines.attempt import CRASHED, STOP, Job, is_gpu_crash, train_job
from labelkin.runs._engines.reported import Reporter
from labelkin.runs._workspace import DataCache

ELSEWHERE = "Another process does not know what a script has defined; train such runs one at a time (--jobs 1)."


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # keep the output of libraries separate from the events
    jobs: queue.SimpleQueue[Job | InputError] = queue.SimpleQueue()
    data = DataCache(limit=1)
    warnings.showwarning = print_note

    def tell(value: dict[str, Any]) -> None:
        print(json.dumps(value), file=answers, flush=True)

    try:
        threading.Thread(target=_listen, args=(sys.stdin, jobs), daemon=True).start()
        while True:
            job = jobs.get()
            if isinstance(job, InputError):
                tell({"kind": "refused", "message": f"{job} {ELSEWHERE}"})
                continue
            event = train_job(job, data, partial(Reporter, tell))
            if is_gpu_crash(event):
                os._exit(CRASHED)  # a new process resumes the run
            tell({"kind": event.kind, "message": event.message})
    except KeyboardInterrupt:
        os._exit(130)  # nothing needs saving between runs


def _listen(stdin: TextIO, jobs: "queue.SimpleQueue[Job | InputError]") -> None:
    """Queue jobs until stdin closes, then exit. Files are written atomically, so a run may be stopped at any moment."""
    for line in stdin:
        asked = json.loads(line)
        if asked == STOP:
            _thread.interrupt_main()  # as Ctrl-C does
        else:
            try:
                jobs.put(Job.from_dict(asked))
            except InputError as error:  # without an answer, the process that asked would wait forever
                jobs.put(error)
    os._exit(0)


if __name__ == "__main__":
    main()
