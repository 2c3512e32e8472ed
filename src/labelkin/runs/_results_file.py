"""Write the finished runs of a store to one results file (JSON or CSV), and read results files."""

import json
import os
from collections.abc import Sequence
from datetime import date
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError, near
from labelkin._files import check_replaceable, csv_text, write_text
from labelkin.runs._decisions import Outcomes, packed_outcomes, unpacked_outcomes
from labelkin.runs._run_files import read_measures
from labelkin.runs._store import Record, readable_or_noted

SUFFIXES = (".json", ".csv")


def export_runs(
    store: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    recipe: str | None = None,
    missing: Sequence[str] = (),
    command: str | None = None,
    machine: str | None = None,
    follow_up: bool = False,
) -> int:
    """Write the finished runs of a store to a `.json` file (with the accuracy by epoch) or a `.csv` file.

    Args:
        store: The folder of the runs.
        output: The file.
        recipe: The ids of the recipes that the runs belong to, separated by commas.
        missing: Sentences about what the runs lack, such as seeds.
        command: The command that trained the runs.
        machine: A description of the machine. None uses the devices that the runs recorded.
        follow_up: Whether the runs were planned after results on the same data had been seen. They are then listed, and
            decide nothing over data sets.

    Returns:
        The number of runs written.
    """
    target = Path(output)
    if target.suffix not in SUFFIXES:
        raise InputError(f"{target}: expected a name that ends in .json or .csv.{near(target.suffix, SUFFIXES)}")
    check_replaceable(target, by="labelkin runs export", is_ours=_is_ours)
    runs = [_plain(record) for record in readable_or_noted(store) if record.finished]
    if not runs:
        raise InputError(f"{store}: there are no finished runs to export.")
    if target.suffix == ".csv":
        write_text(target, _as_csv(runs))
        return len(runs)
    content = {
        "name": target.stem,
        "recipe": recipe,
        "command": command,
        "machine": machine or ", ".join(sorted({run["environment"]["device"] for run in runs})),
        "date": date.today().isoformat(),
        "missing": list(missing),
        **({"follow_up": True} if follow_up else {}),
        "runs": runs,
    }
    write_text(target, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return len(runs)


def _is_ours(start: bytes) -> bool:
    """Return whether a file begins as a results file does."""
    return start.startswith(b"id,label,objective,data,") or (
        start.startswith(b'{\n "name": ') and b'"recipe": ' in start
    )


def _plain(record: Record) -> dict[str, Any]:
    measured = {**(record.final or {}), **read_measures(record.path)}
    final = {name: None if isnan(value) else value for name, value in measured.items()}
    outcomes = record.outcomes()
    return {
        "id": record.id,
        "label": record.label,
        "objective": record.objective,
        "data": record.data,
        "data_options": {n: v for n, v in record.config["data_options"].items() if n != "data_dir"},
        "backbone": record.backbone,
        "taxonomy": record.config["taxonomy"],
        "tree": record.config["tree"],
        "seed": record.seed,
        "options": record.options,
        "settings": record.settings,
        "environment": record.config["environment"],
        "final": final,
        "seconds": record.seconds,
        "curve": [round(row["test_accuracy"], 6) for row in record.history() if "test_accuracy" in row],
        **({} if outcomes is None else {"outcomes": packed_outcomes(outcomes)}),
    }


def _as_csv(runs: Sequence[dict[str, Any]]) -> str:
    """Return one row per run; nested values get names with dots."""
    return csv_text([_flat(run) for run in runs])


def _flat(values: dict[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if name in ("curve", "outcomes"):
            continue  # not one value per run
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{name}.")
        else:
            flat[before + name] = value
    return flat


class StoredRecord(Record):
    """A run in a results file, which also contains its accuracy by epoch and the outcomes on the test samples."""

    def history(self) -> list[dict[str, float]]:
        return [{"epoch": epoch, "test_accuracy": value} for epoch, value in enumerate(self.config["curve"], 1)]

    def outcomes(self) -> Outcomes | None:
        packed = self.config["outcomes"]
        return None if packed is None else unpacked_outcomes(packed)


class Results(NamedTuple):
    """The content of a results file."""

    name: str
    recipes: tuple[str, ...]  # the ids of the recipes that the runs belong to
    command: str | None  # the command that trained the runs
    machine: str
    date: str
    missing: tuple[str, ...]  # sentences about what the runs lack
    runs: list[Record]
    follow_up: bool = False  # whether the runs were planned after results on the same data had been seen


def read_results(folder: str | os.PathLike[str]) -> list[Results]:
    """Read all results files (`.json`) of a folder, sorted by name. Returns an empty list if there is no such folder."""
    return [_read(path) for path in sorted(Path(folder).glob("*.json"))]


def _read(path: Path) -> Results:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        runs = [_record(run, path) for run in content["runs"]]
        return Results(
            name=path.stem,
            recipes=tuple(name.strip() for name in (content.get("recipe") or "").split(",") if name.strip()),
            command=content.get("command"),
            machine=content["machine"],
            date=content["date"],
            missing=tuple(content.get("missing", ())),
            runs=runs,
            follow_up=content.get("follow_up") is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: not written by `labelkin runs export` ({type(error).__name__}: {error}); write it again."
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
        "outcomes": run.get("outcomes"),
    }
    if config["outcomes"] is not None:
        unpacked_outcomes(config["outcomes"])  # a damaged file is named when it is read
    final = {name: nan if value is None else value for name, value in run["final"].items()}
    return StoredRecord(run.get("id", ""), path, run["label"], config, final, run["seconds"])
