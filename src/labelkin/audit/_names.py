"""Whose tree and whose names: the classes of predictions, a taxonomy and a list of names brought together."""

import os
from collections.abc import Sequence
from pathlib import Path

from labelkin._checks import InputError, check_names
from labelkin.audit._costs import CostTable
from labelkin.audit._schema import Raw, with_near
from labelkin.structure import Taxonomy, load_tree

WORDNET, FROM_TREE = "wordnet", "taxonomy"
TreeChoice = Taxonomy | str | os.PathLike[str]


def load_choice(choice: TreeChoice | None) -> Taxonomy | None:
    """The tree as it is; None where there is none, or it can only be built from the classes."""
    if choice is None or choice == WORDNET or isinstance(choice, Taxonomy):
        return choice if isinstance(choice, Taxonomy) else None
    return load_tree(choice, others=(WORDNET,))


def names_for(
    raw: Raw, chosen: Sequence[str] | str | os.PathLike[str] | None, tree: Taxonomy | None, costs: CostTable | None
) -> Sequence[str] | None:
    """The class names that the user chose; for predicted labels, which come without any, those of the tree or costs."""
    if chosen is not None:
        return _chosen(chosen, tree)
    if raw.kind != "labels" or raw.names is not None:
        return None
    if tree is not None and not _only_numbers(raw, tree):
        return tree.classes
    return costs.names if costs is not None and tree is None else None


def tree_over(choice: TreeChoice | None, tree: Taxonomy | None, classes: Sequence[str]) -> Taxonomy | None:
    """The tree above exactly these classes, in their order."""
    if choice == WORDNET:
        return Taxonomy.from_wordnet(classes, rule="shortest")
    if tree is None:
        return None
    known = set(tree.names)  # what names an inner node is told apart by restrict()
    unknown = [name for name in classes if name not in known]
    if unknown:
        numbered = all(name.isdecimal() for name in unknown)
        hint = "; say what the classes are called (--classes a,b,c or --classes taxonomy)" if numbered else ""
        raise InputError(
            f"classes: {len(unknown)} of {len(classes)} are not in the taxonomy: {with_near(unknown, tree.classes)}{hint}."
        )
    return tree.restrict(classes)


def in_words(choice: TreeChoice | None, tree: Taxonomy | None, over: Taxonomy | None) -> str | None:
    """Where the tree is from, and what was left of it."""
    if over is None or choice is None:
        return None
    name = "given" if isinstance(choice, Taxonomy) else os.fspath(choice)
    less = 0 if tree is None else len(tree.leaves) - len(over.leaves)
    said = f"{name} ({len(over.leaves)} classes, {len(over)} nodes, height {int(over.height[0])})"
    return f"{said}, without {less} classes that the predictions lack" if less else said


def _chosen(chosen: Sequence[str] | str | os.PathLike[str], tree: Taxonomy | None) -> Sequence[str]:
    if chosen == FROM_TREE:
        if tree is None:
            raise InputError("classes: 'taxonomy' means the classes of the tree, in its order; give a tree too.")
        return tree.classes
    if not isinstance(chosen, (str, os.PathLike)):
        check_names("classes", chosen, least=2)
        return chosen
    file = Path(chosen)
    if file.is_file():
        text = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    elif "," in str(chosen):
        text = str(chosen).split(",")
    else:
        raise InputError(
            f"classes: expected a,b,c, a text file with a name a line, or 'taxonomy', got {str(chosen)!r}."
        )
    return [name.strip() for name in text if name.strip()]


def _only_numbers(raw: Raw, tree: Taxonomy) -> bool:
    """Whether labels are numbers that the tree does not have: then their names must be given, not guessed."""
    labels = {*raw.target, *(raw.predicted or ())}
    return not labels <= set(tree.classes) and all(label.isdecimal() for label in labels)
