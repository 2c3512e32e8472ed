"""How often a run is saved: often enough to lose little when it is killed, rarely enough not to slow training."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

SHARE = 0.05  # the largest share of its time that a run spends on saving
CHEAP = 0.1  # seconds; a save that took less is always due again


class Pace:
    """Decide when to save: a save that took t seconds is due again t / `SHARE` seconds later, or at once if t <= `CHEAP`.

    Args:
        clock: Returns the time in seconds.

    >>> pace = Pace()
    >>> pace.due()  # nothing is saved yet
    True
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock, self._ended, self._cost = clock, clock(), 0.0

    def due(self) -> bool:
        """Return whether to save now."""
        return self._cost <= CHEAP or self._clock() - self._ended >= self._cost / SHARE

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Measure how long the save in this `with` block takes."""
        begun = self._clock()
        yield
        self._ended = self._clock()
        self._cost = self._ended - begun
