"""Outcomes of the decisions of a run on each test sample, in a form that a results file can store."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin._checks import counted

if TYPE_CHECKING:
    from labelkin.runs._decisions import Decisions

MOST_VALUES = 256  # costs with more different values are stored as float32


class Outcomes(NamedTuple):
    """The outcomes on the n samples of a test set, in their order.

    Args:
        cost: (n,) cost of the decision on each sample; NaN without a tree.
        correct: (n,) whether the most probable class is the true one.
        samples: A digest of the true classes. Runs of one setting with the same digest were tested on the same samples.
        calibration_samples: The number of samples that the temperature was fitted on; 0 if it was not fitted.

    Example:
        >>> import numpy as np
        >>> from labelkin.runs import Outcomes
        >>> Outcomes(np.array([0.0, 2.0]), np.array([True, False]), "3f2a", 100).cost.mean()
        np.float64(1.0)
    """

    cost: npt.NDArray[np.float64]
    correct: npt.NDArray[np.bool_]
    samples: str
    calibration_samples: int


def outcomes_of(decisions: Decisions) -> Outcomes:
    """Return the outcomes of decisions."""
    return Outcomes(
        cost=decisions.cost.astype(np.float64),
        correct=decisions.argmax == decisions.target,
        samples=sha256(np.ascontiguousarray(decisions.target, dtype="<i4").tobytes()).hexdigest()[:16],
        calibration_samples=decisions.calibration_samples,
    )


def packed_outcomes(outcomes: Outcomes) -> dict[str, Any]:
    """Return outcomes as values for JSON. Costs in a tree have few values; 10,000 samples take about 3 KB."""
    values, places = np.unique(outcomes.cost, return_inverse=True)
    few = len(values) <= MOST_VALUES
    return {
        "n": len(outcomes.cost),
        "samples": outcomes.samples,
        "calibration_samples": outcomes.calibration_samples,
        "costs": [None if np.isnan(value) else float(value) for value in values] if few else None,
        "cost": _text(places.astype("u1") if few else outcomes.cost.astype("<f4")),
        "correct": _text(np.packbits(outcomes.correct)),
    }


def unpacked_outcomes(packed: Mapping[str, Any]) -> Outcomes:
    """Return the outcomes of `packed_outcomes`; raises ValueError if they are damaged."""
    count = int(packed["n"])
    if packed["costs"] is None:
        cost = np.frombuffer(_bytes(packed["cost"]), "<f4").astype(np.float64)
    else:
        values = np.array([np.nan if value is None else value for value in packed["costs"]], dtype=np.float64)
        cost = values[np.frombuffer(_bytes(packed["cost"]), "u1")]
    correct = np.unpackbits(np.frombuffer(_bytes(packed["correct"]), "u1"))[:count].astype(np.bool_)
    if len(cost) != count or len(correct) != count:
        raise ValueError(f"outcomes of {len(cost)} and {counted(len(correct), 'sample')}, expected {count}")
    return Outcomes(cost, correct, str(packed["samples"]), int(packed["calibration_samples"]))


def _text(array: npt.NDArray[Any]) -> str:
    return b64encode(zlib.compress(array.tobytes(), 9)).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return zlib.decompress(b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(f"outcomes cannot be decompressed ({error})") from error
