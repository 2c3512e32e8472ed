"""What a tree loss costs beside flat cross entropy: forward and backward, medians, as ratios inside one run.

    python benchmarks/tree_losses.py TREE... [--batch 4096] [--compile]     TREE: a taxonomy file, such as parent,child edges

The floor is reading and writing the node logits once.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin import functional
from labelkin.structure import Taxonomy
from labelkin.structure.named import load_tree

LOSSES: dict[str, Callable[..., Tensor]] = {
    "conditional softmax": functional.conditional_softmax,
    "hierarchical": functional.hierarchical,
    "convex hierarchical": functional.convex_hierarchical,
    "convex, soft off path": lambda x, y, tree: functional.convex_hierarchical(x, y, tree, soft_off_path=True),
    "HXE": lambda x, y, tree: functional.hierarchical_cross_entropy(x, y, tree, alpha=0.1),
}


def on(device: str, value):
    return tuple(on(device, part) for part in value) if isinstance(value, tuple) else value.to(device)


def seconds(step: Callable[[], object], device: str, repeats: int) -> float:
    """The median of `repeats` after three to warm up."""
    taken = []
    for _ in range(repeats + 3):
        if device == "cuda":
            torch.cuda.synchronize()
        begun = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[3:])


def step_of(loss: Callable[[Tensor], Tensor], logits: Tensor) -> Callable[[], object]:
    return lambda: torch.autograd.grad(loss(logits).mean(), logits)


def measure(taxonomy: Taxonomy, batch: int, device: str, repeats: int, compiled: bool) -> None:
    index = functional.TreeIndex(*on(device, functional.tree_index(taxonomy)))
    draw = torch.Generator().manual_seed(0)
    target = torch.randint(len(taxonomy.leaves), (batch,), generator=draw).to(device)
    leaf_logits = torch.randn(batch, len(taxonomy.leaves), generator=draw).to(device).requires_grad_()
    node_logits = torch.randn(batch, len(taxonomy) - 1, generator=draw).to(device).requires_grad_()
    flat = seconds(step_of(lambda x: F.cross_entropy(x, target, reduction="none"), leaf_logits), device, repeats)
    spare = torch.empty_like(node_logits)
    floor = seconds(lambda: spare.copy_(node_logits.detach()), device, repeats)
    print(f"{taxonomy!r}, batch {batch}, {device}: flat {1e6 * flat:.0f} us, floor {1e6 * floor:.0f} us")
    nodes = index.leaves[target]
    for name, loss in LOSSES.items():
        if compiled:
            torch._dynamo.reset()
        taken = torch.compile(loss, fullgraph=True) if compiled else loss
        logits = leaf_logits if name == "HXE" else node_logits
        cost = seconds(step_of(lambda x, taken=taken: taken(x, nodes, index), logits), device, repeats)
        print(f"  {name:24s} {1e6 * cost:9.0f} us  {cost / flat:6.1f} x flat  {cost / floor:6.1f} x floor", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for tree in given.trees:
        measure(load_tree(tree), given.batch, device, given.repeats, given.compile)


if __name__ == "__main__":
    main()
