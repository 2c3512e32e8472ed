"""Refuse an output file that would overwrite an input."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from labelkin._checks import InputError
from labelkin.runs._kinds import kind_of
from labelkin.runs._spec import RunSpec


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
