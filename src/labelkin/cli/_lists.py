"""The commands `labelkin data` and `labelkin objectives`."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from labelkin.cli._show import results_last, say, say_json, say_table

app = typer.Typer(no_args_is_help=True, help="Data sets known by name.")
DataDir = Annotated[Path | None, Option(help="A folder to look in first, and to download to.")]


@app.command("list")
def list_sets(
    data_dir: DataDir = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the sets, whether they are at hand and where they are looked for."""
    from labelkin.data import data_folders, inventory

    found, folders = inventory(data_dir=data_dir), [str(folder) for folder in data_folders(data_dir)]
    if json:
        sets = [{**entry._asdict(), "path": None if entry.path is None else str(entry.path)} for entry in found]
        say_json({"folders": folders, "sets": sets})
        return
    rows = [(entry.name, "yes" if entry.at_hand else "no", str(entry.path or "-"), entry.title) for entry in found]
    say_table(("name", "at hand", "where", "what it is"), rows)
    say("")
    say(f"Looked for in: {', '.join(folders)}")


@app.command("fetch")
def fetch_set(name: Annotated[str, Argument(help="A set of `labelkin data list`.")], data_dir: DataDir = None) -> None:
    """Download a set, if it is not at hand."""
    from labelkin.data import fetch_by_name

    with results_last():
        path = fetch_by_name(name, data_dir=data_dir)
    say(f"{name} needs no files" if path is None else f"{name} is in {path}")


def objectives(json: Annotated[bool, Option("--json", help="Print JSON, with the options' defaults.")] = False) -> None:
    """List the objectives, what each needs and what --set may set."""
    from labelkin.runs import describe_objectives

    found = describe_objectives()
    words = {entry.name: _words(entry.name) for entry in found}
    if json:
        say_json([{**entry._asdict(), "words": words[entry.name]} for entry in found])
        return
    rows = [(entry.name, ", ".join(entry.needs) or "-", entry.summary) for entry in found]
    say_table(("objective", "needs", "what it is"), rows)
    say("")
    say("What an objective needs follows from data and taxonomy. Options for --set:")
    for entry in found:
        say(f"  {entry.name}: {', '.join([*words[entry.name], *entry.options])}")
    say("")
    for name, meaning in {name: meaning for own in words.values() for name, meaning in own.items()}.items():
        say(f"  {name}: {meaning}")


def _words(objective: str) -> dict[str, str]:
    """The options that are arrays and may be set by a word or a file."""
    from labelkin.runs import ARRAY_OPTIONS, option_names

    return {name: ARRAY_OPTIONS[name] for name in option_names(objective) if name in ARRAY_OPTIONS}
