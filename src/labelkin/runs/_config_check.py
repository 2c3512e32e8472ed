"""Check the types in a run's JSON files, so that a damaged run is named instead of failing later. Needs no torch."""

from math import nan
from os import PathLike
from typing import Any

from labelkin._checks import InputError, check_count

CONFIG: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "data": (str,),
    "objective": (str,),
    "options": (dict,),
    "data_options": (dict,),
    "resolved_backbone": (str,),
    "taxonomy": (str, type(None)),
    "tree": (str,),
    "settings": (dict,),
    "environment": (dict,),
}
TYPE_NAMES = {str: "text", dict: "an object", type(None): "null"}


def check_config(path: str | PathLike[str], config: dict[str, Any]) -> None:
    """Raise `InputError` if a config.json lacks a field that every run has, or has one of another type."""
    for name, types in CONFIG.items():
        if name not in config:
            raise InputError(f"{path}: the file is damaged (it has no {name!r}); train the run again.")
        if not isinstance(config[name], types):
            expected = " or ".join(TYPE_NAMES[kind] for kind in types)
            raise InputError(
                f"{path}: the file is damaged ({name!r} is {config[name]!r:.40}, expected {expected}); train the run again."
            )
    for name, least in (("seed", 0), ("epochs", 0)):
        try:
            check_count(f"settings: {name}", config["settings"].get(name), least=least)
        except InputError as error:
            raise InputError(f"{path}: the file is damaged ({str(error).rstrip('.')}); train the run again.") from error


def check_numbers(path: str | PathLike[str], values: Any) -> dict[str, float]:
    """Return an object of numbers, NaN for null; raise `InputError` if it is anything else."""
    if not isinstance(values, dict):
        raise InputError(f"{path}: the file is damaged (it is {values!r:.40}, expected an object of numbers).")
    for name, value in values.items():
        if type(value) not in (float, int, type(None)):
            raise InputError(f"{path}: the file is damaged ({name!r} is {value!r:.40}, expected a number).")
    return {name: nan if value is None else value for name, value in values.items()}
