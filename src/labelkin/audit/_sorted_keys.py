"""Sort more numbers than memory should hold: sorted runs in a temporary file, which are merged."""

import weakref
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

RUN = 2**18  # numbers that are sorted at a time
AT_ONCE = 2**14  # numbers of a run that are read at a time
Ints = npt.NDArray[np.int64]


class SortedKeys:
    """Collects whole numbers and yields them in ascending order."""

    def __init__(self) -> None:
        self._parts: list[Ints] = []
        self._waiting = 0
        self._runs: list[int] = []  # the length of each run in the file
        self._file: BinaryIO | None = None

    def add(self, keys: Ints) -> None:
        """Add numbers (m,)."""
        self._parts.append(keys)
        self._waiting += len(keys)
        if self._waiting >= RUN:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - it is open for as long as its numbers are used
            weakref.finalize(self, self._file.close)
        run = self._rest()
        self._file.write(run.data)
        self._runs.append(len(run))

    def _rest(self) -> Ints:
        """Return the numbers that are not in the file, sorted; after this there are none."""
        rest = np.concatenate([np.zeros(0, np.int64), *self._parts])
        self._parts, self._waiting = [], 0
        rest.sort()
        return rest

    def blocks(self) -> Iterator[Ints]:
        """Yield all numbers in ascending order, some at a time."""
        rest = self._rest()
        ends = np.cumsum([0, *self._runs])
        runs = [self._run(start, end) for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        runs.append(iter(np.split(rest, range(AT_ONCE, len(rest), AT_ONCE))))
        heads = [(head, run) for run in runs if len(head := next(run, rest[:0]))]
        while heads:
            safe = min(int(head[-1]) for head, _ in heads)  # no run has a lower number that is not read yet
            cuts = [int(np.searchsorted(head, safe, "right")) for head, _ in heads]
            yield np.sort(np.concatenate([head[:cut] for (head, _), cut in zip(heads, cuts, strict=True)]))
            left = ((head[cut:], run) for (head, run), cut in zip(heads, cuts, strict=True))
            heads = [(more, run) for head, run in left if len(more := head if len(head) else next(run, head))]

    def _run(self, start: int, end: int) -> Iterator[Ints]:
        assert self._file is not None
        for at in range(start, end, AT_ONCE):
            self._file.seek(at * 8)
            yield np.frombuffer(self._file.read(8 * (min(at + AT_ONCE, end) - at)), np.int64)
