"""The equations of all methods as pure functions on tensors. Losses are returned per sample; objectives reduce them."""

from labelkin.functional import _kernels as kernels  # noqa: F401  (for benchmarks; not part of the public interface)
from labelkin.functional._adaptive import (
    ClassSums,
    anchored_labels,
    class_sums,
    label_distances,
    leave_one_out_means,
    moved_rows,
    repel,
    running_means,
)
from labelkin.functional._adaptive import distance_to as distance_to
from labelkin.functional._adaptive import sum_by_class as sum_by_class
from labelkin.functional._bilt import CostTerms, cost_scores, cost_targets, cost_terms
from labelkin.functional._class_targets import class_target_cross_entropy, linear_cross_entropy
from labelkin.functional._collectives import global_mean, global_sum, sum_over_processes, world_size
from labelkin.functional._cross_entropy import (
    confidence_penalty,
    cross_entropy,
    expected_cost,
    huber_to_vectors,
    infogain,
    mixed_rows,
    retrospection,
    smoothed_cross_entropy,
    soft_cross_entropy,
)
from labelkin.functional._cross_entropy import is_soft as is_soft
from labelkin.functional._frames import cosine_to_vectors, frame_similarity, frame_vectors, haframe
from labelkin.functional._hier_cos import SubspaceTerms, subspace_scores, subspace_terms
from labelkin.functional._hierarchical import (
    ancestors,
    conditional_softmax,
    convex_hierarchical,
    expected_distance,
    hierarchical,
    hierarchical_cross_entropy,
)
from labelkin.functional._hierarchical import open_log_softmax as open_log_softmax
from labelkin.functional._hierarchical import open_subtree_logsumexp as open_subtree_logsumexp
from labelkin.functional._kernels import MOST_MEMBER_CHANNELS as MOST_MEMBER_CHANNELS
from labelkin.functional._kernels import convolution_for_fleets as convolution_for_fleets
from labelkin.functional._kernels import has_member_convolution as has_member_convolution
from labelkin.functional._kernels import member_convolution as member_convolution
from labelkin.functional._kernels.classes import ClassTargets as ClassTargets
from labelkin.functional._kernels.classes import (
    DenseTargets,
    GroupedTargets,
    LowRankTargets,
    OrdinalTargets,
    ScaledTargets,
    SparseTargets,
    sparse_targets,
)
from labelkin.functional._label_embedding import EmbeddingTerms, compressed_embedding, embedding_terms
from labelkin.functional._logit_adjustment import adjusted_logits
from labelkin.functional._mixing import (
    bounded_eps,
    bounded_eps_inverse,
    class_penalty,
    led_matrix,
    log_barrier,
    matrix_penalty,
)
from labelkin.functional._mixing import largest_share as largest_share
from labelkin.functional._naa import FORMS as FORMS
from labelkin.functional._naa import GRAM_ENTRIES as GRAM_ENTRIES
from labelkin.functional._naa import Form as Form
from labelkin.functional._naa import class_correlations as class_correlations
from labelkin.functional._naa import naa_distance
from labelkin.functional._naa import naa_similarity as naa_similarity
from labelkin.functional._naa import naa_similarity_gram as naa_similarity_gram
from labelkin.functional._naa import target_distance as target_distance
from labelkin.functional._state import as_it_was as as_it_was
from labelkin.functional._state import finite_rows as finite_rows
from labelkin.functional._tree import (
    TreeIndex,
    node_log_probs,
    path_sum,
    sibling_log_softmax,
    subtree_logsumexp,
    tree_index,
)
from labelkin.functional._tree import below as below
from labelkin.functional._tree import path_columns as path_columns
from labelkin.functional._tree import take as take

__all__ = [
    "ClassSums",
    "CostTerms",
    "DenseTargets",
    "EmbeddingTerms",
    "GroupedTargets",
    "LowRankTargets",
    "OrdinalTargets",
    "ScaledTargets",
    "SparseTargets",
    "SubspaceTerms",
    "TreeIndex",
    "adjusted_logits",
    "ancestors",
    "anchored_labels",
    "bounded_eps",
    "bounded_eps_inverse",
    "class_penalty",
    "class_sums",
    "class_target_cross_entropy",
    "compressed_embedding",
    "conditional_softmax",
    "confidence_penalty",
    "convex_hierarchical",
    "cosine_to_vectors",
    "cost_scores",
    "cost_targets",
    "cost_terms",
    "cross_entropy",
    "embedding_terms",
    "expected_cost",
    "expected_distance",
    "frame_similarity",
    "frame_vectors",
    "global_mean",
    "global_sum",
    "haframe",
    "hierarchical",
    "hierarchical_cross_entropy",
    "huber_to_vectors",
    "infogain",
    "label_distances",
    "leave_one_out_means",
    "led_matrix",
    "linear_cross_entropy",
    "log_barrier",
    "matrix_penalty",
    "mixed_rows",
    "moved_rows",
    "naa_distance",
    "node_log_probs",
    "path_sum",
    "repel",
    "retrospection",
    "running_means",
    "sibling_log_softmax",
    "smoothed_cross_entropy",
    "soft_cross_entropy",
    "sparse_targets",
    "subspace_scores",
    "subspace_terms",
    "subtree_logsumexp",
    "sum_over_processes",
    "tree_index",
    "world_size",
]
