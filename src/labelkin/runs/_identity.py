"""The id of a run: a hash of everything that its result depends on. Runs with equal ids are trained once."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from labelkin._checks import InputError
from labelkin.data import digest, file_digests, folder_content, hash_lines, labels_beside, listing_digest
from labelkin.models import LIBRARIES
from labelkin.objectives import OBJECTIVES
from labelkin.runs._compatibility import NOT_OF_THE_TEST_SET, original_options, settings_that_count
from labelkin.runs._kinds import kind_of
from labelkin.runs._places import located
from labelkin.runs._run_files import read_config
from labelkin.runs._spec import RunSpec

# Options for where data are and how they are read. They do not change results.
PLACES = {"data_options": ("data_dir",), "settings": ("workers", "graph")}


def run_id(spec: RunSpec) -> str:
    """Return the id of a run: twelve hexadecimal digits.

    The hash covers the configuration, the revision of the objective, and the content of the data and of the files that the
    configuration names. `labelkin.runs._compatibility` keeps ids unchanged across versions.
    """
    return _id(spec.as_dict(), OBJECTIVES[spec.objective].revision_of(spec.options))


def data_id(spec: RunSpec, *, without: Sequence[str] = ()) -> str:
    """Return the same kind of hash for only the data and their options, except those in `without`.

    Without `NOT_OF_THE_TEST_SET`, it is the same for all folds and for all uses of partial labels.
    """
    values = spec.as_dict()
    values["data_options"] = {n: v for n, v in values["data_options"].items() if n not in without}
    return _hash(_data(values))


def check_unchanged(config: Mapping[str, Any], *, otherwise: str = "") -> None:
    """Refuse data that changed since the run with this config.json was trained: its test set cannot be rebuilt."""
    if data_changed(config):
        raise InputError(
            f"{config['data']}: the data changed since this run was trained; restore the original data{otherwise}."
        )


def data_changed(config: Mapping[str, Any]) -> bool:
    """Return whether the data are available and differ from those that the run was trained on.

    A run without `data_id` is judged by its id, so a changed taxonomy or file of vectors counts as well.
    """
    spec = RunSpec.from_dict(config)
    if kind_of(spec.data).fingerprint(spec.data) == spec.data:
        return False  # a published set, or files that are gone; reading them reports that
    if content_changed(config):
        return True
    if "data_id" in config:
        return config["data_id"] not in (data_id(spec, without=NOT_OF_THE_TEST_SET), data_id(spec, without=("fold",)))
    recorded = {name: config[name] for name in spec.as_dict()}
    return bool(config["id"] != _id(recorded, config["revision"]))


def content_changed(config: Mapping[str, Any], known: dict[str, str | None] | None = None) -> bool:
    """Return whether a folder of images is available and the content of a file differs from that of the training.

    Ids contain the names and sizes of images only. Runs of earlier versions recorded no content.

    Args:
        config: The configuration of a run.
        known: Hashes of content that was already read; new ones are added.
    """
    recorded, known = config.get("data_content"), {} if known is None else known
    if recorded is None:
        return False
    if config["data"] not in known:
        known[config["data"]] = folder_content(config["data"])
    return known[config["data"]] not in (None, recorded)


def check_contents(folders: Sequence[Path]) -> None:
    """Refuse runs on images that were replaced by others of the same names and sizes after the training."""
    known: dict[str, str | None] = {}
    for folder in folders:
        config = read_config(folder)
        if config is not None and content_changed(located(config, folder), known):
            raise InputError(
                f"{folder}: this run was trained on other images of the same names and sizes in {config['data']}; restore "
                "them, choose another folder for the runs, or remove this run."
            )


def run_name(spec: RunSpec) -> str:
    """Return the name of a run's folder in a store."""
    return folder_name(spec, run_id(spec))


def folder_name(spec: RunSpec, known_id: str) -> str:
    """Return the name of a run's folder in a store, given its id."""
    return f"{spec.objective}-seed{spec.settings.seed}-{known_id}"


def content_of(value: Any) -> Any:
    """Return the hash of a file's content if the value names a file, also after `embedding:`; else the value itself."""
    if not isinstance(value, str):
        return value
    kind, colon, rest = value.partition(":")
    if kind == "embedding" and colon:
        return f"{kind}:{content_of(rest)}"
    path = Path(value).expanduser()
    return digest(path) if path.is_file() else value


def _id(values: Mapping[str, Any], revision: int) -> str:
    hashed = {**values, **_data(values), "revision": revision}
    hashed["settings"] = settings_that_count(_without_places("settings", hashed["settings"]))
    for name in ("class_weight", "costs"):
        if name in hashed["settings"]:
            hashed["settings"][name] = content_of(hashed["settings"][name])
    options = original_options(hashed["objective"], hashed["options"])
    hashed["options"] = {name: content_of(value) for name, value in options.items()}
    for name in ("taxonomy", "backbone"):
        hashed[name] = content_of(hashed[name])
    library, colon, folder = str(hashed["backbone"]).partition(":")
    if library in LIBRARIES and colon and values["settings"].get("preprocessing") == "weights":
        hashed["backbone"] = f"{library}:{_local_model(folder)}"
    return _hash(hashed)


def _data(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data and their options. Names of columns and classes stay names, even if a file has the same name."""
    options = _without_places("data_options", values["data_options"])
    if beside := labels_beside(Path(values["data"]).expanduser()):
        options = {"labels": str(beside), **options}
    for name, identify in (("labels", content_of), ("encoder", _model)):
        if name in options:
            options[name] = identify(options[name])
    return {"data": kind_of(values["data"]).fingerprint(values["data"]), "data_options": options}


def _without_places(group: str, values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in PLACES[group]}


def _model(name: str) -> str:
    """Identify a model's folder by its content."""
    folder = Path(name).expanduser()
    return f"folder:{listing_digest(folder.resolve(), every=True)}" if name != "minilm" and folder.is_dir() else name


def _local_model(name: str) -> str:
    """Identify a local model by the content of its files; the name of a published one stays a name."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return name
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    return f"folder:{hash_lines(f'{file.name} {own}' for file, own in zip(files, file_digests(files), strict=True))}"


def _hash(values: dict[str, Any]) -> str:
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]
