"""A linear head whose weights follow the tree: related classes share the vectors of the nodes above them."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin.functional import TreeIndex, path_sum, take
from labelkin.objectives._tree_buffers import TreeBuffers


class TreeLinear(nn.Module):
    """A linear layer with one vector per non-root node; the logit of a class adds up those on its path.

    With a path of L nodes, `z_y = sum_(a on the path of y) v_a . x / sqrt(L) + b_y`. The division gives the logits the
    variance at the start that `nn.Linear` gives them. With a flat tree, in which every path has one node, this is
    `nn.Linear`. Sums of vectors along a path are those of Dekel et al., "Large margin hierarchical classification" (2004).

    Args:
        features: Width of the features.
        index: The index arrays of the tree, in the order of the classes.

    Shapes: features (..., F) to logits (..., K); `weight` (N - 1, F) in the order of `taxonomy.names[1:]`, `bias` (K,).
    """

    def __init__(self, features: int, index: TreeIndex) -> None:
        super().__init__()
        self.in_features, self.out_features = features, len(index.leaves)
        self.weight = nn.Parameter(torch.empty(len(index.parent), features))
        self.bias = nn.Parameter(torch.empty(self.out_features))
        self.tree = TreeBuffers(index)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and biases as `nn.Linear` does."""
        bound = self.in_features**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, features: Tensor) -> Tensor:
        tree: TreeIndex = self.tree()
        of_nodes = F.linear(features, self.weight)
        of_nodes = of_nodes if of_nodes.dtype == torch.float64 else of_nodes.float()  # sums in bf16 would lose digits
        scale = tree.lengths[tree.leaves].to(of_nodes.dtype).rsqrt()
        return take(path_sum(of_nodes, tree), tree.leaves - 1) * scale + self.bias.to(of_nodes.dtype)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, nodes={len(self.weight)}"
