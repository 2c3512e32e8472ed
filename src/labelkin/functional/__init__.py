"""The equations of all methods as pure functions on tensors. Losses are returned per sample; objectives reduce them."""

from labelkin.functional.adaptive import ClassSums, class_sums, label_distances, leave_one_out_means, repel
from labelkin.functional.baselines import huber_to_vectors, retrospection
from labelkin.functional.collectives import global_mean, global_sum, sum_over_processes, world_size
from labelkin.functional.cross_entropy import (
    confidence_penalty,
    cross_entropy,
    infogain,
    mixed_rows,
    smoothed_cross_entropy,
    soft_cross_entropy,
)
from labelkin.functional.hierarchical import (
    conditional_softmax,
    convex_hierarchical,
    hierarchical,
    hierarchical_cross_entropy,
)
from labelkin.functional.label_embedding import EmbeddingTerms, compressed_embedding, embedding_terms
from labelkin.functional.mixing import (
    bounded_eps,
    bounded_eps_inverse,
    class_penalty,
    led_matrix,
    log_barrier,
    matrix_penalty,
)
from labelkin.functional.tree import (
    TreeIndex,
    node_log_probs,
    path_sum,
    sibling_log_softmax,
    subtree_logsumexp,
    tree_index,
)

__all__ = [
    "ClassSums",
    "EmbeddingTerms",
    "TreeIndex",
    "bounded_eps",
    "bounded_eps_inverse",
    "class_penalty",
    "class_sums",
    "compressed_embedding",
    "conditional_softmax",
    "confidence_penalty",
    "convex_hierarchical",
    "cross_entropy",
    "embedding_terms",
    "global_mean",
    "global_sum",
    "hierarchical",
    "hierarchical_cross_entropy",
    "huber_to_vectors",
    "infogain",
    "label_distances",
    "leave_one_out_means",
    "led_matrix",
    "log_barrier",
    "matrix_penalty",
    "mixed_rows",
    "node_log_probs",
    "path_sum",
    "repel",
    "retrospection",
    "sibling_log_softmax",
    "smoothed_cross_entropy",
    "soft_cross_entropy",
    "subtree_logsumexp",
    "sum_over_processes",
    "tree_index",
    "world_size",
]
