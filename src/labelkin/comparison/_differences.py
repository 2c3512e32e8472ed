"""The settings in which runs differ. Needs neither torch nor numpy, so that thousands of runs can be listed quickly."""

from collections.abc import Iterable, Sequence
from json import dumps
from typing import Any

from labelkin.runs import Record

# Settings in which the runs of one comparison may differ.
IGNORED_SETTINGS = ("seed", "workers", "graph", "threads", "devices", "strategy", "accelerator")


def setting_differences(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return, for each run, the settings, data options and tree in which the runs differ, except seed, machine and epochs."""
    different: dict[str, dict[str, Any]] = {}  # thousands of runs have few different settings
    keys = []
    for record in records:
        fact = {**setting_of(record), "taxonomy": record.config["taxonomy"]}
        keys.append(key := repr(fact))
        different.setdefault(key, fact)
    names = list(dict.fromkeys(name for fact in different.values() for name in fact))
    differing = [name for name in names if name != "epochs" and differ([fact.get(name) for fact in different.values()])]
    return [{name: different[key].get(name) for name in differing} for key in keys]


def setting_of(record: Record) -> dict[str, Any]:
    """Return the training settings and data options of a run, except its seed and machine."""
    training = record.settings
    for name in IGNORED_SETTINGS:
        training.pop(name, None)
    return {**training, **record.config["data_options"]}


def differ(values: Sequence[Any]) -> bool:
    """Return whether some values of JSON differ; equal numbers of another type, such as 1 and 1.0 or true, do."""
    return len({dumps(value, sort_keys=True) for value in values}) > 1
