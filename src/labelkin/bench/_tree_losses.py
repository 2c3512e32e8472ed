"""Time of tree losses compared with flat cross entropy: forward and backward, as ratios within one run."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin import functional
from labelkin._checks import check_count
from labelkin.bench._loss_cases import on_device
from labelkin.bench._measure import Machine, Timing, machine, timed
from labelkin.structure import Taxonomy, load_tree

LOSSES: dict[str, Callable[..., Tensor]] = {
    "conditional softmax": functional.conditional_softmax,
    "hierarchical": functional.hierarchical,
    "convex hierarchical": functional.convex_hierarchical,
    "convex hierarchical, soft off path": partial(functional.convex_hierarchical, soft_off_path=True),
    "hierarchical cross entropy (HXE)": partial(functional.hierarchical_cross_entropy, alpha=0.1),
}
ON_LEAVES = "hierarchical cross entropy (HXE)"


class TreeLosses(NamedTuple):
    """Times of the tree losses, of flat cross entropy, and of reading and writing the node logits once.

    Example:
        >>> from labelkin.bench import time_tree_losses
        >>> found = time_tree_losses("cifar10", batch=4, repeats=1)
        >>> found.times_flat("hierarchical") > 0
        True
    """

    tree: str
    nodes: int
    classes: int
    batch: int
    compiled: bool
    machine: Machine
    flat: Timing  # F.cross_entropy on the leaves
    floor: Timing  # reading and writing the node logits once
    losses: dict[str, Timing]

    def times_flat(self, loss: str) -> float:
        """Return the time of a loss as a multiple of flat cross entropy."""
        return self.losses[loss].median / self.flat.median

    def times_floor(self, loss: str) -> float:
        """Return the time of a loss as a multiple of reading and writing the node logits."""
        return self.losses[loss].median / self.floor.median


def time_tree_losses(tree: str, *, batch: int = 4096, repeats: int = 20, compiled: bool = False) -> TreeLosses:
    """Time tree losses, on a GPU if there is one.

    Args:
        tree: A shipped taxonomy or a file.
        batch: Number of samples.
        repeats: Number of calls; the median is reported.
        compiled: Compile the losses with `torch.compile`.

    Returns:
        The times.

    Example:
        >>> from labelkin.bench import time_tree_losses
        >>> time_tree_losses("cifar10", batch=4, repeats=1).classes
        10
    """
    for argument, value in (("batch", batch), ("repeats", repeats)):
        check_count(argument, value)
    taxonomy = load_tree(tree)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    measure = partial(timed, repeats=repeats, warm_up=3, clock=time.perf_counter, wait=wait)
    leaf_logits, node_logits, target = _made(taxonomy, batch, device)
    index = functional.TreeIndex(*on_device(device, functional.tree_index(taxonomy)))
    nodes, spare = index.leaves[target], torch.empty_like(node_logits)
    losses = {}
    for name, loss in LOSSES.items():
        logits = leaf_logits if name == ON_LEAVES else node_logits
        losses[name] = measure(_step(partial(_taken(loss, compiled), target=nodes, tree=index), logits))
    return TreeLosses(
        tree,
        len(taxonomy),
        len(taxonomy.leaves),
        batch,
        compiled,
        machine(device),
        measure(_step(lambda x: F.cross_entropy(x, target, reduction="none"), leaf_logits)),
        measure(lambda: spare.copy_(node_logits.detach())),
        losses,
    )


def tree_losses_as_dict(found: TreeLosses) -> dict[str, Any]:
    """Return the results as plain values for JSON."""
    losses = {
        name: {**timing._asdict(), "times_flat": found.times_flat(name), "times_floor": found.times_floor(name)}
        for name, timing in found.losses.items()
    }
    return {
        "benchmark": "tree-losses",
        **found._asdict(),
        "machine": found.machine._asdict(),
        "flat": found.flat._asdict(),
        "floor": found.floor._asdict(),
        "losses": losses,
    }


def _made(taxonomy: Taxonomy, batch: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    target = torch.randint(len(taxonomy.leaves), (batch,), generator=draw).to(device)
    leaf_logits = torch.randn(batch, len(taxonomy.leaves), generator=draw).to(device).requires_grad_()
    node_logits = torch.randn(batch, len(taxonomy) - 1, generator=draw).to(device).requires_grad_()
    return leaf_logits, node_logits, target


def _taken(loss: Callable[..., Tensor], compiled: bool) -> Callable[..., Tensor]:
    if not compiled:
        return loss
    torch._dynamo.reset()
    return torch.compile(loss, fullgraph=True)


def _step(loss: Callable[[Tensor], Tensor], logits: Tensor) -> Callable[[], object]:
    return lambda: torch.autograd.grad(loss(logits).mean(), logits)
