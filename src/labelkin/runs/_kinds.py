"""Kinds of runs. Each kind is a module that trains one type of task; it is imported when it is first used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from labelkin._checks import InputError
from labelkin.data import is_corpus

if TYPE_CHECKING:
    from labelkin.runs._spec import RunSpec
    from labelkin.runs._workspace import DataWorkspace
    from labelkin.training import Progress, Trained

# The module of each kind; it provides the functions of `Kind`.
KINDS = {
    "classification": "labelkin.runs._classification",
    "translation": "labelkin.translate._run",
}


class Kind(Protocol):
    """The functions that each module in `KINDS` provides."""

    COMMAND: str  # the command that uses a finished run, as in `labelkin COMMAND RUN`

    def check(self, spec: RunSpec, workspace: DataWorkspace) -> None:
        """Refuse a run that the data, the objective or the machine do not allow, before any training."""

    def train(
        self,
        spec: RunSpec,
        path: str | os.PathLike[str] | None,
        *,
        resume: bool,
        workspace: DataWorkspace,
        progress: Callable[[int], Progress],
        log: Callable[[Mapping[str, float]], None],
    ) -> Trained:
        """Train the run and store it in the folder `path`, if one is given."""

    def fingerprint(self, data: str) -> str:
        """Return a string that changes with the content of the data, or the name itself for published data."""

    def data_files(self, spec: RunSpec) -> Iterator[Path]:
        """Yield the files that the run was trained on."""


def kind_name(data: str) -> str:
    """Return the kind of runs on these data."""
    return "translation" if is_corpus(data) else "classification"


def kind_of(data: str) -> Kind:
    """Return the module for runs on these data."""
    return _module(kind_name(data))


def kind_in(config: Mapping[str, Any]) -> str:
    """Return the kind in a config.json; earlier versions stored it for translation runs only."""
    kind = str(config.get("kind") or "classification")
    if kind not in KINDS:
        raise InputError(
            f"kind: expected one of {', '.join(KINDS)}, got {kind!r}; use the labelkin version that wrote it."
        )
    return kind


def _module(name: str) -> Kind:
    return cast(Kind, import_module(KINDS[name]))
