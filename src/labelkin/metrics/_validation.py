"""Checks of the arguments of metrics: class positions, scores and probabilities (n, K), tables (K, K)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin import _arrays
from labelkin._arrays import check_class_positions
from labelkin._checks import InputError, counted, listed
from labelkin.structure import Taxonomy

Table = Tensor | npt.NDArray[np.floating] | Sequence[Sequence[float]]
Numbers = Tensor | npt.NDArray[np.floating] | Sequence[float]


def check_classes(argument: str, given: Tensor, classes: int | None = None, *, read_values: bool = True) -> None:
    """Check class positions (n,), from 0 to `classes - 1` if the number of classes is given."""
    if not isinstance(given, Tensor) or given.ndim != 1:
        scores = isinstance(given, Tensor) and given.ndim == 2
        hint = "; of scores, pass scores.argmax(-1)" if scores else ""
        raise InputError(
            f"{argument}: expected a tensor of shape (n,), one class per sample, got {_shape(given)}{hint}."
        )
    check_class_positions(argument, given, classes, read_values=read_values)


def check_pair(predicted: Tensor, target: Tensor, classes: int | None = None, *, read_values: bool = True) -> None:
    """Check one predicted and one true class per sample."""
    check_classes("predicted", predicted, classes, read_values=read_values)
    check_classes("target", target, classes, read_values=read_values)
    check_length("target", target, len(predicted), "the predictions")


def check_scores(
    argument: str, scores: Tensor, target: Tensor, classes: int | None = None, *, read_values: bool = True
) -> None:
    """Check scores (n, K) without NaN and one true class per row; K is checked if `classes` is given."""
    check_rows(argument, scores, read_values=read_values)
    if classes is not None and scores.shape[1] != classes:
        raise InputError(f"{argument}: expected one column for each of {classes} classes, got {scores.shape[1]}.")
    check_classes("target", target, scores.shape[1], read_values=read_values)
    check_length("target", target, len(scores), f"the rows of {argument}")


def check_rows(argument: str, rows: Tensor, *, read_values: bool = True) -> None:
    """Check floating-point numbers (n, K) without NaN."""
    if not isinstance(rows, Tensor) or rows.ndim != 2 or not rows.shape[1]:
        raise InputError(f"{argument}: expected a tensor of shape (n, K), one column per class, got {_shape(rows)}.")
    if not rows.dtype.is_floating_point:
        raise InputError(f"{argument}: expected floating-point numbers, got {rows.dtype}.")
    if not read_values or not rows.sum().isnan():  # the sum of numbers is NaN only with NaN or infinities among them
        return
    missing = rows.isnan()
    if missing.any():
        where = missing.any(-1).nonzero().flatten().tolist()
        raise InputError(
            f"{argument}: {int(missing.sum())} NaN in {len(where)} of {counted(len(rows), 'row')} ({listed(where)}); "
            "leave these samples out, or find their cause."
        )


def check_probs(probs: Tensor, target: Tensor, *, read_values: bool = True) -> None:
    """Check probabilities (n, K) and one true class per row."""
    check_scores("probs", probs, target, read_values=read_values)
    if read_values:
        _arrays.check_probs("probs", probs)


def check_taxonomy(given: object) -> None:
    if not isinstance(given, Taxonomy):
        raise InputError(f"taxonomy: expected a labelkin.Taxonomy, got {type(given).__name__}.")


def table(argument: str, given: Table, classes: int | None = None) -> Tensor:
    """Return a square table of finite numbers over the classes, in double precision."""
    found = _doubles(argument, given)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or classes not in (None, len(found)):
        size = "K x K" if classes is None else f"{classes} x {classes}"
        raise InputError(f"{argument}: expected a table of {size}, got shape {tuple(found.shape)}.")
    return found


def distance_table(argument: str, given: Table, classes: int | None = None) -> Tensor:
    """Return a table of distances: none is negative, and those of a class to itself are 0."""
    found = table(argument, given, classes)
    if (found < 0).any():
        raise InputError(f"{argument}: expected distances of 0 or more, got {float(found.min()):.3g}.")
    own = found.diagonal()
    if own.any():
        raise InputError(
            f"{argument}: expected 0 from each class to itself, got {float(own.max()):.3g} on the diagonal; "
            "if these are similarities, pass distances instead."
        )
    return found


def numbers(argument: str, given: Numbers, count: int | None = None) -> Tensor:
    """Return finite numbers (n,) in double precision."""
    found = _doubles(argument, given)
    if found.ndim != 1 or count not in (None, len(found)):
        size = "(n,)" if count is None else f"({count},)"
        raise InputError(f"{argument}: expected shape {size}, got {tuple(found.shape)}.")
    return found


def group_of_class(groups: Tensor | Sequence[int], classes: int) -> tuple[Tensor, int]:
    """Return the group of each class, renumbered from 0, and the number of groups."""
    try:
        given = torch.as_tensor(groups)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"groups: expected a group number for each class, got {groups!r:.60}.") from error
    check_classes("groups", given)
    if len(given) != classes:
        raise InputError(f"groups: expected the group of each of {classes} classes, got {len(given)}.")
    names, group = np.unique(given.cpu().numpy(), return_inverse=True)
    return torch.from_numpy(group), len(names)


def _doubles(argument: str, given: object) -> Tensor:
    try:
        found = torch.as_tensor(given, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{argument}: expected numbers, got {type(given).__name__} ({error}).") from error
    wrong = int((~found.isfinite()).sum())
    if wrong:
        raise InputError(f"{argument}: expected finite numbers, got {wrong} NaN or infinite of {found.numel()}.")
    return found


def check_length(argument: str, given: Tensor, count: int, like: str) -> None:
    if len(given) != count:
        raise InputError(f"{argument}: expected shape ({count},), like {like}, got {tuple(given.shape)}.")


def _shape(given: object) -> str:
    return f"shape {tuple(given.shape)}" if isinstance(given, Tensor) else type(given).__name__
