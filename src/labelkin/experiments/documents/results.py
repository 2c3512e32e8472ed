"""Files of results, as `labelkin runs export` writes them, as records that comparisons take."""

import json
import os
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError
from labelkin.experiments.store import Record


class Exported(Record):
    """A run of a file of results; its curve came with it."""

    def history(self) -> list[dict[str, float]]:
        return [{"epoch": epoch, "test_accuracy": value} for epoch, value in enumerate(self.config["curve"], 1)]


class Results(NamedTuple):
    name: str
    recipes: tuple[str, ...]  # that the runs belong to
    command: str | None
    machine: str
    date: str
    missing: tuple[str, ...]
    runs: list[Record]


def read_results(folder: str | os.PathLike[str]) -> list[Results]:
    """Every `.json` of the folder, by name; none where there is no folder."""
    return [_read(path) for path in sorted(Path(folder).glob("*.json"))]


def _read(path: Path) -> Results:
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        runs = [_record(run, path) for run in told["runs"]]
        return Results(
            name=path.stem,
            recipes=tuple(name.strip() for name in (told.get("recipe") or "").split(",") if name.strip()),
            command=told.get("command"),
            machine=told["machine"],
            date=told["date"],
            missing=tuple(told.get("missing", ())),
            runs=runs,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: not a file of `labelkin runs export` ({type(error).__name__}: {error}); write it again."
        ) from error


def _record(run: dict[str, Any], path: Path) -> Record:
    config = {
        "objective": run["objective"],
        "options": run["options"],
        "data": run["data"],
        "data_options": run.get("data_options", {}),
        "resolved_backbone": run["backbone"],
        "taxonomy": run.get("taxonomy"),
        "tree": run.get("tree", "built"),
        "settings": run["settings"],
        "curve": run["curve"],
    }
    final = {name: nan if value is None else value for name, value in run["final"].items()}
    return Exported(run.get("id", ""), path, run["label"], config, final, run["seconds"])
