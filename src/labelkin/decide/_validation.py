"""Checks of the arguments of decisions: probabilities, logits, targets."""

import torch
from torch import Tensor

from labelkin import _arrays
from labelkin._arrays import check_class_positions, sum_tolerance
from labelkin._checks import InputError
from labelkin.structure import Taxonomy


def check_probs(argument: str, probs: Tensor, classes: int | None = None) -> None:
    """Check probabilities (n, K): at least one row, finite, not negative, rows that sum to 1."""
    check_table(argument, probs, classes, "one row per sample and one column per class")
    _arrays.check_probs(argument, probs)


def check_node_probs(argument: str, probs: Tensor, taxonomy: Taxonomy) -> None:
    """Check probabilities (n, N) of nodes: 1 at the root, and none larger than that of the parent."""
    check_table(argument, probs, len(taxonomy), "one row per sample and one column per node, the root first")
    probs = probs.detach()
    low, root, slack = float(probs.min()), probs[:, 0].double(), sum_tolerance(probs.dtype, len(taxonomy.leaves))
    if low < 0 or bool(((root - 1).abs() > slack).any()):
        raise InputError(
            f"{argument}: expected probabilities that are 1 at the root (column 0), got a minimum of {low:.4g} and "
            f"{float(root.min()):.4g} to {float(root.max()):.4g} at the root; use node_probs() to compute them."
        )
    above = torch.from_numpy(taxonomy.parents[1:].copy()).to(probs.device)
    excess = (probs[:, 1:] - probs[:, above]).amax(0)
    if float(excess.max()) > slack:
        node = int(excess.argmax()) + 1
        raise InputError(
            f"{argument}: node {taxonomy.names[node]!r} is more probable than {taxonomy.names[int(above[node - 1])]!r} "
            "above it; expected unconditional probabilities of the nodes, not those given their parents."
        )


def check_logits(argument: str, logits: Tensor) -> None:
    """Check finite logits (n, K)."""
    check_table(argument, logits, None, "one row per sample and one column per class")


def check_target(argument: str, target: Tensor, samples: int, classes: int) -> None:
    """Check class positions (n,)."""
    check_class_positions(argument, target, classes, shape=(samples,))


def check_table(argument: str, values: Tensor, columns: int | None, meaning: str) -> None:
    """Check a finite floating-point table with at least one row, and with `columns` columns (at least two if None)."""
    width = "K" if columns is None else columns
    if not isinstance(values, Tensor) or not values.is_floating_point():
        kind = values.dtype if isinstance(values, Tensor) else type(values).__name__
        raise InputError(f"{argument}: expected a tensor of floating-point numbers, got {kind}.")
    fits = values.ndim == 2 and (values.shape[1] >= 2 if columns is None else values.shape[1] == columns)
    if not fits:
        raise InputError(f"{argument}: expected shape (n, {width}), {meaning}, got {tuple(values.shape)}.")
    if not len(values):
        raise InputError(f"{argument}: expected at least one sample, got an empty batch.")
    bad = values.numel() - int(torch.isfinite(values).sum())
    if bad:
        raise InputError(f"{argument}: expected finite numbers, got {bad} NaN or infinite numbers.")
