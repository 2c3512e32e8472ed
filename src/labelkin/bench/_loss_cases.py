"""The fused losses that are timed, with their trees and class matrices."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin.bench import _references as references
from labelkin.functional import TreeIndex, kernels, tree_index
from labelkin.structure import Taxonomy

Loss = Callable[[Tensor, Tensor], Tensor]
FOLDERS = ("shared/data/trees", "../shared/data/trees", "../../shared/data/trees")
INAT_LEVELS = (3, 13, 51, 273, 1103, 4900, 10_000)  # nodes on each level below the root


class Case(NamedTuple):
    name: str
    batch: int
    width: int  # of the logits
    classes: int  # of the flat cross entropy it is compared with
    labels: Tensor  # the targets to draw from
    ours: Loss
    reference: Loss
    seed: int


Planned = tuple[str, int, Callable[[int], Case]]  # name, batch size, and a function that builds the case
TREE_LOSSES: dict[str, tuple[bool, Callable[..., Tensor], Callable[..., Tensor]]] = {  # on leaves, ours, reference
    "conditional softmax": (False, kernels.conditional_softmax, references.conditional_softmax),
    "convex hierarchical": (False, kernels.convex_hierarchical, references.convex_hierarchical),
    "hierarchical": (False, kernels.hierarchical, references.hierarchical),
    "HXE": (
        True,
        partial(kernels.hierarchical_cross_entropy, alpha=0.1),
        partial(references.hierarchical_cross_entropy, alpha=0.1),
    ),
    "cross entropy + ancestors": (
        True,
        partial(kernels.ancestors, weight=0.1, base=1.0),
        partial(references.ancestors, weight=0.1, base=1.0),
    ),
}
KINDS = ("dense", "scaled", "grouped", "ordinal", "sparse", "low-rank")


def cases(device: str, folder: Path | None, *, small: bool) -> Iterator[Planned]:
    """Yield all cases for a device; trees are read from the folder, or generated with the same size."""
    batches = (8,) if small else (256,) if device == "cpu" else (1024, 4096)
    sizes = (60, 130) if small else (1000, 10_000)
    for name in ("imagenet", "inat21"):
        taxonomy, label = _tree(name, folder, small)
        index: dict[str, TreeIndex] = {}
        for batch in batches:
            for loss in TREE_LOSSES:
                if loss == "hierarchical" and device == "cpu" and name == "imagenet":
                    continue  # unequal depths: the composed form is the only one on the CPU
                make = partial(_tree_case, loss, label, taxonomy, index, device)
                yield f"{loss}, {label}", batch, make
    for classes in sizes:
        for kind in KINDS:
            yield f"class targets, {kind}, K {classes}", batches[-1], partial(_class_case, kind, classes, device)


def _tree_case(loss: str, label: str, taxonomy: Taxonomy, index: dict[str, TreeIndex], device: str, batch: int) -> Case:
    if device not in index:
        index[device] = TreeIndex(*on_device(device, tree_index(taxonomy)))
    tree = index[device]
    on_leaves, ours, reference = TREE_LOSSES[loss]
    classes = len(taxonomy.leaves)
    width = classes if on_leaves else len(taxonomy) - 1
    taken = (partial(ours, tree=tree), partial(reference, tree=tree))
    return Case(f"{loss}, {label}", batch, width, classes, tree.leaves, *taken, seed=batch)


def _class_case(kind: str, classes: int, device: str, batch: int) -> Case:
    given = class_targets(kind, classes, device)
    ours = partial(kernels.class_target_cross_entropy, targets=given)
    reference = partial(references.class_target_cross_entropy, targets=given)
    labels = torch.arange(classes)
    return Case(f"class targets, {kind}, K {classes}", batch, classes, classes, labels, ours, reference, seed=classes)


def class_targets(kind: str, classes: int, device: str = "cpu") -> kernels.ClassTargets:
    """Return random targets of a kind; rows sum to 1, except for the low-rank kind."""
    draw = torch.Generator(device).manual_seed(classes)
    rand = partial(torch.rand, generator=draw, device=device)
    own = 0.5 + 0.4 * rand(classes)
    if kind == "dense":
        matrix = rand(classes, classes)
        return kernels.DenseTargets(matrix / matrix.sum(-1, keepdim=True))
    if kind == "scaled":
        matrix = rand(classes, classes)
        return kernels.ScaledTargets(matrix, (1 - own) / matrix.sum(-1), own)
    if kind == "grouped":
        group = torch.randint(max(1, classes // 10), (classes,), generator=draw, device=device).int()
        others = group.bincount()[group] - 1
        return kernels.GroupedTargets(group, own, (1 - own) / others.clamp_min(1), torch.zeros_like(own))
    if kind == "ordinal":
        gap = torch.arange(classes, device=device, dtype=torch.float32)
        by_gap = 1 / gap.clamp_min(1)
        running = by_gap.cumsum(0) - 1
        whole = running + running.flip(0)
        return kernels.OrdinalTargets(by_gap, (1 - own) / whole.clamp_min(1e-6), own)
    if kind == "sparse":
        count = min(classes, 16)
        columns = torch.stack([torch.randperm(classes, generator=draw, device=device)[:count] for _ in range(classes)])
        start = torch.arange(classes + 1, device=device) * count
        values = torch.full((classes * count,), 1 / count, device=device)
        return kernels.SparseTargets(start.int(), columns.flatten().int(), values)
    return kernels.LowRankTargets(rand(classes, 32) / classes, rand(classes, 32), own)


def _tree(name: str, folder: Path | None, small: bool) -> tuple[Taxonomy, str]:
    if small:
        return (_even((3, 9, 30)), "even tree") if name == "inat21" else (_ragged(60), "ragged tree")
    for place in [folder] if folder else map(Path, FOLDERS):
        if (place / f"{name}.csv").exists():
            return Taxonomy.load(place / f"{name}.csv"), name
    return (_even(INAT_LEVELS), "inat21-like") if name == "inat21" else (_ragged(1000), "imagenet-like")


def _even(levels: tuple[int, ...]) -> Taxonomy:
    """Return a random tree with the given number of nodes per level; all leaves are on the last level."""
    rng = np.random.default_rng(0)
    parents, begin, count = [-1], 0, 1
    for size in levels:
        above = np.concatenate([np.arange(count), rng.integers(count, size=size - count)])
        parents += (np.sort(above) + begin).tolist()
        begin, count = begin + count, size
    return Taxonomy(parents, [f"n{i}" for i in range(len(parents))])


def _ragged(leaves: int) -> Taxonomy:
    """Return a random tree whose leaves have different depths, in random class order."""
    rng = np.random.default_rng(0)
    parents, ends = [-1], [0]
    while len(ends) < leaves:
        node = ends.pop(int(rng.integers(len(ends))))
        width = min(int(rng.integers(2, 7)), leaves - len(ends))
        ends += range(len(parents), len(parents) + width)
        parents += [node] * width
    return Taxonomy(parents, [f"n{i}" for i in range(len(parents))], rng.permutation(ends))


def on_device(device: str, value: Any) -> Any:
    """Move a tensor, or the tensors of a tuple, to a device."""
    return tuple(on_device(device, part) for part in value) if isinstance(value, tuple) else value.to(device)


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Return the norm of the difference over the norm of what is expected, in float64."""
    return float((found.detach().double() - expected.detach()).norm() / expected.detach().norm())
