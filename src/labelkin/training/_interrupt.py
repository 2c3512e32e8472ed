"""Ctrl-C (handled after the current step is saved) and NaN loss."""

import signal
import threading
from collections.abc import Callable
from time import monotonic
from types import FrameType
from typing import Any, Self

import torch

from labelkin._checks import InputError
from labelkin.functional import sum_over_processes, world_size

ASK_EVERY = 1.0  # approximate seconds between two times at which several processes agree on whether to stop
MOST_STEPS = 1000  # between two exchanges


class Interrupted(KeyboardInterrupt):
    """Raised after Ctrl-C, once the current step is saved.

    Example:
        >>> from labelkin.training import Interrupted
        >>> issubclass(Interrupted, KeyboardInterrupt)
        True
    """


class Diverged(InputError):
    """Raised if the loss becomes NaN or infinite.

    Example:
        >>> from labelkin import InputError
        >>> from labelkin.training import Diverged
        >>> issubclass(Diverged, InputError)
        True
    """


class StopAfterStep:
    """Turn the first Ctrl-C into a request to stop; a second Ctrl-C raises `KeyboardInterrupt` at once.

    Use it as a context manager around the loop, and call `agreed` after each step. With one process that only reads a Python
    attribute. Several processes must stop at the same step, so they exchange their answers with an all-reduce: after the first
    step, then about every `ASK_EVERY` seconds. The number of steps between two exchanges is computed from numbers that all
    processes share, so they always exchange at the same step.

    Args:
        clock: Returns the time in seconds.

    >>> with StopAfterStep() as stop:
    ...     stop.agreed(torch.device("cpu"))
    False
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.requested = False
        self._before: Any = None
        self._clock, self._last = clock, clock()
        self._interval = self._left = 1  # steps until the next exchange

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def agreed(self, device: torch.device, *, now: bool = False) -> bool:
        """Return whether to stop after this step; the same answer on every process.

        Args:
            device: Where processes exchange their answers.
            now: Whether to exchange them at once, as at the end of an epoch.
        """
        if world_size() == 1:
            return self.requested
        self._left -= 1
        if self._left > 0 and not now:
            return False
        steps, seconds = max(self._interval - self._left, 1), self._clock() - self._last
        own = torch.tensor([float(self.requested), seconds], device=device)
        requests, seconds = sum_over_processes(own).tolist()
        self._interval = min(max(round(steps * ASK_EVERY * world_size() / max(seconds, 1e-9)), 1), MOST_STEPS)
        self._left, self._last = self._interval, self._clock()
        return bool(requests)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
