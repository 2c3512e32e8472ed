"""Replace the class of some training samples by the node above it."""

import numpy as np
import torch

from labelkin._checks import InputError
from labelkin.data._dataset import RawDataset
from labelkin.data._partial import joined
from labelkin.data._splits import COARSE, class_counts, drawn


def with_coarse_labels(name: str, found: RawDataset, share: float, *, seed: int) -> RawDataset:
    """Replace a share of every class's training labels by the node above the class.

    A class directly below the root keeps its labels, because the root says nothing, and every class keeps one.
    """
    tree = found.taxonomy
    parents = None if tree is None else tree.parents[tree.leaves]
    if tree is None or parents is None or not (tree.parents[parents] >= 0).any():
        raise InputError(
            f"coarse_labels: expected data with a tree of groups, which {name} lacks; choose data that have one, or "
            "leave coarse_labels out."
        )
    counts = class_counts(found.train.targets, found.classes)
    quotas = np.minimum(np.rint(share * counts).astype(np.int64), counts - 1)
    quotas = np.where(tree.parents[parents] >= 0, quotas, 0)
    taken = drawn(found.train.targets, quotas, seed=seed, purpose=COARSE)
    return _moved(found, torch.from_numpy(taken)) if taken.any() else found


def _moved(found: RawDataset, coarse: torch.Tensor) -> RawDataset:
    """Replace the classes of some training samples by the nodes above them, which moves the samples to `partial`.

    Args:
        found: A dataset with a taxonomy.
        coarse: (n,) which training samples to move.
    """
    assert found.taxonomy is not None
    moved = found.train.take(torch.nonzero(coarse).flatten())
    parents = found.taxonomy.parents[found.taxonomy.leaves]
    above = [found.taxonomy.names[node] for node in parents[moved.targets.numpy()].tolist()]
    names = tuple(dict.fromkeys([*found.partial_names, *above]))
    place = {name: k for k, name in enumerate(names)}
    moved = moved.with_targets(torch.tensor([place[name] for name in above]))
    return found._replace(
        train=found.train.take(torch.nonzero(~coarse).flatten()),
        partial=moved if found.partial is None else joined(found.partial, moved),
        partial_names=names,
    )
