"""An ancestor of the most probable class where that class is unsure, and what it buys over all thresholds."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_number
from labelkin.decide.inputs import check_node_probs, check_target
from labelkin.structure import Taxonomy


class OperatingCurve(NamedTuple):
    """Means over samples (T,), in float64, a value a threshold; all lie from 0 to 1 and higher is better.

    - `specificity`: `1 - log(classes below the answer) / log(K)`, the share of the information of a class that the
      answer gives, right or wrong: 1 for a class, 0 for the root. It never rises with the threshold.
    - `correctness`: how often the answer is the true class or a node above it. It never falls with the threshold.
    - `leaf_share`: how often the answer is a class. It never rises with the threshold.
    """

    threshold: Tensor
    specificity: Tensor
    correctness: Tensor
    leaf_share: Tensor


def fallback(node_probs: Tensor, taxonomy: Taxonomy, threshold: float) -> Tensor:
    """(n,) the deepest node on the way down to the most probable class whose probability reaches `threshold`.

    `node_probs` (n, N) has a column a node, as `decide.node_probs` makes it. At a threshold of 0 the answer is the most
    probable class (the first of those that tie), and where no node reaches the threshold it is the root. A higher
    threshold gives the same node or one above it, so an answer that was right stays right. Nodes off that way are not
    considered, even if more probable: what is named is always an ancestor of what `argmax` would name.
    """
    check_node_probs("node_probs", node_probs, taxonomy)
    check_number("threshold", threshold, low=0, high=1)
    return _deepest(*_ways_down(node_probs, taxonomy), threshold)


def operating_curve(
    node_probs: Tensor, target: Tensor, taxonomy: Taxonomy, thresholds: Tensor | None = None
) -> OperatingCurve:
    """Specificity against correctness of `fallback` over `thresholds` (T,), or over 0, 0.01, ..., 1.

    `target` (n,) holds the positions of the true classes.
    """
    check_node_probs("node_probs", node_probs, taxonomy)
    check_target("target", target, len(node_probs), len(taxonomy.leaves))
    chosen = _checked_thresholds(thresholds)
    nodes, probs = _ways_down(node_probs, taxonomy)
    true = torch.from_numpy(taxonomy.paths[taxonomy.leaves[target.cpu().numpy()]]).to(nodes.device)
    depth, is_leaf, information = (
        torch.from_numpy(np.array(of_node)).to(nodes.device)
        for of_node in (taxonomy.depth, taxonomy.is_leaf, _information(taxonomy))
    )
    points = []
    for threshold in chosen.tolist():
        decided = _deepest(nodes, probs, threshold)
        right = true.gather(-1, depth[decided].unsqueeze(-1)).squeeze(-1) == decided
        points.append([of.double().mean() for of in (information[decided], right, is_leaf[decided])])
    return OperatingCurve(chosen, *torch.tensor(points, dtype=torch.float64).T)


def _ways_down(node_probs: Tensor, taxonomy: Taxonomy) -> tuple[Tensor, Tensor]:
    """(n, L) the nodes from the root to the most probable class, and their probabilities: -1 and -1 below it."""
    device = node_probs.device
    likely = node_probs[:, torch.from_numpy(taxonomy.leaves.copy()).to(device)].argmax(-1)
    nodes = torch.from_numpy(taxonomy.paths[taxonomy.leaves].copy()).to(device)[likely]
    probs = node_probs.gather(-1, nodes.clamp_min(0))
    return nodes, probs.masked_fill(nodes < 0, -1)


def _deepest(nodes: Tensor, probs: Tensor, threshold: float) -> Tensor:
    steps = torch.arange(nodes.shape[-1], device=nodes.device)
    last = torch.where(probs >= threshold, steps, 0).amax(-1, keepdim=True)
    return nodes.gather(-1, last).squeeze(-1)


def _information(taxonomy: Taxonomy) -> npt.NDArray[np.float64]:
    counts = taxonomy.is_leaf.astype(np.float64)
    for node in range(len(taxonomy) - 1, 0, -1):
        counts[taxonomy.parents[node]] += counts[node]
    information: npt.NDArray[np.float64] = 1 - np.log(counts) / np.log(len(taxonomy.leaves))
    return information


def _checked_thresholds(thresholds: Tensor | None) -> Tensor:
    if thresholds is None:
        return torch.arange(101, dtype=torch.float64) / 100
    chosen = torch.as_tensor(thresholds, dtype=torch.float64).cpu()
    if chosen.ndim != 1 or not len(chosen):
        raise InputError(f"thresholds: expected a list of numbers in [0, 1], got shape {tuple(chosen.shape)}.")
    for threshold in chosen.tolist():
        check_number("thresholds", threshold, low=0, high=1)
    return chosen
