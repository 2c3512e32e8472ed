"""The files that a run names: found from any folder, and never overwritten by an output."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from labelkin._checks import InputError
from labelkin.data import DATASETS
from labelkin.objectives import RELATIONS
from labelkin.runs._kinds import kind_of
from labelkin.runs._spec import ARRAY_OPTIONS, RunSpec
from labelkin.structure import catalogue

STARTED_IN = "started_in"  # the folder that relative paths in config.json start from, relative to the run if it can be
FILE_OPTIONS = {"data_options": ("data_dir", "labels", "encoder"), "options": tuple(ARRAY_OPTIONS)}
PREFIXES = ("embedding:", "hf:", "st:", "timm:", "tokens:")  # before names that may be files or folders
BUILT_IN = {
    "minilm",
    "hashed-tfidf",
    "hashed-code",
    "hashed-characters",
    "wordnet",
    *RELATIONS,
}  # have precedence over files of these names


def started_in(spec: RunSpec, run: Path) -> dict[str, str]:
    """Return the entry of config.json that `located` needs; empty if the spec names no existing file by a relative path.

    The entry is not part of the spec, so the id of a run does not depend on it.
    """
    here = Path.cwd()
    if _moved(spec.as_dict(), here, Path("/", "nowhere")) == spec.as_dict():
        return {}
    try:
        return {STARTED_IN: Path(os.path.relpath(here, run.resolve())).as_posix()}
    except ValueError:  # on another drive
        return {STARTED_IN: here.as_posix()}


def located(config: Mapping[str, Any], run: Path) -> dict[str, Any]:
    """Return a run's configuration with the paths of files that exist where the run was started, but not here.

    A run that moved together with its data is found by the relative path. Files that are gone keep the name that they had.
    """
    origin = config.get(STARTED_IN)
    if not isinstance(origin, str):
        return dict(config)
    return _moved(config, Path(os.path.normpath(run.resolve() / origin)), Path.cwd())


def _moved(values: Mapping[str, Any], origin: Path, here: Path) -> dict[str, Any]:
    """Return a configuration with absolute paths for the files in `origin` that are not the same ones in `here`."""
    moved = dict(values)
    data, taxonomy = str(moved["data"]), moved["taxonomy"]
    if data not in DATASETS:
        whole = (origin / data).exists()  # else two sides of a parallel corpus
        moved["data"] = ":".join(_path(side, origin, here) for side in ([data] if whole else data.split(":")))
    if taxonomy not in catalogue.names():
        moved["taxonomy"] = _path(taxonomy, origin, here)
    if str(moved["backbone"]).startswith(PREFIXES):
        moved["backbone"] = _path(moved["backbone"], origin, here)
    for group, names in FILE_OPTIONS.items():
        options = moved[group]
        moved[group] = {n: _path(value, origin, here) if n in names else value for n, value in options.items()}
    return moved


def _path(value: Any, origin: Path, here: Path) -> Any:
    if not isinstance(value, str) or value in BUILT_IN or "\0" in value:
        return value
    prefix = next(filter(value.startswith, PREFIXES), "")
    name = value.removeprefix(prefix)
    if not name or Path(name).expanduser().is_absolute():
        return value
    there = origin / name
    if not there.exists() or ((here / name).exists() and os.path.samefile(there, here / name)):
        return value
    return f"{prefix}{there}"


def check_no_overwrite(
    output: str | os.PathLike[str],
    *,
    inputs: Iterable[str | os.PathLike[str]],
    run: str | os.PathLike[str],
    spec: RunSpec,
) -> None:
    """Refuse an output that is one of the inputs, a file of the run, or a file of its training data; links are followed."""
    if not Path(output).exists():
        return
    kinds = {
        "one of the inputs": inputs,
        "a file of the run itself": Path(run).iterdir(),
        "a file that the run was trained on": _trained_on(spec),
    }
    for kind, files in kinds.items():
        for file in files:
            path = Path(file).expanduser()
            if path.exists() and os.path.samefile(output, path):
                raise InputError(
                    f"{output}: this is {kind}, which would be overwritten; choose another name for the output."
                )


def _trained_on(spec: RunSpec) -> Iterator[Path]:
    """Yield the files of the data and the other files that a spec names."""
    yield from kind_of(spec.data).data_files(spec)
    named = (spec.taxonomy, spec.data_options.get("labels"), *spec.options.values())
    yield from (Path(name).expanduser() for name in named if isinstance(name, str) and name)
