"""What ends training early: Ctrl-C, as a wish that is granted once the step in hand is saved, and a loss that is no number."""

import signal
import threading
from types import FrameType
from typing import Any, Self

from labelkin._checks import InputError


class Interrupted(KeyboardInterrupt):
    """Training was stopped by the user after a step; what is saved says where."""


class Diverged(InputError):
    """The loss is no number any more, so that going on is of no use."""


class StopAfterStep:
    """Within it, `asked` turns true on the first Ctrl-C."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
