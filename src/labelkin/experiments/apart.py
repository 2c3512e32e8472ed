"""What is written must not take the place of what it was made from."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from labelkin._checks import InputError
from labelkin.data.arrays import labels_beside
from labelkin.data.corpora.files import at_hand
from labelkin.data.folders import PARTS
from labelkin.experiments.spec import RunSpec


def check_apart(
    output: str | os.PathLike[str],
    *,
    inputs: Iterable[str | os.PathLike[str]],
    run: str | os.PathLike[str],
    spec: RunSpec,
) -> None:
    """Refuse an output that is one of the inputs, a file of the run, or one that the run was trained on, also by a link."""
    if not Path(output).exists():
        return
    kinds = {
        "one of the inputs": inputs,
        "a file of the run itself": Path(run).iterdir(),
        "what the run was trained on": _trained_on(spec),
    }
    for kind, files in kinds.items():
        for file in files:
            path = Path(file).expanduser()
            if path.exists() and os.path.samefile(output, path):
                raise InputError(
                    f"{output}: is {kind}, which would be overwritten; choose another name for the output."
                )


def _trained_on(spec: RunSpec) -> Iterator[Path]:
    """The files that a spec names, and the tables or sentences of a folder, which are called after their part."""
    data = Path(spec.data).expanduser()
    first, _, second = spec.data.partition(":")
    named = (first, second, spec.taxonomy, spec.data_options.get("labels"), *spec.options.values())
    paths = [data, *(Path(name).expanduser() for name in named if isinstance(name, str) and name)]
    for path in paths:
        if path.is_dir():
            yield from (file for file in path.iterdir() if file.name.partition(".")[0].lower() in (*PARTS, "dev"))
        else:
            yield from filter(None, (at_hand(path), labels_beside(path)))
