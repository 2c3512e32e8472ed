"""The checkpoint protocol of the training loop, and how often it saves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple, Protocol

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


class State(NamedTuple):
    """Everything that training needs to continue after a step.

    `progress` is plain JSON data with "epoch" and "step", the number of finished epochs and of finished steps in the next
    one, and "history", a row for each finished epoch. `tensors` is nested dicts and lists of tensors and plain values.
    """

    progress: dict[str, Any]
    tensors: Any


class Checkpoint(Protocol):
    """What `Trainer` needs from the place that keeps a run; `RunFolder` keeps it in a folder.

    Of several processes only the first one calls `save`, `record` and `finish`; all of them call `load`.
    """

    def save(self, state: State) -> None:
        """Replace the saved state; after a crash at any moment, `load` returns the old state or the new one."""
        ...

    def load(self, *, clean: bool) -> State | None:
        """Return the last saved state, or None if there is none.

        Args:
            clean: Whether to remove what an interrupted `save` left behind; true for one process only.
        """
        ...

    def record(self, history: Sequence[Mapping[str, float]]) -> None:
        """Keep the metrics of all finished epochs for readers, whether or not a state is saved with them."""
        ...

    def finish(
        self, model: Mapping[str, Any], metrics: Mapping[str, float], outputs: Mapping[str, Any], *, seconds: float
    ) -> None:
        """Keep the results of a run that has ended.

        Args:
            model: The state of the trained model.
            metrics: The final metrics; NaN where one is undefined.
            outputs: The model's outputs on the test set.
            seconds: The time spent training.
        """
        ...
