"""The commands `labelkin data` and `labelkin objectives`."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from labelkin.cli._show import other_output_to_stderr, say, say_json, say_table

app = typer.Typer(no_args_is_help=True, help="List and download the built-in data sets.")
DataDir = Annotated[Path | None, Option(help="Folder to search first and to download to.")]


@app.command("list")
def list_sets(
    data_dir: DataDir = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the built-in data sets and where they are stored."""
    from labelkin.data import data_folders, inventory

    result, folders = inventory(data_dir=data_dir), [str(folder) for folder in data_folders(data_dir)]
    if json:
        sets = [{**entry._asdict(), "path": None if entry.path is None else str(entry.path)} for entry in result]
        say_json({"folders": folders, "sets": sets})
        return
    rows = [(entry.name, "yes" if entry.at_hand else "no", str(entry.path or "-"), entry.title) for entry in result]
    say_table(("name", "available", "path", "description"), rows)
    say("")
    say(f"Searched folders: {', '.join(folders)}")


@app.command("fetch")
def fetch_set(
    name: Annotated[str, Argument(help="A name from `labelkin data list`.")], data_dir: DataDir = None
) -> None:
    """Download a data set unless it is already available."""
    from labelkin.data import fetch_by_name

    with other_output_to_stderr():
        path = fetch_by_name(name, data_dir=data_dir)
    say(f"{name} needs no files" if path is None else f"{name} is in {path}")


def objectives(json: Annotated[bool, Option("--json", help="Print JSON, including default values.")] = False) -> None:
    """List the objectives, their inputs, and the options for --set."""
    from labelkin.runs import describe_objectives

    result = describe_objectives()
    words = {entry.name: _words(entry.name) for entry in result}
    if json:
        say_json([{**entry._asdict(), "words": words[entry.name]} for entry in result])
        return
    rows = [(entry.name, ", ".join(entry.needs) or "-", entry.summary) for entry in result]
    say_table(("objective", "needs", "description"), rows)
    say("")
    say("Inputs in the column needs come from the data and the taxonomy. Options for --set:")
    for entry in result:
        say(f"  {entry.name}: {', '.join([*words[entry.name], *entry.options])}")
    say("")
    for name, meaning in {name: meaning for own in words.values() for name, meaning in own.items()}.items():
        say(f"  {name}: {meaning}")


def _words(objective: str) -> dict[str, str]:
    """Return the array options that accept a name or a file, with a description of each."""
    from labelkin.runs import ARRAY_OPTIONS, option_names

    return {name: ARRAY_OPTIONS[name] for name in option_names(objective) if name in ARRAY_OPTIONS}
