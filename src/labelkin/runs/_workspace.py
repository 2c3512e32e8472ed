"""Data sets in memory, shared by all runs on them and by the report; several processes map one copy."""

import hashlib
import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from inspect import signature
from json import dumps
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch.serialization import safe_globals

from labelkin import data, models
from labelkin._checks import InputError, near
from labelkin.data import ArraySplit, Dataset, Normalize, reads_image_files
from labelkin.objectives import OBJECTIVES, Context
from labelkin.runs._identity import content_of, data_id
from labelkin.runs._spec import RunSpec
from labelkin.structure import Taxonomy
from labelkin.training import check_logit_adjustment, class_weights, context_for, costs_for, resolved, taxonomy_for

FOLDER = "LABELKIN_SHARED_DATA"  # names the folder in the environment of the processes
PREFIX = "labelkin-data-"
# All that a shared file may hold beside tensors and plain values; nothing else is unpickled.
PARTS: list[Any] = [Dataset, ArraySplit, Taxonomy, np.ndarray, np.dtype, np.zeros(0).__reduce__()[0]]
PARTS += sorted({type(np.dtype(code)) for code in "?" + np.typecodes["AllInteger"] + np.typecodes["Float"]}, key=repr)
T = TypeVar("T")
CONTEXT_SIDE = 32  # pixels of the images that trees and relations of pretrained runs are computed from


@contextmanager
def sharing() -> Iterator[dict[str, str]]:
    """Create a folder for shared data sets, yield the environment variable that names it, and remove the folder.

    A process that has mapped a file keeps it in memory until it ends.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        yield {FOLDER: folder}


def shared(key: Callable[[], str], load: Callable[[], Dataset]) -> Dataset:
    """Return a data set whose samples are mapped from the file that the processes share; outside of `sharing`, load it.

    Image files that are read batch by batch are not copied. A process keeps its own copy if the disk is too full for the
    file, or if the data have parts other than arrays and a taxonomy.

    Args:
        key: Returns what identifies the data.
        load: Reads the data set.
    """
    folder = os.environ.get(FOLDER)
    if folder is None:
        return load()
    from filelock import FileLock

    path = Path(folder) / f"{hashlib.sha256(key().encode()).hexdigest()}.pt"
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            dataset = load()
            if not isinstance(dataset.train, ArraySplit) or not _written(dataset, path):
                return dataset
    return _mapped(path)


def _mapped(path: Path) -> Dataset:
    with safe_globals(PARTS):
        mapped: Dataset = torch.load(path, mmap=True, weights_only=True)
    return mapped


def _written(dataset: Dataset, path: Path) -> bool:
    """Write a data set to a file, whole or not at all, and return whether it could be written and can be read."""
    part = path.with_suffix(".part")
    try:
        torch.save(dataset, part)
        _mapped(part)
        part.replace(path)
        return True
    except (OSError, RuntimeError, UnpicklingError):  # torch reports a full disk as a RuntimeError
        pass
    part.unlink(missing_ok=True)
    return False


class DataWorkspace:
    """A data set, its tree and the context that objectives are built from. Each is created on first use and cached.

    Args:
        spec: A run on the data.
        like: A workspace with the same data and another taxonomy, whose data set is used.

    Example:
        >>> from labelkin.runs import DataWorkspace, RunSpec
        >>> workspace = DataWorkspace(RunSpec(data="digits"))
        >>> len(workspace.dataset.classes), workspace.serves(RunSpec(data="digits", objective="label-smoothing"))
        (10, True)
    """

    def __init__(self, spec: RunSpec, *, like: "DataWorkspace | None" = None) -> None:
        self.spec, self._like = spec, like
        self._kept: dict[str, object] = {}

    @cached_property
    def dataset(self) -> Dataset:
        """The data set."""
        if self._like is not None:
            return self._like.dataset
        known = [name for name in list(signature(data.load).parameters)[1:] if name != "calibration"]  # a setting
        for name in self.spec.data_options:
            if name not in known:
                raise InputError(
                    f"data_options: there is no option {name!r}; known: {', '.join(known)}.{near(name, known)}"
                )
        options, share = _load_options(self.spec), self.spec.settings.calibration
        return shared(lambda: _data_key(self.spec), lambda: data.load(self.spec.data, calibration=share, **options))

    def prepared(self, spec: RunSpec) -> Dataset:
        """Return the data set as the backbone of a run takes it: images for pretrained weights are not normalized."""
        if preprocessing_for(spec) is None:
            return self.dataset
        if not self.dataset.pixels:
            raise InputError(
                f"backbone {spec.backbone!r}: its weights expect images of bytes (uint8), got samples of shape "
                f"{self.dataset.shape} that are not; choose another backbone, or set preprocessing to 'data'."
            )
        zeros = torch.zeros(self.dataset.shape[0])
        return replace(self.dataset, normalization=Normalize(zeros, zeros + 1))

    @cached_property
    def context(self) -> Context:
        """The classes, the taxonomy and the training data, as objectives take them."""
        side = None if preprocessing_for(self.spec) is None else CONTEXT_SIDE
        return context_for(self.dataset, taxonomy_for(self.spec.taxonomy, self.dataset), side=side)

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """Return the value that is cached under a name; the first call creates it with `make`."""
        if name not in self._kept:
            self._kept[name] = make()
        return cast(T, self._kept[name])

    def serves(self, spec: RunSpec) -> bool:
        """Return whether a run with this spec uses the same data and tree."""
        return _key(self.spec) == _key(spec)

    @property
    def counts(self) -> Tensor:
        """(K,) the number of training samples of each class."""
        return torch.bincount(self.dataset.train.targets, minlength=len(self.dataset.classes))

    def options(self, spec: RunSpec) -> dict[str, Any]:
        """Return the options of the objective with values for names, and with the class weights and costs of the settings."""
        options = resolved(spec.options, self.context.classes)
        choice = options.get("class_weight", spec.settings.class_weight)
        if isinstance(choice, str):
            options["class_weight"] = class_weights(choice, self.counts, self.dataset.classes)
        if options.get("expected_cost") and "costs" not in options and spec.settings.costs is not None:
            options["costs"] = self.costs(spec)
        return options

    def costs(self, spec: RunSpec) -> Tensor | None:
        """Return the (K, K) costs that the settings name, in the order of the classes."""
        return None if spec.settings.costs is None else costs_for(spec.settings.costs, self.dataset.classes)

    def try_objective(self, spec: RunSpec) -> None:
        """Build the objective if the spec sets options, so that a wrong value is reported before any training."""
        check_logit_adjustment(OBJECTIVES[spec.objective], spec.objective, spec.settings.logit_adjustment)
        if not spec.options and spec.settings.class_weight is None:
            return
        try:
            options = self.options(spec)
            OBJECTIVES[spec.objective].build(self.context.with_features(1), **options)
        except (TypeError, AttributeError) as error:  # a string where a number or an array belongs
            given = ", ".join(f"{name}={value!r}" for name, value in spec.options.items())
            raise InputError(f"the objective {spec.objective!r} does not accept {given} ({error}).") from error


class DataCache:
    """The workspaces of a process, so that each data set is read once.

    Data that changed on disk are read again.

    Args:
        limit: The number of workspaces to keep; beyond it, the least recently used one is dropped.

    Example:
        >>> from labelkin.runs import DataCache, RunSpec
        >>> cache = DataCache()
        >>> cache.workspace(RunSpec(data="digits")) is cache.workspace(RunSpec(data="digits"))
        True
    """

    def __init__(self, limit: int = 4) -> None:
        self.limit = limit
        self._workspaces: OrderedDict[tuple[str, str], DataWorkspace] = OrderedDict()

    def workspace(self, spec: RunSpec) -> DataWorkspace:
        """Return the workspace for a run, from the cache if its data are there."""
        data_key = _data_key(spec)
        key = (data_key, dumps(content_of(spec.taxonomy)))
        if key not in self._workspaces:
            like = next((known for (own, _), known in self._workspaces.items() if own == data_key), None)
            self._workspaces[key] = DataWorkspace(spec, like=like)
        self._workspaces.move_to_end(key)
        while len(self._workspaces) > self.limit:
            self._workspaces.popitem(last=False)
        return self._workspaces[key]


def preprocessing_for(spec: RunSpec) -> models.Preprocessing | None:
    """Return the preprocessing that the weights of a run's backbone expect; None if images are prepared by the data."""
    if spec.backbone is None or spec.settings.preprocessing != "weights":
        return None
    return _known_preprocessing(spec.backbone)


@lru_cache(maxsize=16)
def _known_preprocessing(backbone: str) -> models.Preprocessing | None:
    return models.preprocessing(backbone)


def _load_options(spec: RunSpec) -> dict[str, Any]:
    """Return the options to load the data of a run with.

    Image files are read in the size that the backbone expects, and a transformer of texts gets the ids of its tokens.
    """
    options = dict(spec.data_options)
    model = models.text_model(spec.backbone)
    if model is not None:
        options.setdefault("encoder", f"tokens:{model}")
    expected = preprocessing_for(spec)
    if expected is not None and "image_size" not in options and reads_image_files(spec.data, options):
        options["image_size"] = expected.resize
    return options


def _data_key(spec: RunSpec) -> str:
    """Return what identifies the data of a run: how they are read, and their content."""
    return dumps([_key(spec)[:-1], data_id(spec)], sort_keys=True)


def _key(spec: RunSpec) -> tuple[str, str, float, bool, str | None]:
    options, pretrained = dumps(_load_options(spec), sort_keys=True), preprocessing_for(spec) is not None
    return spec.data, options, spec.settings.calibration, pretrained, spec.taxonomy
