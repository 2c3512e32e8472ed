"""A small set of classes with everything that objectives ask about them, and the same set under other names."""

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labelkin import Taxonomy

CLASSES = 6


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def generator(seed):
    return torch.Generator().manual_seed(seed)


@dataclass(frozen=True)
class World:
    """K classes: who is kin, the tree above them, and numbers that no two classes share. Class 2 is isolated."""

    names: tuple[str, ...]
    relation: Tensor  # (K, K)
    groups: Tensor  # (K,)
    taxonomy: Taxonomy  # leaves at depths 1, 2 and 3; an inner node with one child
    vectors: Tensor  # (K, 5)
    embedding: Tensor  # (K, K)
    eps: Tensor  # (K,)
    matrix: Tensor  # (K, K) mixed targets
    class_weight: Tensor  # (K,)

    def renamed(self, order: Tensor) -> "World":
        """Class `j` is what class `order[j]` was, and the nodes of the tree are numbered anew."""
        names = tuple(self.names[i] for i in order)
        return World(
            names=names,
            relation=self.relation[order][:, order],
            groups=self.groups[order],
            taxonomy=renumbered(self.taxonomy).reorder(names),
            vectors=self.vectors[order],
            embedding=self.embedding[order][:, order],
            eps=self.eps[order],
            matrix=self.matrix[order][:, order],
            class_weight=self.class_weight[order],
        )


def world(seed: int = 0) -> World:
    draw = generator(seed)

    def rand(*shape):
        return torch.rand(*shape, generator=draw, dtype=torch.float64)

    relation = rand(CLASSES, CLASSES).fill_diagonal_(0)
    relation[2] = 0
    relation /= relation.sum(-1, keepdim=True).clamp_min(1e-9)
    matrix = rand(CLASSES, CLASSES) + 2 * torch.eye(CLASSES, dtype=torch.float64)
    paths = ["live/pet/c0", "live/pet/c1", "live/c2", "made/road/c3", "made/c4", "c5"]
    return World(
        names=tuple(f"c{i}" for i in range(CLASSES)),
        relation=relation,
        groups=torch.tensor([0, 1, 2, 0, 1, 0]),
        taxonomy=Taxonomy.from_paths(paths),
        vectors=rand(CLASSES, 5) * 4 - 2,
        embedding=rand(CLASSES, CLASSES) * 3,
        eps=0.05 + 0.4 * rand(CLASSES),
        matrix=matrix / matrix.sum(-1, keepdim=True),
        class_weight=0.5 + rand(CLASSES),
    )


def renumbered(taxonomy: Taxonomy, seed: int = 0) -> Taxonomy:
    """The same tree with the nodes of each level shuffled."""
    shuffle = np.random.default_rng(seed).permutation(len(taxonomy))
    order = np.lexsort((shuffle, taxonomy.depth))  # the root stays first and parents before children
    place = np.argsort(order)
    parents = [-1, *place[taxonomy.parents[order[1:]]]]
    return Taxonomy(parents, [taxonomy.names[i] for i in order], place[taxonomy.leaves])
