"""Fused losses: one pass forward and one pass backward, with Triton on CUDA and closed forms on the CPU.

The functions have the names and results of those in `labelkin.functional`. `fits` returns whether a call can use them.
Importing this package needs neither Triton nor CUDA.
"""

from labelkin.functional._kernels.chunks import add_product, dtype_of, linear_layer, scale, split_rows
from labelkin.functional._kernels.classes import (
    ClassTargets,
    DenseTargets,
    GroupedTargets,
    LowRankTargets,
    OrdinalTargets,
    ScaledTargets,
    SparseTargets,
    class_target_cross_entropy,
    classes_pay,
    fits_classes,
    sparse_targets,
)
from labelkin.functional._kernels.convolution import (
    MOST_MEMBER_CHANNELS,
    convolution_for_fleets,
    has_member_convolution,
    member_convolution,
)
from labelkin.functional._kernels.cpu_embedding import Options as EmbeddingOptions
from labelkin.functional._kernels.embedding import embedding_with_gradients
from labelkin.functional._kernels.index import PathIndex, path_index
from labelkin.functional._kernels.losses import (
    ancestors,
    conditional_softmax,
    convex_hierarchical,
    fits,
    fits_hierarchical,
    hierarchical,
    hierarchical_cross_entropy,
)

__all__ = [
    "MOST_MEMBER_CHANNELS",
    "ClassTargets",
    "DenseTargets",
    "EmbeddingOptions",
    "GroupedTargets",
    "LowRankTargets",
    "OrdinalTargets",
    "PathIndex",
    "ScaledTargets",
    "SparseTargets",
    "add_product",
    "ancestors",
    "class_target_cross_entropy",
    "classes_pay",
    "conditional_softmax",
    "convex_hierarchical",
    "convolution_for_fleets",
    "dtype_of",
    "embedding_with_gradients",
    "fits",
    "fits_classes",
    "fits_hierarchical",
    "has_member_convolution",
    "hierarchical",
    "hierarchical_cross_entropy",
    "linear_layer",
    "member_convolution",
    "path_index",
    "scale",
    "sparse_targets",
    "split_rows",
]
