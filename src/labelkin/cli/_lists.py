"""The commands `labelkin data`, `labelkin objectives` and `labelkin backbones`."""

from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer
from typer import Argument, Option

from labelkin.cli._completion import complete_data, complete_objective
from labelkin.cli._show import other_output_to_stderr, say, say_json, say_table

app = typer.Typer(no_args_is_help=True, help="List and download the built-in data sets.")
WIDTH = 100  # of an explanation
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
    name: Annotated[str, Argument(help="A name from `labelkin data list`.", autocompletion=complete_data)],
    data_dir: DataDir = None,
) -> None:
    """Download a data set unless it is already available."""
    from labelkin.data import fetch_by_name

    with other_output_to_stderr():
        path = fetch_by_name(name, data_dir=data_dir)
    say(f"{name} needs no files" if path is None else f"{name} is in {path}")


def objectives(
    name: Annotated[
        str | None, Argument(help="Explain this objective and its options.", autocompletion=complete_objective)
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON, including default values.")] = False,
) -> None:
    """List the objectives, their inputs, and the options for --set; or explain one."""
    from labelkin.runs import describe_objectives

    if name is not None:
        _explain(name, as_json=json)
        return
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


def _explain(name: str, *, as_json: bool) -> None:
    """Print what an objective does, and its options with their defaults."""
    from labelkin.runs import explain_objective

    found = explain_objective(name)
    if as_json:
        say_json({**found._asdict(), "options": [option._asdict() for option in found.options]})
        return
    say(found.text)
    say("")
    say(f"Options, as in `--set {name}.OPTION=VALUE`:")
    for option in found.options:
        say(f"  {option.name} (default: {option.default})")
        for line in wrap(option.meaning, WIDTH):
            say(f"      {line}")


def backbones(json: Annotated[bool, Option("--json", help="Print JSON.")] = False) -> None:
    """List the backbones, their sizes and what they need."""
    from labelkin.models import describe_backbones

    result = describe_backbones()
    if json:
        say_json([entry._asdict() for entry in result])
        return
    rows = [(entry.name, _millions(entry.parameters), str(entry.features or "-"), entry.needs) for entry in result]
    say_table(("backbone", "parameters", "features", "needs"), rows)
    say("")
    say("Parameters are for the smallest inputs, or for vectors of 512 numbers. NAME+residual adds a residual head.")


def _millions(count: int | None) -> str:
    return "-" if count is None else f"{count / 1e6:.2f} M"


def _words(objective: str) -> dict[str, str]:
    """Return the array options that accept a name or a file, with a description of each."""
    from labelkin.runs import ARRAY_OPTIONS, option_names

    return {name: ARRAY_OPTIONS[name] for name in option_names(objective) if name in ARRAY_OPTIONS}
