"""Bidirectional logits tree (BiLT, Lu et al., 2025): classifiers from fine to coarse, and expected costs in the loss."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import check_choice, check_number
from labelkin.functional import cost_scores, cost_targets, cost_terms
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import Shared
from labelkin.objectives._tree import LeafObjective, grouped_target
from labelkin.objectives._tree_buffers import in_class_order
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

PRESETS = ("paper", "released")
SLOPE = 0.1  # of the leaky ReLU between two levels


class Level(NamedTuple):
    """The tree cut at a depth: its nodes, the cut tree, and the place in the level of each class."""

    nodes: tuple[int, ...]
    tree: Taxonomy
    of_class: Tensor  # (K,)


def levels_of(taxonomy: Taxonomy) -> list[Level]:
    """Return the levels from the classes up to the children of the root; a level of one node is left out.

    Level l has the nodes of depth l and the classes that lie higher.

    >>> levels_of(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))[1].of_class  # pet, pet, car
    tensor([0, 0, 1])
    """
    found = [Level(tuple(taxonomy.leaves.tolist()), taxonomy, torch.arange(len(taxonomy.leaves)))]
    for depth in range(int(taxonomy.depth.max()) - 1, 0, -1):
        nodes, place = np.unique(taxonomy.level(depth), return_inverse=True)
        if len(nodes) > 1:
            kept = np.flatnonzero(taxonomy.depth <= depth)  # parents come before children, also among these
            moved = np.full(len(taxonomy), -1)
            moved[kept] = np.arange(len(kept))
            parents = [-1, *moved[taxonomy.parents[kept[1:]]]]
            cut = Taxonomy(parents, [taxonomy.names[i] for i in kept], moved[nodes])
            found.append(Level(tuple(nodes.tolist()), cut, torch.from_numpy(place.reshape(-1))))
    return found


class LevelNorm(nn.BatchNorm1d):
    """Batch norm that uses its running statistics for a batch of one sample, which has no variance."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and len(x) == 1:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)


class LevelHead(nn.Linear):
    """A linear layer for the classes, followed by a small network for each coarser level that reads the finer logits."""

    def __init__(self, features: int, widths: Sequence[int], *, batch_norm: bool) -> None:
        super().__init__(features, widths[0])

        def norm(width: int) -> list[nn.Module]:
            return [LevelNorm(width)] if batch_norm else []

        self.coarser = nn.ModuleList(
            nn.Sequential(
                *norm(fine), nn.Linear(fine, coarse), *norm(coarse), nn.LeakyReLU(SLOPE), nn.Linear(coarse, coarse)
            )
            for fine, coarse in pairwise(widths)
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits (..., width) of all levels side by side, the classes first."""
        found = [super().forward(features).flatten(0, -2)]
        for net in self.coarser:
            found.append(net(found[-1]))
        return torch.cat(found, -1).reshape(*features.shape[:-1], -1)


class BiLT(LeafObjective):
    """Train classifiers of all levels with `sum_l exp(-alpha (h - l)) (CE(z_l, y_l) + CE(s_l, y~_l))` (Lu et al., 2025).

    Level h has the classes, level 1 the children of the root. The logits of a level are computed from those of the next finer
    one. `s = (beta Delta - D) p` scores a decision by its expected cost under `p = softmax(z)`, with D the distances in the
    tree and Delta learned, zero on the diagonal; `y~ = (1 - eps) e_y + eps softmax(-gamma D_y)`. Predictions
    use the scores of level h. Outputs are the logits of all levels side by side, from the classes up; a level also contains the
    leaves above it, so that every class has a place in every level. The probabilities are `softmax(s)`, which the loss trains;
    as s is at least minus the height of the tree, they are never near 1 unless Delta grows, and need a fitted temperature.

    Args:
        taxonomy: the tree of the classes.
        beta: weight of the learned corrections Delta.
        eps: share of the softened part of y~, from 0 to 1.
        gamma: how fast weights in y~ fall with distance, at least 0.
        alpha: how fast the weights of levels fall toward the root, at least 0.
        preset: `"paper"` is the loss above. `"released"` is the authors' code: rows of Delta have unit length, a one on the
            diagonal is added in s, and y~ is softened by `D - beta Delta`.
        batch_norm: normalize the logits between levels over the batch, as the authors do. Each process normalizes by its own
            samples, padding included; False leaves it out.
        distance: the kind of distance of D; see `Taxonomy.distance`.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also `cross_entropy` and `cost` of the classes and `coarser`, the weighted
        sum over the other levels.

    Example:
        >>> import torch
        >>> from labelkin import BiLT, Taxonomy
        >>> head = BiLT(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), features=4)
        >>> outputs = head(torch.randn(8, 4))
        >>> outputs.shape  # cat, dog, car; pet, car
        torch.Size([8, 5])
        >>> head.loss(outputs, torch.randint(3, (8,))).backward()
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        beta: float = 0.5,
        eps: float = 0.3,
        gamma: float = 0.3,
        alpha: float = 1.0,
        preset: str = "paper",
        batch_norm: bool = True,
        distance: DistanceKind = "height",
        classes: int | Sequence[str] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        check_number("beta", beta, low=0)
        check_number("eps", eps, low=0, high=1)
        check_number("gamma", gamma, low=0)
        check_number("alpha", alpha, low=0)
        check_choice("preset", preset, PRESETS)
        check_choice("distance", distance, DISTANCES)
        levels = levels_of(in_class_order(taxonomy, classes))
        widths = [len(level.nodes) for level in levels]
        super().__init__(taxonomy, classes=classes, _width=sum(widths), **shared)
        self.beta, self.eps, self.gamma, self.alpha = beta, eps, gamma, alpha
        self.preset, self.batch_norm, self.distance = preset, batch_norm, distance
        self.widths = widths
        self.shares = [math.exp(-alpha * (levels[0].tree.depth.max() - level.tree.depth.max())) for level in levels]
        if self.features is not None:
            self.head = LevelHead(self.features, widths, batch_norm=batch_norm)
        self.delta = nn.ParameterList(torch.full((width, width), 1 / width) for width in widths)
        for i, level in enumerate(levels):
            costs = torch.from_numpy(level.tree.distance(distance)).to(torch.get_default_dtype())
            self.register_buffer(f"costs_{i}", costs, persistent=False)
            self.register_buffer(f"of_class_{i}", level.of_class, persistent=False)

    def _level(self, i: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Return D, Delta and the softened targets of a level."""
        costs, of_level = self.get_buffer(f"costs_{i}").to(dtype), self.delta[i].to(dtype)
        own = torch.eye(len(costs), dtype=dtype, device=costs.device)
        delta = of_level * (1 - own)
        softened = costs
        if self.preset == "released":
            delta = F.normalize(delta, dim=-1)
            softened = costs - self.beta * delta.detach()
            delta = delta + own
        return costs, delta, cost_targets(softened, eps=self.eps, gamma=self.gamma)

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        weighted = []
        for i, logits in enumerate(torch.split(outputs, self.widths, -1)):
            costs, delta, targets = self._level(i, outputs.dtype)
            target = grouped_target(batch.target, self.get_buffer(f"of_class_{i}"), self.widths[i])
            terms = cost_terms(logits, target, costs, delta, targets, beta=self.beta)
            weighted.append((self.shares[i] * terms.hard, self.shares[i] * terms.cost))
        (hard, cost), *rest = weighted
        coarser = sum((a + b for a, b in rest), torch.zeros_like(hard))
        terms_by_name = {"cross_entropy": hard, "cost": cost, "coarser": coarser}
        total = self._reduce(hard + cost + coarser, batch)
        return Loss(total, {name: self._reduce(losses, batch) for name, losses in terms_by_name.items()})

    def log_probs(self, outputs: Tensor) -> Tensor:
        """Return the log-softmax (..., K) of the scores s of the classes."""
        logits = inputs.single(self, outputs)[..., : self.num_classes]
        costs, delta, _ = self._level(0, logits.dtype)
        with torch.autocast(logits.device.type, enabled=False):
            return F.log_softmax(cost_scores(logits, costs, delta, beta=self.beta), -1)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the costs with their learned corrections, (K, K) rows of `beta Delta - D`, or only the rows of `classes`."""
        costs, delta, _ = self._level(0, self.delta[0].dtype)
        return (self.beta * delta - costs).detach()[self._rows(classes)]

    def no_weight_decay(self) -> set[str]:
        return {f"delta.{i}" for i in range(len(self.delta))}
