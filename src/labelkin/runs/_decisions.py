"""The decisions of a run on its test set, one for each sample, and their outcomes in results files. Needs no torch."""

from __future__ import annotations

import io
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin._checks import counted, refuse_damaged
from labelkin._numpy_files import load_numpy

DECISIONS = "decisions.npz"
KINDS: dict[str, type[np.generic]] = {
    "target": np.int32,
    "answer": np.int32,
    "argmax": np.int32,
    "cost": np.float32,
    "argmax_cost": np.float32,
    "temperature": np.float64,
    "calibration_samples": np.int64,
}
SCALARS = ("temperature", "calibration_samples")
MOST_VALUES = 256  # costs with more different values are stored as float32


class Decisions(NamedTuple):
    """The calibrated decisions of a run for the n samples of its test set, in their order.

    Args:
        target: (n,) true classes, `int32`.
        answer: (n,) classes of least expected cost under the calibrated probabilities, `int32`.
        argmax: (n,) most probable classes, `int32`.
        cost: (n,) distances in the tree from the true class to `answer`, `float32`; NaN without a tree.
        argmax_cost: (n,) the same for `argmax`.
        temperature: The number that scores are divided by before the softmax; NaN if the scores are not probabilities and
            there were no samples to calibrate them on. `answer` is then `argmax`.
        calibration_samples: The number of samples that the temperature was fitted on; 0 if it was not fitted.

    Example:
        >>> import labelkin, tempfile
        >>> store = tempfile.mkdtemp()
        >>> run = labelkin.train("digits", out=f"{store}/run", epochs=1)
        >>> decisions = labelkin.runs.Store(store).records()[0].decisions()
        >>> decisions.answer.shape, decisions.cost.dtype
        ((359,), dtype('float32'))
    """

    target: npt.NDArray[np.int32]
    answer: npt.NDArray[np.int32]
    argmax: npt.NDArray[np.int32]
    cost: npt.NDArray[np.float32]
    argmax_cost: npt.NDArray[np.float32]
    temperature: float
    calibration_samples: int


def decisions_in(outputs: Mapping[str, Any]) -> tuple[Decisions | None, dict[str, Any]]:
    """Separate the decisions, if there are any, from the other outputs of a task, which keep the true classes."""
    if not all(name in outputs for name in Decisions._fields):
        return None, dict(outputs)
    found = {name: np.asarray(outputs[name]) for name in Decisions._fields}
    rest = {name: value for name, value in outputs.items() if name == "target" or name not in Decisions._fields}
    return _decisions(found), rest


def packed_decisions(decisions: Decisions) -> bytes:
    """Return the content of decisions.npz."""
    file = io.BytesIO()
    arrays: dict[str, Any] = {name: np.asarray(value, KINDS[name]) for name, value in decisions._asdict().items()}
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def read_decisions(folder: Path) -> Decisions | None:
    """Read the decisions of a run. Returns None if it has none."""
    path = folder / DECISIONS
    if not path.exists():
        return None
    remedy = "train the run again"
    arrays = load_numpy(path, remedy)
    with refuse_damaged(path, remedy):
        return _decisions({name: arrays[name] for name in Decisions._fields})


def _decisions(arrays: Mapping[str, npt.NDArray[Any]]) -> Decisions:
    """Convert arrays to the types of the fields; raises ValueError if their shapes do not fit."""
    samples = arrays["target"].shape
    for name, array in arrays.items():
        expected = () if name in SCALARS else samples
        if array.shape != expected or len(samples) != 1:
            raise ValueError(f"{name} has shape {array.shape}, expected {expected}")
    columns: dict[str, Any] = {name: array.astype(KINDS[name]) for name, array in arrays.items() if name not in SCALARS}
    return Decisions(
        **columns,
        temperature=float(arrays["temperature"]),
        calibration_samples=int(arrays["calibration_samples"]),
    )


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
