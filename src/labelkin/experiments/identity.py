"""A run's id: the hash of all that its result depends on. Equal ids are one run, and it is trained once."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from labelkin._checks import InputError
from labelkin.data.arrays import labels_beside
from labelkin.data.fingerprint import digest, fingerprint, scanned
from labelkin.experiments.renames import former_options
from labelkin.experiments.spec import RunSpec
from labelkin.objectives import OBJECTIVES

# Where things lie and how they are fetched, which changes no result.
PLACES = {"data_options": ("data_dir",), "settings": ("workers",)}


def run_id(spec: RunSpec) -> str:
    """Twelve hexadecimal digits of the configuration, the objective's revision, and the content of the data and files that
    it names (see `fingerprint`).
    """
    return _id(spec.as_dict(), OBJECTIVES[spec.objective].revision)


def data_id(spec: RunSpec) -> str:
    """The same of the data alone."""
    return _hash(_data(spec.as_dict()))


def check_unchanged(config: Mapping[str, Any], *, otherwise: str = "") -> None:
    """Refuse data that are not what they were when the run of this config.json was trained; its test set is lost in them."""
    if data_changed(config):
        raise InputError(
            f"{config['data']}: not what it was when the run was trained on it; put the data back as they were{otherwise}."
        )


def data_changed(config: Mapping[str, Any]) -> bool:
    """Whether the data are at hand and not what they were; a run without `data_id` is judged by its id, so that a changed
    taxonomy or file of vectors counts, too.
    """
    spec = RunSpec.from_dict(config)
    if fingerprint(spec.data) == spec.data:
        return False  # a published set, or files that are gone, which reading them says
    if "data_id" in config:
        return bool(config["data_id"] != data_id(spec))
    recorded = {name: config[name] for name in spec.as_dict()}
    return bool(config["id"] != _id(recorded, config["revision"]))


def run_name(spec: RunSpec) -> str:
    """The name of a run's folder in a store."""
    return f"{spec.objective}-seed{spec.settings.seed}-{run_id(spec)}"


def _id(values: Mapping[str, Any], revision: int) -> str:
    told = {**values, **_data(values), "revision": revision}
    told["settings"] = _without_places("settings", told["settings"])
    options = former_options(values["objective"], values["options"])
    told["options"] = {name: _content(value) for name, value in options.items()}
    for name in ("taxonomy", "backbone"):
        told[name] = _content(told[name])
    return _hash(told)


def _data(values: Mapping[str, Any]) -> dict[str, Any]:
    """The set and its options; columns and classes are names, whatever files are called like them."""
    options = _without_places("data_options", values["data_options"])
    if beside := labels_beside(Path(values["data"]).expanduser()):
        options = {"labels": str(beside), **options}
    for name, known in (("labels", _content), ("encoder", _model)):
        if name in options:
            options[name] = known(options[name])
    return {"data": fingerprint(values["data"]), "data_options": options}


def _without_places(group: str, values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in PLACES[group]}


def _content(value: Any) -> Any:
    """The hash of a file's content where the value names a file, also after `embedding:`, else the value: an edited file is
    another one.
    """
    if not isinstance(value, str):
        return value
    kind, colon, rest = value.partition(":")
    if kind == "embedding" and colon:
        return f"{kind}:{_content(rest)}"
    path = Path(value).expanduser()
    return digest(path) if path.is_file() else value


def _model(name: str) -> str:
    """A model's folder by what is in it."""
    folder = Path(name).expanduser()
    return f"folder:{scanned(folder.resolve(), every=True)}" if name != "minilm" and folder.is_dir() else name


def _hash(told: dict[str, Any]) -> str:
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
