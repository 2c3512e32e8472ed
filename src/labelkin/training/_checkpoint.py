"""The checkpoint protocol of the training loop, and the interval between saves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple, Protocol

SHARE = 0.05  # the largest share of its time that a run spends on saving
CHEAP = 0.1  # seconds; a save that took at most this long is due again at once


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

    Attributes:
        progress: JSON data with "epoch" (finished epochs), "step" (finished steps of the next epoch) and "history" (one row of
            metrics per finished epoch).
        tensors: Nested dicts and lists of tensors and plain values. Those of a finished run have no "optimizer".

    Example:
        >>> from labelkin.training import State
        >>> State({"epoch": 1, "step": 0, "history": []}, {"model": {}}).progress["epoch"]
        1
    """

    progress: dict[str, Any]
    tensors: Any


class Checkpoint(Protocol):
    """The interface of a checkpoint for `Trainer`; `RunFolder` implements it with a folder.

    With several processes, only the first one calls `save`, `record` and `finish`; all of them call `load`.

    Example:
        A checkpoint in memory:

        >>> from labelkin.training import Checkpoint, State
        >>> class InMemory:
        ...     state = None
        ...     def save(self, state): self.state = state
        ...     def load(self, *, clean): return self.state
        ...     def record(self, history): pass
        ...     def finish(self, model, metrics, outputs, *, seconds): pass
        >>> checkpoint: Checkpoint = InMemory()
        >>> checkpoint.save(State({"epoch": 1, "step": 0, "history": []}, {}))
        >>> checkpoint.load(clean=True).progress["epoch"]
        1
    """

    def save(self, state: State) -> None:
        """Replace the saved state; after a crash at any moment, `load` returns the old state or the new one."""
        ...

    def load(self, *, clean: bool) -> State | None:
        """Return the last saved state, or None if there is none.

        Args:
            clean: Whether to remove files of an interrupted `save`; true for one process only.
        """
        ...

    def record(self, history: Sequence[Mapping[str, float]]) -> None:
        """Store the metrics of all finished epochs; called after every epoch, even if no state is saved."""
        ...

    def finish(
        self, model: Mapping[str, Any], metrics: Mapping[str, float], outputs: Mapping[str, Any], *, seconds: float
    ) -> None:
        """Store the results of a finished run.

        Args:
            model: The state of the trained model.
            metrics: The final metrics; NaN where one is undefined.
            outputs: The model's outputs on the test set.
            seconds: The time spent training.
        """
        ...
