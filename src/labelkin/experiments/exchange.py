"""Export finished runs to one results file. Documents are written from such files."""

import json
import os
from collections.abc import Sequence
from datetime import date
from math import isnan
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, near
from labelkin._files import csv_text, write_text
from labelkin.experiments.store import Record, Store

SUFFIXES = (".json", ".csv")


def export_runs(
    store: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    recipe: str | None = None,
    missing: Sequence[str] = (),
    command: str | None = None,
    machine: str | None = None,
) -> int:
    """Write the finished runs of a store to `.json` (with the accuracy by epoch) or `.csv`. Returns their number."""
    target = Path(output)
    if target.suffix not in SUFFIXES:
        raise InputError(f"{target}: expected a name that ends in .json or .csv.{near(target.suffix, SUFFIXES)}")
    runs = [_plain(record) for record in Store(store).records() if record.finished]
    if not runs:
        raise InputError(f"{store}: has no finished runs to export.")
    if target.suffix == ".csv":
        write_text(target, _as_csv(runs))
        return len(runs)
    told = {
        "name": target.stem,
        "recipe": recipe,
        "command": command,
        "machine": machine or ", ".join(sorted({run["environment"]["device"] for run in runs})),
        "date": date.today().isoformat(),
        "missing": list(missing),
        "runs": runs,
    }
    write_text(target, json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return len(runs)


def _plain(record: Record) -> dict[str, Any]:
    measured = {**(record.final or {}), **_measures(record.path)}
    final = {name: None if isnan(value) else value for name, value in measured.items()}
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
    }


def _measures(path: Path) -> dict[str, float]:
    """Read the extra measures of `labelkin reproduce`."""
    file = path / "measures.json"
    found: dict[str, float] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def _as_csv(runs: Sequence[dict[str, Any]]) -> str:
    """Return one row per run; nested values get names with dots."""
    return csv_text([_flat(run) for run in runs])


def _flat(values: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{before}{name}.")
        elif name != "curve":
            found[before + name] = value
    return found
