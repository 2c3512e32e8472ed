"""What decisions refuse: logits called probabilities, rows that don't sum to 1, targets that are no classes."""

import torch
from torch import Tensor

from labelkin import _arrays
from labelkin._arrays import check_class_positions, sum_tolerance
from labelkin._checks import InputError
from labelkin.structure import Taxonomy


def check_probs(argument: str, probs: Tensor, classes: int | None = None) -> None:
    """Refuse what is not (n, K) with n >= 1, finite, not negative, and 1 in the sum of every row."""
    check_table(argument, probs, classes, "a row a sample and a column a class")
    _arrays.check_probs(argument, probs)


def check_node_probs(argument: str, probs: Tensor, taxonomy: Taxonomy) -> None:
    """Refuse what is not (n, N), 1 at the root and nowhere above the node's parent."""
    check_table(argument, probs, len(taxonomy), "a row a sample and a column a node, the root first")
    low, root, slack = float(probs.min()), probs[:, 0].double(), sum_tolerance(probs.dtype, len(taxonomy.leaves))
    if low < 0 or bool(((root - 1).abs() > slack).any()):
        raise InputError(
            f"{argument}: expected probabilities that are 1 at the root (column 0), got a least value of {low:.4g} and "
            f"{float(root.min()):.4g} to {float(root.max()):.4g} at the root; node_probs() makes them from leaves."
        )
    above = torch.from_numpy(taxonomy.parents[1:].copy()).to(probs.device)
    excess = (probs[:, 1:] - probs[:, above]).amax(0)
    if float(excess.max()) > slack:
        node = int(excess.argmax()) + 1
        raise InputError(
            f"{argument}: node {taxonomy.names[node]!r} is more probable than {taxonomy.names[int(above[node - 1])]!r} "
            "above it; expected the probability of each node, not that given its parent."
        )


def check_logits(argument: str, logits: Tensor) -> None:
    check_table(argument, logits, None, "a row a sample and a column a class")


def check_target(argument: str, target: Tensor, samples: int, classes: int) -> None:
    check_class_positions(argument, target, classes, shape=(samples,))


def check_table(argument: str, values: Tensor, columns: int | None, meaning: str) -> None:
    """A finite, floating-point table with a row and two columns at least, or with as many columns as are named."""
    width = "K" if columns is None else columns
    if not isinstance(values, Tensor) or not values.is_floating_point():
        kind = values.dtype if isinstance(values, Tensor) else type(values).__name__
        raise InputError(f"{argument}: expected a tensor of floating-point numbers, got {kind}.")
    fits = values.ndim == 2 and (values.shape[1] >= 2 if columns is None else values.shape[1] == columns)
    if not fits:
        raise InputError(f"{argument}: expected shape (n, {width}), {meaning}, got {tuple(values.shape)}.")
    if not len(values):
        raise InputError(f"{argument}: expected one sample at least, got an empty batch.")
    bad = values.numel() - int(torch.isfinite(values).sum())
    if bad:
        raise InputError(f"{argument}: expected finite numbers, got {bad} NaN or infinite ones.")
