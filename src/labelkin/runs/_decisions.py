"""The decisions of a run on its test set, one for each sample. Needs no torch."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin._checks import refuse_damaged
from labelkin._numpy_files import load_numpy

DECISIONS = "decisions.npz"


class Decisions(NamedTuple):
    """The calibrated decisions of a run for the n samples of its test set, in their order.

    Args:
        target: (n,) true classes, `int32`.
        answer: (n,) classes of least expected cost under the calibrated probabilities, `int32`.
        argmax: (n,) most probable classes, `int32`.
        cost: (n,) distances in the tree from the true class to `answer`, `float32`; NaN without a tree.
        argmax_cost: (n,) the same for `argmax`.
        temperature: The number that scores are divided by before the softmax; NaN if the scores are no probabilities and
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
