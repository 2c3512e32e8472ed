"""002's appendix: the hierarchical loss by a loop over samples and nodes, and as tensors, both timed on this machine."""

from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor

from labelkin import functional
from labelkin.experiments.published import Table
from labelkin.experiments.reproduce.runs import Run
from labelkin.functional.tree import tree_index
from labelkin.structure import Taxonomy, catalogue

BATCH, REPEATS = 128, 3


def time_hierarchical(printed: Table) -> dict[str, dict[str, list[Run]]]:
    """Seconds for loss and gradient of a batch of 128 on CIFAR-10's tree, the least of three, under the printed rows."""
    tree = catalogue.taxonomy("cifar10")
    index = tree_index(tree)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(BATCH, len(tree) - 1, generator=generator, requires_grad=True)
    nodes = torch.tensor(tree.leaves)[torch.randint(len(tree.classes), (BATCH,), generator=generator)]
    found = {
        "over samples": _timed(lambda: hierarchical_by_loop(logits, nodes, tree).sum()),
        "tensors": _timed(lambda: functional.hierarchical(logits, nodes, index).sum()),
    }
    column = next(iter(printed.cells))
    return {column: {row: [Run(row, 0, {"seconds": seconds}, ())] for row, seconds in found.items()}}


def _timed(loss: Callable[[], Tensor]) -> float:
    spent = []
    for _ in range(REPEATS):
        begun = perf_counter()
        loss().backward()  # type: ignore[no-untyped-call]
        spent.append(perf_counter() - begun)
    return min(spent)


def hierarchical_by_loop(logits: Tensor, nodes: Tensor, tree: Taxonomy) -> Tensor:
    """002 Eq. 2 read aloud, a sample at a time: (n,)."""
    return torch.stack([_one(row, int(node), tree) for row, node in zip(logits, nodes, strict=True)])


def _one(logits: Tensor, node: int, tree: Taxonomy) -> Tensor:
    probability: dict[int, Tensor] = {}
    for children in tree.children:
        for child in children.tolist():
            total = sum((logits[other - 1].exp() for other in children.tolist()), torch.zeros(()))
            probability[child] = logits[child - 1].exp() / total
    marked = [above for above in tree.ancestors(node).tolist() if above != 0]
    loss = torch.zeros(())
    for child, p in probability.items():
        count = sum(child in tree.ancestors(m).tolist() for m in marked)
        if count:
            loss = loss - count * p.log()
    for inner in range(1, len(tree)):
        if not tree.is_leaf[inner]:
            reach = torch.ones(())
            for above in tree.ancestors(inner).tolist():
                reach = reach * probability[above] if above != 0 else reach
            loss = loss + reach
    return loss
