"""Class names and the taxonomy over them: load the tree, choose the names, restrict the tree to the classes."""

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, check_names, counted, plain_names, with_suggestions
from labelkin.audit._doubts import first_matches
from labelkin.audit._schema import Raw, class_texts
from labelkin.structure import Taxonomy, catalogue, load_tree
from labelkin.training import CostTable

WORDNET, FROM_TREE = "wordnet", "taxonomy"
ASK = "pass the class names in the order of the scores (--classes a,b,c, or a file with one name per line)"
TreeChoice = Taxonomy | Mapping[str, Any] | str | os.PathLike[str]


def load_taxonomy(choice: TreeChoice | None) -> Taxonomy | None:
    """Return the whole taxonomy; None without one, and for "wordnet", which needs the class names first."""
    if choice is None or isinstance(choice, Taxonomy):
        return choice
    if isinstance(choice, Mapping):
        return Taxonomy.from_nested(choice)
    if choice == WORDNET:
        return None
    return load_tree(choice, others=(WORDNET,))


def is_built_in(choice: TreeChoice | None) -> bool:
    """Return whether the tree is one of the package's, whose classes are in the order of the published labels."""
    return isinstance(choice, str) and choice in catalogue.names()


def choose_names(
    raw: Raw,
    chosen: Sequence[str] | str | os.PathLike[str] | None,
    tree: Taxonomy | None,
    costs: CostTable | None,
    *,
    is_built_in: bool,
) -> Sequence[str] | None:
    """Return the class names that the caller passed.

    Predicted labels come without a list of classes; for them, return the classes of the tree or of the costs.

    The order of a tree's classes is that of its file, not of a model's outputs. It is taken only where the labels are names,
    which then show whether the order is right, and for built-in trees, which have the order of the published data.
    """
    if chosen is not None:
        names = read_names(chosen, tree)
        check_order(names, raw.names)
        by_tree = isinstance(chosen, str) and chosen == FROM_TREE
        if by_tree and not is_built_in and not set(raw.target.distinct) <= set(names):
            raise InputError(
                "classes: 'taxonomy' needs labels that are class names, because numbers cannot show that the order of the "
                f"tree ({first_matches(names)}) is that of the scores; {ASK}."
            )
        return names
    if raw.kind != "labels" or raw.names is not None:
        return None
    if tree is not None and not _only_numbers(raw, tree):
        return tree.classes
    return costs.names if costs is not None and tree is None else None


def check_order(names: Sequence[str], own: Sequence[str] | None) -> None:
    """Refuse class names that are those which a source gives its scores (`own`), but in another order.

    Other names than those of the source rename its classes.
    """
    if own is not None and tuple(names) != tuple(own) and sorted(names) == sorted(own):
        raise InputError(
            f"classes: the scores have names of their own, which are these in another order ({first_matches(own)}, not "
            f"{first_matches(names)}); leave the class names out (--classes)."
        )


def restrict_tree(choice: TreeChoice | None, tree: Taxonomy | None, classes: Sequence[str]) -> Taxonomy | None:
    """Return the tree over exactly these classes, in their order."""
    if choice == WORDNET:
        return Taxonomy.from_wordnet(classes, rule="shortest")
    if tree is None:
        return None
    known = set(tree.names)  # including inner nodes, for which restrict() has its own error message
    unknown = [name for name in classes if name not in known]
    if unknown:
        numbered = all(name.isdecimal() for name in unknown)
        hint = ASK if numbered else "correct the names, or add them to the tree"
        raise InputError(
            f"classes: {len(unknown)} of {len(classes)} not in the taxonomy: {with_suggestions(unknown, tree.classes)}; {hint}."
        )
    return tree.restrict(classes)


def describe_tree(
    choice: TreeChoice | None, tree: Taxonomy | None, over: Taxonomy | None, *, of_run: bool = False
) -> str | None:
    """Return the tree's source and size, and how many of its classes were dropped."""
    if over is None or choice is None:
        return None
    name = ("of the run" if of_run else "as given") if isinstance(choice, (Taxonomy, Mapping)) else os.fspath(choice)
    dropped = 0 if tree is None else len(tree.leaves) - len(over.leaves)
    size = f"{name} ({len(over.leaves)} classes, {len(over)} nodes, height {int(over.height[0])})"
    if not dropped:
        return size
    return f"{size}; dropped {counted(dropped, 'class', 'classes')} not in the predictions"


def read_names(chosen: Sequence[str] | str | os.PathLike[str], tree: Taxonomy | None) -> Sequence[str]:
    if isinstance(chosen, str) and chosen == FROM_TREE:
        if tree is None:
            raise InputError("classes: 'taxonomy' takes the classes of the tree in its order; pass a taxonomy as well.")
        return tree.classes
    if not isinstance(chosen, (str, os.PathLike)):
        names = plain_names(chosen)
        if isinstance(names, Sequence):
            names = class_texts(names, source="the argument")
        check_names("classes", names, least=2)
        return tuple(names)
    file = Path(chosen)
    if file.is_file():
        names = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    elif "," in str(chosen):
        names = next(csv.reader([str(chosen)], skipinitialspace=True))
    else:
        raise InputError(
            f"classes: expected a,b,c, a text file with one name per line, or 'taxonomy', got {str(chosen)!r}."
        )
    return [name.strip() for name in names if name.strip()]


def _only_numbers(raw: Raw, tree: Taxonomy) -> bool:
    """Whether the labels are numbers that the tree lacks; then the caller must pass their names."""
    labels = set(raw.target.distinct) if raw.predicted is None else {*raw.target.distinct, *raw.predicted.distinct}
    return not labels <= set(tree.classes) and all(label.isdecimal() for label in labels)
