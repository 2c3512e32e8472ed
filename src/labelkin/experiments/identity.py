"""A run's id: the hash of all that its result depends on. Equal ids are one run, and it is trained once."""

import json
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from labelkin.experiments.spec import RunSpec
from labelkin.objectives import OBJECTIVES

# Where things lie and how they are fetched, which changes no result.
PLACES = {"data_options": ("data_dir",), "settings": ("workers",)}


def run_id(spec: RunSpec) -> str:
    """Twelve hexadecimal digits of the configuration, the objective's revision and the content of the files it names."""
    told = spec.as_dict()
    for group, names in PLACES.items():
        told[group] = {name: value for name, value in told[group].items() if name not in names}
    told = _with_contents({**told, "options": _with_contents(told["options"])})
    told["revision"] = OBJECTIVES[spec.objective].revision
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


def run_name(spec: RunSpec) -> str:
    """The name of a run's folder in a store."""
    return f"{spec.objective}-seed{spec.settings.seed}-{run_id(spec)}"


def _with_contents(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _content(value) if isinstance(value, str) else value for name, value in values.items()}


def _content(text: str) -> str:
    """The hash of a file's content where the text names a file, else the text: an edited file is other data."""
    path = Path(text)
    if not path.is_file():
        source, colon, target = text.partition(":")  # two files of sentences
        both = colon and Path(source).is_file() and Path(target).is_file()
        return f"{_content(source)}:{_content(target)}" if both else text
    stat = path.stat()
    return _digest(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _digest(path: Path, modified: int, size: int) -> str:
    with path.open("rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"
