"""The objectives that commands train by default, chosen by what is known about the classes of the data."""

from typing import NamedTuple

from labelkin.data import is_corpus
from labelkin.runs._spec import RunSpec
from labelkin.runs._workspace import DataCache

# The choices follow docs/choosing.md: `kin` where there is a tree; without one, the label embedding, which is never
# significantly worse than one-hot there, and retrospection, which is better most often.
WITH_TREE = ("one-hot", "label-smoothing", "hierarchical-cross-entropy", "kin")
WITHOUT_TREE = ("one-hot", "label-smoothing", "label-embedding", "retrospection")
SENTENCES = ("one-hot", "label-smoothing", "compressed-label-embedding")


class FirstChoice(NamedTuple):
    """Objectives to begin with: several to compare, one to train, and why."""

    compared: tuple[str, ...]
    trained: str
    reason: str


def first_choice(spec: RunSpec, data: DataCache) -> FirstChoice:
    """Choose objectives for data with a taxonomy, for data without one, or for sentence pairs.

    Args:
        spec: A run on the data. Its objective is ignored.
        data: Data sets that are already loaded; that of the spec is added, unless its taxonomy is given.
    """
    if is_corpus(spec.data):
        return FirstChoice(SENTENCES, "one-hot", "the data are sentence pairs")
    if spec.taxonomy is not None:
        return FirstChoice(WITH_TREE, "kin", "a taxonomy is given")
    if data.workspace(spec).dataset.taxonomy is not None:
        return FirstChoice(WITH_TREE, "kin", "the data have a taxonomy")
    return FirstChoice(WITHOUT_TREE, "label-embedding", "the data have no taxonomy")
