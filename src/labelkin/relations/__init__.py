"""Who is kin to whom: relations between classes, and the targets made from them.

A relation is a K x K matrix whose row `i` says how the kin of class `i` share what is taken from it: no entry below
zero, a zero diagonal, rows that sum to 1. A class without kin is isolated: its row is zero and it stays one-hot.
Groups and trees also come as `Rows`, which make the rows asked for and never the matrix.
"""

from labelkin.relations.discriminant import lda
from labelkin.relations.grouping import groups
from labelkin.relations.measured import activations, confusion, infogain_weights
from labelkin.relations.ordering import ordinal
from labelkin.relations.rows import DenseRows, Rows, SmoothedRows, as_rows, as_targets
from labelkin.relations.smoothing import smooth
from labelkin.relations.structured import GroupRows, TreeRows
from labelkin.relations.trees import tree, tree_targets
from labelkin.relations.vectors import embedding, similarity_to_vectors

__all__ = [
    "DenseRows",
    "GroupRows",
    "Rows",
    "SmoothedRows",
    "TreeRows",
    "activations",
    "as_rows",
    "as_targets",
    "confusion",
    "embedding",
    "groups",
    "infogain_weights",
    "lda",
    "ordinal",
    "similarity_to_vectors",
    "smooth",
    "tree",
    "tree_targets",
]
