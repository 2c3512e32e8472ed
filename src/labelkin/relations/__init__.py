"""Relations between classes (class similarity), and smoothed targets built from them.

A relation is a K x K matrix. Row `i` is the distribution of the weight taken from class `i` over its related classes: no entry
is negative, the diagonal is zero, and each row sums to 1. A class without related classes is isolated: its row is zero and
its target stays one-hot. Groups and trees are also available as `Rows`, which compute single rows and never the matrix.
"""

from labelkin.relations._class_weights import balanced_weights, effective_weights, log_priors
from labelkin.relations._discriminant import lda
from labelkin.relations._groups import groups
from labelkin.relations._matrices import check_not_negative as check_not_negative
from labelkin.relations._matrices import check_zero_diagonal as check_zero_diagonal
from labelkin.relations._matrices import count_classes as count_classes
from labelkin.relations._matrices import read_numbers as read_numbers
from labelkin.relations._matrices import read_square as read_square
from labelkin.relations._measured import activations, confusion, infogain_weights
from labelkin.relations._ordinal import ordinal
from labelkin.relations._structured import GroupRows, TreeRows
from labelkin.relations._targets import DenseRows, Rows, SmoothedRows, as_rows, as_targets, smooth
from labelkin.relations._targets import mixed_targets as mixed_targets
from labelkin.relations._tree import tree, tree_targets
from labelkin.relations._vectors import embedding, similarity_to_vectors
from labelkin.relations._vectors import read_vectors as read_vectors

__all__ = [
    "DenseRows",
    "GroupRows",
    "Rows",
    "SmoothedRows",
    "TreeRows",
    "activations",
    "as_rows",
    "as_targets",
    "balanced_weights",
    "confusion",
    "effective_weights",
    "embedding",
    "groups",
    "infogain_weights",
    "lda",
    "log_priors",
    "ordinal",
    "similarity_to_vectors",
    "smooth",
    "tree",
    "tree_targets",
]
