"""The data sets known by name."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from labelkin.cli.show import results_last, say, say_json, say_table

app = typer.Typer(no_args_is_help=True, help="Data sets known by name.")
DataDir = Annotated[Path | None, Option(help="A folder to look in first, and to download to.")]


@app.command("list")
def list_sets(
    data_dir: DataDir = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the sets, whether they are at hand and where they are looked for."""
    from labelkin.data import data_folders
    from labelkin.data.inventory import inventory

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
    from labelkin.data.inventory import fetch_by_name

    with results_last():
        path = fetch_by_name(name, data_dir=data_dir)
    say(f"{name} needs no files" if path is None else f"{name} is in {path}")
