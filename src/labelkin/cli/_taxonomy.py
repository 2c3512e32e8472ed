"""The commands `labelkin taxonomy`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._option_groups import pairs
from labelkin.cli._show import say, say_json, say_table

if TYPE_CHECKING:
    from labelkin.structure import Taxonomy

app = typer.Typer(no_args_is_help=True, help="List, show, convert and build class trees.")
Source = Annotated[
    str,
    Argument(help="A built-in tree, or a .json, .yaml, .csv or .nwk file.", metavar="NAME|FILE"),
]
Output = Annotated[Path, Option("--output", "-o", help="Output file: .json, .yaml, .csv or .nwk.", metavar="FILE")]


@app.command("list")
def list_trees(json: Annotated[bool, Option("--json", help="Print JSON.")] = False) -> None:
    """List the built-in trees."""
    from labelkin.structure import catalogue

    result = [{"name": name, "source": catalogue.source(name)} for name in catalogue.names()]
    if json:
        say_json(result)
    else:
        say_table(("name", "source"), [(entry["name"], entry["source"]) for entry in result])


@app.command()
def show(
    source: Source,
    whole: Annotated[bool, Option("--all", help="Show all nodes instead of the first 60.")] = False,
    json: Annotated[bool, Option("--json", help="Print only the counts, as JSON.")] = False,
) -> None:
    """Draw a tree and count its nodes."""
    from labelkin.structure import load_tree

    tree = load_tree(source)
    described = tree.describe()
    if json:
        say_json(described._asdict())
        return
    say(tree.show(limit=None if whole else 60))
    say("")
    depth = (
        str(described.most_depth) if described.equal_depths else f"{described.least_depth} to {described.most_depth}"
    )
    say(f"{described.classes} classes, {described.nodes} nodes, classes at depth {depth}")


@app.command()
def convert(
    source: Source,
    output: Annotated[Path | None, Argument(help="Output file: .json, .yaml, .csv or .nwk.")] = None,
    also_output: Annotated[
        Path | None, Option("--output", "-o", help="The output file, as in `taxonomy build`.", metavar="FILE")
    ] = None,
) -> None:
    """Write a tree in another format."""
    from labelkin.structure import load_tree

    given = [path for path in (output, also_output) if path is not None]
    if len(given) != 1:
        raise InputError(f"taxonomy convert: expected one output file, as OUTPUT or with -o, got {len(given)}.")
    _write(load_tree(source), given[0])


@app.command()
def build(
    output: Output,
    names: Annotated[list[str] | None, Argument(help="Class names, with --wordnet.")] = None,
    wordnet: Annotated[bool, Option("--wordnet", help="Build the tree from the WordNet hypernyms of NAMES.")] = False,
    paths: Annotated[
        Path | None, Option(help="Build the tree from a file with one path per class, such as animal/pet/cat.")
    ] = None,
    groups: Annotated[
        Path | None, Option(help='Build the tree from groups in a .json or .yaml file: {"pet": ["cat", "dog"], ...}.')
    ] = None,
    rule: Annotated[
        Literal["shortest", "deepest"],
        Option(help="If WordNet has several parents, keep the one with the shortest or the longest path to the root."),
    ] = "shortest",
    sense: Annotated[
        list[str] | None, Option(help="WordNet sense of a name, such as crane=crane.n.04. Repeat for more.")
    ] = None,
) -> None:
    """Build a tree, for example: labelkin taxonomy build --wordnet cat dog car -o tree.json."""
    from labelkin.structure import Taxonomy, read_paths

    if wordnet + (paths is not None) + (groups is not None) != 1:
        raise InputError("taxonomy build: expected exactly one of --wordnet, --paths and --groups.")
    if paths is not None:
        tree = read_paths(paths)
    elif groups is not None:
        tree = Taxonomy.load(groups)
    else:
        tree = Taxonomy.from_wordnet(names or [], senses=pairs("--sense", sense or []), rule=rule)
    _write(tree, output)


def check_tree_file(output: Path) -> None:
    """Refuse a file that no tree can be written to: another suffix, or no folder."""
    from labelkin.structure import Taxonomy

    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {str(output.parent)!r}; create it first.")
    _content(Taxonomy.from_nested(["a", "b"]), output)


def write_tree(tree: "Taxonomy", output: Path) -> None:
    """Write a tree; refuse a file that holds anything else, because trees are often written by hand."""
    from labelkin._files import check_replaceable

    content = _content(tree, output)
    check_replaceable(output, by="this command", is_ours=lambda _: output.read_bytes() == content)
    tree.save(output)


def _content(tree: "Taxonomy", output: Path) -> bytes:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        beside = Path(folder) / output.name
        try:
            tree.save(beside)
        except InputError as error:
            raise InputError(str(error).replace(str(beside), str(output))) from error
        return beside.read_bytes()


def _write(tree: "Taxonomy", output: Path) -> None:
    write_tree(tree, output)
    say(f"Wrote {output}")
