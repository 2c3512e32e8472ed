"""Read and write taxonomies as JSON, YAML, CSV and Newick; the suffix selects the format.

- `.json`, `.yaml`, `.yml`: `names`, `parents` and `leaves`, which keeps everything. Files of nested groups, as in
  `Taxonomy.from_nested`, can be read too.
- `.csv`: one line per edge under the header `parent,child`, which may be missing when reading. If the first line has no comma,
  semicolons, tabs or `|` separate. Classes are in the order in
  which they appear as a child; if they have another order, a third column `class` numbers them.
- `.nwk`, `.newick`: see `labelkin.structure._newick`.

CSV and Newick keep names, edges and the order of siblings and classes; nodes are renumbered breadth first.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from labelkin._checks import InputError, counted, near
from labelkin._extras import require
from labelkin._files import separator_of, write_text
from labelkin.structure._build import Parts, depth_first, from_nested
from labelkin.structure._graph import from_edges
from labelkin.structure._newick import from_newick, to_newick

if TYPE_CHECKING:
    from labelkin.structure._tree import Tree


def read_csv(text: str) -> Parts:
    """Read edges; with the header `parent,child` columns are found by name, and without it they are parent and child."""
    edges: list[tuple[str, str]] = []
    classes: dict[str, str] = {}
    header = ["parent", "child"]
    for place, (line, row) in enumerate(_rows(text)):
        if not place and {"parent", "child"} <= {cell.strip().lower() for cell in row}:
            header = [cell.strip().lower() for cell in row]
            continue
        if len(row) != len(header):
            raise InputError(
                f"line {line}: expected {counted(len(header), 'column')} ({', '.join(header)}), got {len(row)}."
            )
        cells = dict(zip(header, (cell.strip() for cell in row), strict=True))
        if not cells["parent"] or not cells["child"]:
            raise InputError(f"line {line}: a name is missing; expected a parent and a child, got {row!r}.")
        edges.append((cells["parent"], cells["child"]))
        if number := cells.get("class"):
            classes[cells["child"]] = number
    parts = from_edges(edges, rule=None).parts
    return parts._replace(leaves=_class_order(parts, classes)) if classes else parts


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    first, _, _ = text.lstrip().partition("\n")
    source = io.StringIO(text, newline="")
    reader = csv.reader(source, delimiter=separator_of(first), skipinitialspace=True, strict=True)
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


def write_csv(tree: Tree) -> str:
    """Return the edges of a tree as CSV."""
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
    """Quote a name if necessary; csv.writer does not quote a lone carriage return, which its reader treats as a line end."""
    return '"' + name.replace('"', '""') + '"' if any(sign in name for sign in ',"\r\n') else name


Result = TypeVar("Result")


def load(path: str | os.PathLike[str], make: Callable[..., Result]) -> Result:
    """Read a file and pass its parts to `make`; errors name the file."""
    source = Path(path)
    paths = "; `labelkin taxonomy build --paths FILE -o tree.json` reads a text of paths such as animal/pet/cat"
    read = _format(source, paths if source.suffix.lower() == ".txt" else "").read
    try:
        content = source.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror}).") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: byte {error.start} is not UTF-8; save the file in that encoding.") from error
    try:
        return make(*read(text))
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    except RecursionError as error:
        raise InputError(f"{source}: groups are nested too deeply; save the tree as CSV edges.") from error


def save(tree: Tree, path: str | os.PathLike[str]) -> None:
    """Write a tree to a file; errors name the file."""
    target = Path(path)
    write = _format(target).write
    try:
        text = write(tree)
    except InputError as error:
        raise InputError(f"{target}: {error}") from error
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; create it first.")
    write_text(target, text)


def _format(path: Path, hint: str = "") -> _Format:
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise InputError(f"{path}: expected a name that ends in {', '.join(_FORMATS)}{hint}.{near(suffix, _FORMATS)}")
    return _FORMATS[suffix]


def _read_json(text: str) -> Parts:
    try:
        return _from_data(json.loads(text, object_pairs_hook=_without_twins))
    except json.JSONDecodeError as error:
        raise InputError(f"line {error.lineno} is not JSON ({error.msg}).") from error


def _write_json(tree: Tree) -> str:
    rows = (f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in _data(tree).items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _without_twins(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Refuse a repeated key; JSON and YAML would silently keep only the last one."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            raise InputError(f"expected names as strings, got {key!r}; put it in quotes.")
        if key in found:
            raise InputError(f"duplicate name {key!r} in one group; use each name once.")
        found[key] = value
    return found


_JSON_LINE = re.compile(r"(names|parents|leaves): (\[.*\])")


def _read_yaml(text: str) -> Parts:
    if (lists := _json_lists(text)) is not None:
        return _from_data(lists)
    yaml = require("yaml", extra="yaml", use="reading YAML")
    try:
        return _from_data(yaml.load(text, Loader=_yaml_loader(yaml)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "the file"
        raise InputError(f"{where} is not YAML ({yaml_problem(error)}).") from error


def _json_lists(text: str) -> dict[str, Any] | None:
    """Return the lists of a file as `_write_yaml` writes it, which are JSON; None for other YAML, which takes far longer."""
    found = [_JSON_LINE.fullmatch(line) for line in text.splitlines()]
    if len(found) not in (2, 3) or not all(found):
        return None
    try:
        return _without_twins((match[1], json.loads(match[2])) for match in found if match is not None)
    except (ValueError, RecursionError):
        return None


def yaml_problem(error: Any) -> str:
    """Return the message of a YAML error in one line."""
    return str(getattr(error, "problem", None) or str(error).partition("\n")[0])


def _yaml_loader(yaml: Any) -> Any:
    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's is several times faster
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            pairs = [
                (self.construct_object(key, deep=True), self.construct_object(v, deep=True)) for key, v in node.value
            ]
            return _without_twins(pairs)

    return Loader


def _write_yaml(tree: Tree) -> str:
    yaml = require("yaml", extra="yaml", use="writing YAML")
    readable = all(name.isprintable() for name in tree.names)  # PyYAML leaves some line breaks bare otherwise
    if readable:
        return "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in _data(tree).items())
    dumped = yaml.safe_dump(_data(tree), allow_unicode=readable, sort_keys=False, default_flow_style=None, width=120)
    return str(dumped)


def _data(tree: Tree) -> dict[str, list[Any]]:
    return {"names": list(tree.names), "parents": tree.parents.tolist(), "leaves": tree.leaves.tolist()}


ROOT = "root"  # the name of the root if the file does not have one


def _from_data(data: Any) -> Parts:
    if isinstance(data, dict) and list(data) == [ROOT] and isinstance(data[ROOT], (dict, list)):
        data = data[ROOT]  # the root was written out
    if not isinstance(data, dict) or not {"names", "parents"} <= data.keys() <= {"names", "parents", "leaves"}:
        return from_nested(data, root=ROOT)
    for key, value in data.items():
        if not isinstance(value, list):
            raise InputError(f"{key}: expected a list, got {value!r}.")
    return Parts(data["parents"], data["names"], data.get("leaves"))


class _Format(NamedTuple):
    read: Callable[[str], Parts]
    write: Callable[[Tree], str]


_JSON = _Format(_read_json, _write_json)
_NEWICK = _Format(from_newick, lambda tree: to_newick(tree) + "\n")
_YAML = _Format(_read_yaml, _write_yaml)
_FORMATS = {
    ".json": _JSON,
    ".csv": _Format(read_csv, write_csv),
    ".nwk": _NEWICK,
    ".newick": _NEWICK,
    ".yaml": _YAML,
    ".yml": _YAML,
}
