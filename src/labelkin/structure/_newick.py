"""Read and write trees as Newick text: `((cat,dog)animal,car)root;`.

Labels are plain or in single quotes (a quote inside is doubled). Comments in square brackets and branch lengths are dropped,
and underscores are kept. An unnamed root is called `root`, and other unnamed inner nodes `node1`, ... Classes are in order
from left to right, unless each leaf has its position in a comment: `dog[&class=0]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from labelkin._checks import InputError, check_names, reads_as_number
from labelkin.structure._build import Parts, breadth_first, depth_first, free_name, free_names

if TYPE_CHECKING:
    from labelkin.structure._tree import Tree

_TOKEN = re.compile(r"(?P<quoted>'(?:[^']|'')*')|(?P<comment>\[[^]]*])|(?P<mark>[(),:;])|(?P<plain>[^\s()[\]',:;]+)")
_PLAIN = re.compile(r"[A-Za-z0-9.+-]+")
_CLASS = re.compile(r"\[&class=(\d+)]")

_AFTER = {  # the kinds of tokens that may come before each kind
    "(": ("start", "(", ","),
    "label": ("start", "(", ",", ")"),
    ",": ("label", ")"),
    ")": ("label", ")"),
    ";": ("label", ")"),
}


class _Token(NamedTuple):
    kind: str  # "label" or the mark itself
    text: str
    at: int
    number: int | None = None  # the class position from a comment


def from_newick(text: str) -> Parts:
    """Build a tree from Newick text; see `Taxonomy.from_newick`."""
    names: list[str | None] = [None]
    parents = [-1]
    numbers: dict[int, int | None] = {}  # of the leaves
    node, before = 0, "start"
    for token in _tokens(text):
        if before == ";":
            raise InputError(f"Newick: more text after ';' at character {token.at}; give one tree.")
        if before not in _AFTER[token.kind]:
            hint = " Put a name with blanks in quotes." if before == token.kind == "label" else ""
            raise InputError(f"Newick: unexpected {token.text!r} at character {token.at} after {before!r}.{hint}")
        if token.kind == "label":
            names[node] = token.text
            if before != ")":
                numbers[node] = token.number
        if token.kind in (",", ")"):
            node = parents[node]
            if node < 0:
                raise InputError(f"Newick: {token.text!r} at character {token.at} is outside of all parentheses.")
        if token.kind in ("(", ","):
            parents.append(node)
            node = len(names)
            names.append(None)
        before = token.kind
    if before != ";" or node:
        missing = "a closing parenthesis" if node else "the ';' that ends the tree"
        raise InputError(f"Newick: {missing} is missing at the end of the text.")
    return _parts(names, parents, numbers)


def _tokens(text: str) -> Iterator[_Token]:
    """Yield labels and marks; comments and branch lengths are dropped, and a class number is added to the label before it."""
    label: _Token | None = None
    length_due = False
    for kind, token, at in _raw_tokens(text):
        if kind == "comment":
            if label and (found := _CLASS.fullmatch(token)):
                label = label._replace(number=int(found[1]))
            continue
        if length_due:
            length_due = False
            if kind != "plain" or not reads_as_number(token):
                raise InputError(f"Newick: expected a branch length at character {at}, got {token!r}.")
            continue
        if token == ":" and kind == "mark":
            length_due = True
            continue
        if label:
            yield label
            label = None
        if kind == "mark":
            yield _Token(token, token, at)
        else:
            label = _Token("label", token[1:-1].replace("''", "'") if kind == "quoted" else token, at)
    if label:
        yield label


def _raw_tokens(text: str) -> Iterator[tuple[str, str, int]]:
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
        elif found := _TOKEN.match(text, place):
            yield str(found.lastgroup), found[0], place
            place = found.end()
        else:
            raise InputError(f"Newick: {text[place]!r} at character {place} is never closed.")


def _parts(names: list[str | None], parents: list[int], numbers: dict[int, int | None]) -> Parts:
    given = [name for name in names if name is not None]
    check_names("Newick", given)
    unnamed = free_names(given)
    root = free_name("root", given)
    filled = [name if name is not None else next(unnamed) if node else root for node, name in enumerate(names)]
    leaves = list(numbers)
    if any(number is not None for number in numbers.values()):
        if sorted(-1 if n is None else n for n in numbers.values()) != list(range(len(leaves))):
            raise InputError(
                f"Newick: the [&class=...] comments must number the {len(leaves)} leaves from 0, each once."
            )
        leaves.sort(key=lambda node: numbers[node] or 0)
    return breadth_first(filled, parents, leaves)


def to_newick(tree: Tree) -> str:
    """Return a tree as Newick text; see `Taxonomy.to_newick`."""
    walk = depth_first(tree)
    in_order = [node for node in walk if tree.is_leaf[node]] == tree.leaves.tolist()
    numbers = {} if in_order else {node: f"[&class={k}]" for k, node in enumerate(tree.leaves.tolist())}
    labels = [_label(name) + numbers.get(node, "") for node, name in enumerate(tree.names)]
    pieces: list[str] = []
    unclosed: list[int] = []
    for node in walk:
        while unclosed and unclosed[-1] != tree.parents[node]:
            pieces.append(")" + labels[unclosed.pop()])
        if pieces and pieces[-1] != "(":
            pieces.append(",")
        if tree.is_leaf[node]:
            pieces.append(labels[node])
        else:
            pieces.append("(")
            unclosed.append(node)
    pieces.extend(")" + labels[node] for node in reversed(unclosed))
    return "".join(pieces) + ";"


def _label(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "'" + name.replace("'", "''") + "'"
