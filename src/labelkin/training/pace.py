"""How often a run is saved: so often that little is lost with a kill, so seldom that training hardly waits for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

SHARE = 0.05  # of the time, at most, that a run spends on saving
CHEAP = 0.1  # seconds that nobody minds: such a save is always due


class Pace:
    """A save that took t seconds is due again t / SHARE seconds later, and at once if it was cheap."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock, self._ended, self._cost = clock, clock(), 0.0

    def due(self) -> bool:
        return self._cost <= CHEAP or self._clock() - self._ended >= self._cost / SHARE

    @contextmanager
    def saving(self) -> Iterator[None]:
        begun = self._clock()
        yield
        self._ended = self._clock()
        self._cost = self._ended - begun
