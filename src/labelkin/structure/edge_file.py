"""A tree as CSV, one edge a line: `parent,child`, and `class` where the classes' order needs saying."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from labelkin._checks import InputError
from labelkin.structure.build import Parts, depth_first
from labelkin.structure.graph import from_edges

if TYPE_CHECKING:
    from labelkin.structure.taxonomy import Taxonomy


def read_csv(text: str) -> Parts:
    """With the header `parent,child` the columns go by their names; without it they are parent and child."""
    edges: list[tuple[str, str]] = []
    classes: dict[str, str] = {}
    header = ["parent", "child"]
    for place, (line, row) in enumerate(_rows(text)):
        if not place and {"parent", "child"} <= {cell.strip().lower() for cell in row}:
            header = [cell.strip().lower() for cell in row]
            continue
        if len(row) != len(header):
            raise InputError(f"line {line}: expected {len(header)} columns ({', '.join(header)}), got {len(row)}.")
        cells = dict(zip(header, (cell.strip() for cell in row), strict=True))
        if not cells["parent"] or not cells["child"]:
            raise InputError(f"line {line}: a name is missing; expected a parent and a child, got {row!r}.")
        edges.append((cells["parent"], cells["child"]))
        if number := cells.get("class"):
            classes[cells["child"]] = number
    parts = from_edges(edges, rule=None).parts
    return parts._replace(leaves=_class_order(parts, classes)) if classes else parts


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"line {reader.line_num} is not CSV ({error}).") from error


def _class_order(parts: Parts, classes: dict[str, str]) -> list[int]:
    nodes = {name: node for node, name in enumerate(parts.names)}
    leaves = {parts.names[node] for node in parts.leaves or ()}
    numbers = {int(number): nodes[name] for name, number in classes.items() if number.isdecimal() and name in leaves}
    if sorted(numbers) != list(range(len(leaves))) or len(classes) != len(leaves):
        raise InputError(f"class: expected the numbers 0 to {len(leaves) - 1}, one for each class and none elsewhere.")
    return [numbers[place] for place in range(len(leaves))]


def write_csv(tree: Taxonomy) -> str:
    for name in tree.names:
        if name != name.strip():
            raise InputError(
                f"the name {name!r} begins or ends with blanks, which CSV files do not keep; save the tree as .json."
            )
    walk = depth_first(tree)
    in_order = [node for node in walk if tree.is_leaf[node]] == tree.leaves.tolist()
    numbers = {node: str(place) for place, node in enumerate(tree.leaves.tolist())}
    lines = ["parent,child" if in_order else "parent,child,class"]
    for node in walk[1:]:
        cells = [_quoted(tree.names[tree.parents[node]]), _quoted(tree.names[node])]
        lines.append(",".join(cells if in_order else [*cells, numbers.get(node, "")]))
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    """csv.writer leaves a lone carriage return bare, which its reader takes for a line's end: so we quote ourselves."""
    return '"' + name.replace('"', '""') + '"' if any(sign in name for sign in ',"\r\n') else name
