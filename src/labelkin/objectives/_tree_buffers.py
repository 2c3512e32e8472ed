"""A taxonomy inside an objective: in class order, with its index arrays as buffers."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from labelkin._checks import InputError, listed, plain_names
from labelkin.functional import TreeIndex
from labelkin.structure import Taxonomy


class TreeBuffers(nn.Module):
    """Hold the index arrays of a tree as buffers that move with the objective and are not saved."""

    def __init__(self, index: TreeIndex) -> None:
        super().__init__()
        self._layout = TreeIndex(*(self._store(name, value) for name, value in index._asdict().items()))

    def _store(self, name: str, value: Any) -> Any:
        """Register tensors as buffers, and return their names in the nesting of the tensors."""
        if isinstance(value, tuple):
            return tuple(self._store(f"{name}_{i}", part) for i, part in enumerate(value))
        self.register_buffer(name, value, persistent=False)
        return name

    def _fetch(self, layout: Any) -> Any:
        return tuple(map(self._fetch, layout)) if isinstance(layout, tuple) else self._buffers[layout]

    def forward(self) -> TreeIndex:
        return TreeIndex(*map(self._fetch, self._layout))


def in_class_order(taxonomy: Taxonomy, classes: int | Sequence[str] | None) -> Taxonomy:
    """Return the taxonomy with its classes in the order of `classes`, which must name the same classes.

    Args:
        taxonomy: The tree.
        classes: The names; None for the order of the tree. A number of classes is refused, because it does not define an order.
    """
    if not isinstance(taxonomy, Taxonomy):
        raise InputError(
            f"taxonomy: expected a labelkin.Taxonomy, got {type(taxonomy).__name__}; give the tree of the classes, such as "
            "Taxonomy.from_nested({'animal': ['cat', 'dog'], 'vehicle': ['car']})."
        )
    classes = plain_names(classes)
    if classes is None:
        return taxonomy
    if isinstance(classes, Sequence):
        return taxonomy if tuple(classes) == taxonomy.classes else taxonomy.reorder(classes)
    if classes != len(taxonomy.leaves):
        raise InputError(f"classes: the taxonomy has {len(taxonomy.leaves)} classes, got {classes}.")
    raise InputError(
        f"classes: expected the names of the {classes} classes in the order of the targets, got their number, which does not "
        f"tell that target 0 is {taxonomy.classes[0]!r}; give the names, or classes=taxonomy.classes for the tree's own order, "
        f"which begins with {listed(taxonomy.classes)}."
    )
