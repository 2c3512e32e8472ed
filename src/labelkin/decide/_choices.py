"""Limits on true classes and on answers: some classes, or all nodes below some nodes."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._arrays import class_positions
from labelkin._checks import InputError, listed, plain_names
from labelkin.decide._validation import check_probs
from labelkin.structure import Taxonomy

Names = str | int | Sequence[str | int]


def restrict(probs: Tensor, taxonomy: Taxonomy, to: Names) -> Tensor:
    """Return the probabilities given that the true class is below some nodes, or is one of some classes.

    Use it if other information narrows down the true class: the photo was taken in a barn, so the animal is livestock. All
    rules of `labelkin.decide` accept the result. To limit the answers only, while the true class may be any, use `allowed` of
    `least_cost` and `best_answer`.

    Args:
        probs: (n, K) probabilities of the classes.
        taxonomy: The tree.
        to: A node or a list of nodes, by name or index; a class is a node as well. The root changes nothing.

    Returns:
        (n, K) probabilities, 0 for all other classes. A sample that gives all allowed classes probability 0 gets equal
        probabilities for them.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> decide.restrict(torch.tensor([[0.1, 0.3, 0.6]]), tree, "animal")
        tensor([[0.2500, 0.7500, 0.0000]])
    """
    check_probs("probs", probs, len(taxonomy.leaves))
    inside = torch.from_numpy(nodes_below("to", taxonomy, to)[taxonomy.leaves]).to(probs.device)
    if bool(inside.all()):
        return probs
    kept = probs.double() * inside
    total = kept.sum(-1, keepdim=True)
    return torch.where(total > 0, kept / total, inside / inside.sum()).to(probs.dtype)


def nodes_below(argument: str, taxonomy: Taxonomy, names: Names) -> npt.NDArray[np.bool_]:
    """Return a mask (N,) of the given nodes and all nodes below them."""
    given = plain_names(names)
    chosen: list[Any] = [given] if isinstance(given, (str, int, np.integer)) else list(given)
    if not chosen:
        _nothing(argument)
    inside = np.zeros(len(taxonomy), dtype=np.bool_)
    for name in chosen:
        inside[taxonomy.subtree(name)] = True
    return inside


def allowed_answers(allowed: Sequence[str | int] | str, costs: object, answers: int) -> Tensor:
    """Return the positions of the allowed answers, ascending: given as positions, or as names of nodes of a taxonomy."""
    given = plain_names(allowed)
    chosen = [given] if isinstance(given, (str, int, np.integer)) else list(given)
    names = [name for name in chosen if isinstance(name, str)]
    if names and not isinstance(costs, Taxonomy):
        raise InputError(f"allowed: a matrix of costs has no names; pass class positions, not {listed(names)}.")
    if not chosen:
        _nothing("allowed")
    if not names:
        return torch.tensor(sorted(set(class_positions("allowed", chosen, answers, ndim=1).tolist())))
    if len(names) < len(chosen):
        raise InputError("allowed: expected class positions or names of nodes, got both.")
    assert isinstance(costs, Taxonomy)
    return torch.from_numpy(np.flatnonzero(nodes_below("allowed", costs, names)[costs.leaves]))


def _nothing(argument: str) -> NoReturn:
    raise InputError(f"{argument}: expected at least one node or class, got an empty list.")
