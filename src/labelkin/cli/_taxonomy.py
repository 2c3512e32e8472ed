"""Trees of classes."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._option_groups import pairs
from labelkin.cli._show import say, say_json, say_table

app = typer.Typer(no_args_is_help=True, help="Trees of classes.")
Source = Annotated[str, Argument(help="A shipped tree or a .json, .yaml, .csv, .nwk file.", metavar="NAME|FILE")]
Output = Annotated[Path, Option("--output", "-o", help="A .json, .yaml, .csv or .nwk file.", metavar="FILE")]


@app.command("list")
def list_trees(json: Annotated[bool, Option("--json", help="Print JSON.")] = False) -> None:
    """List the trees that come with the package."""
    from labelkin.structure import catalogue

    found = [{"name": name, "source": catalogue.source(name)} for name in catalogue.names()]
    if json:
        say_json(found)
    else:
        say_table(("name", "where it is from"), [(entry["name"], entry["source"]) for entry in found])


@app.command()
def show(
    source: Source,
    whole: Annotated[bool, Option("--all", help="Every node, not the first 60.")] = False,
    json: Annotated[bool, Option("--json", help="Print its counts as JSON.")] = False,
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
def convert(source: Source, output: Annotated[Path, Argument(help="A .json, .yaml, .csv or .nwk file.")]) -> None:
    """Write a tree in another format."""
    from labelkin.structure import load_tree

    load_tree(source).save(output)
    say(f"The tree is in {output}")


@app.command()
def build(
    output: Output,
    names: Annotated[list[str] | None, Argument(help="Class names, for --wordnet.")] = None,
    wordnet: Annotated[bool, Option("--wordnet", help="From WordNet's nouns above NAMES.")] = False,
    paths: Annotated[Path | None, Option(help="From a file with a line for each class, as animal/pet/cat.")] = None,
    groups: Annotated[Path | None, Option(help='From .json or .yaml: {"pet": ["cat", "dog"], ...}.')] = None,
    rule: Annotated[
        Literal["shortest", "deepest"], Option(help="Which of several WordNet parents is kept.")
    ] = "shortest",
    sense: Annotated[
        list[str] | None, Option(help="The WordNet sense of a name, as crane=crane.n.04; again for more.")
    ] = None,
) -> None:
    """Make a tree: labelkin taxonomy build --wordnet cat dog car -o tree.json."""
    from labelkin.structure import Taxonomy, read_paths

    if wordnet + (paths is not None) + (groups is not None) != 1:
        raise InputError("taxonomy build: expected one of --wordnet, --paths and --groups.")
    if paths is not None:
        tree = read_paths(paths)
    elif groups is not None:
        tree = Taxonomy.load(groups)
    else:
        tree = Taxonomy.from_wordnet(names or [], senses=pairs("--sense", sense or []), rule=rule)
    tree.save(output)
    say(f"The tree is in {output}")
