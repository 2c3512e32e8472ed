"""One run from its spec: assembled, trained, kept in its folder."""

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from labelkin import data, models
from labelkin._checks import InputError
from labelkin._extras import MissingExtra
from labelkin._version import __version__
from labelkin.data import Dataset
from labelkin.data.unlabelled import samples_of
from labelkin.experiments.assemble import saved_context
from labelkin.experiments.spec import RunSpec
from labelkin.objectives import OBJECTIVES, Context
from labelkin.training import Classify, Place, RunFolder, Settings, Trained, Trainer
from labelkin.training.assemble import build_model, context_for, taxonomy_for
from labelkin.training.fabric import make_fabric
from labelkin.training.progress import Progress, Silent


class Bench:
    """A data set with what all runs on it share: its tree, and what objectives are built from."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec

    @cached_property
    def dataset(self) -> Dataset:
        return data.load(self.spec.data, **self.spec.data_options)

    @cached_property
    def context(self) -> Context:
        return context_for(self.dataset, taxonomy_for(self.spec.taxonomy, self.dataset))

    def serves(self, spec: RunSpec) -> bool:
        ours = self.spec
        return (spec.data, spec.data_options, spec.taxonomy) == (ours.data, ours.data_options, ours.taxonomy)

    def try_out(self, spec: RunSpec) -> None:
        """Build the objective where it is given options, so that a wrong value shows before any training."""
        if not spec.options:
            return
        try:
            OBJECTIVES[spec.objective].build(replace(self.context, features=1), **spec.options)
        except (TypeError, AttributeError) as error:  # a word where a number or an array belongs
            given = ", ".join(f"{name}={value!r}" for name, value in spec.options.items())
            raise InputError(f"the objective {spec.objective!r} cannot take {given} ({error}).") from error


def train(
    spec: RunSpec,
    path: str | os.PathLike[str] | None = None,
    *,
    resume: bool = False,
    bench: Bench | None = None,
    progress: Callable[[int], Progress] = lambda steps: Silent(),
    log: Callable[[Mapping[str, float]], None] = lambda row: None,
) -> Trained:
    """Train what the spec says. With a `path` the run is kept there, and `resume` goes on where it stands."""
    if path is not None and (Path(path) / "config.json").exists():
        if not resume and not int(os.environ.get("LOCAL_RANK", "0")):  # other processes find what the first one wrote
            raise InputError(
                f"{path}: holds a run already; go on with it by `labelkin train --resume {path}`, or choose another folder."
            )
        check_same(path, spec)
    bench = bench if bench is not None and bench.serves(spec) else Bench(spec)
    bench.try_out(spec)
    dataset, context = bench.dataset, bench.context
    backbone = spec.backbone or models.default(dataset.shape)
    model = build_model(spec.objective, spec.options, backbone, dataset.shape, context, seed=spec.settings.seed)
    task = Classify(dataset, context.tree())
    folder = None if path is None else RunFolder(os.fspath(path))
    trainer = Trainer(model, task, spec.settings, folder=folder, progress=progress, log=log)
    _check_settings(spec.settings, task)
    if folder is not None:
        _begin(folder, spec, backbone, dataset, context)
    trained = trainer.fit(resume=resume)
    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # the first process has written what the others may read
    return trained


def check_same(path: str | os.PathLike[str], spec: RunSpec) -> None:
    """Refuse to go on with a run of another configuration, or of an objective that has changed since."""
    config = RunFolder(os.fspath(path)).config
    there = RunSpec.from_dict(config)
    if there != spec:
        raise InputError(
            f"{path}: holds a run with {'; '.join(spec.differs_in(there)[:3])}; choose another folder, or remove it."
        )
    revision = OBJECTIVES[spec.objective].revision
    if config["revision"] != revision:
        raise InputError(
            f"{path}: trained with revision {config['revision']} of {spec.objective!r}, this labelkin has {revision} "
            "and gives other results; choose another folder, or remove it."
        )


def _check_settings(settings: Settings, task: Classify) -> None:
    """Refuse what data and machine do not allow before a folder is made."""
    task.batches(settings, Place(torch.device("cpu")))
    try:
        make_fabric(settings)
    except MissingExtra:
        raise
    except (ValueError, RuntimeError, ImportError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"accelerator {settings.accelerator!r}, devices {settings.devices} and strategy {settings.strategy!r} are not to "
            f"be had on this machine ({reason})"
        ) from error


def _begin(folder: RunFolder, spec: RunSpec, backbone: str, dataset: Dataset, context: Context) -> None:
    """Write what the run is, unless it has begun before; of several processes the first one does it."""
    if (folder.path / "config.json").exists() or int(os.environ.get("LOCAL_RANK", "0")):
        return
    config = {
        **spec.as_dict(),
        "resolved_backbone": backbone,
        "revision": OBJECTIVES[spec.objective].revision,
        "tree": _origin(spec, context),
        "environment": environment(),
    }
    setup = {
        "context": saved_context(context),
        "options": dict(spec.options),
        "shape": list(dataset.shape),
        "samples": samples_of(dataset, spec.data, **spec.data_options)._asdict(),
        "mean": dataset.normalise.mean,
        "std": dataset.normalise.std,
    }
    RunFolder.create(folder.path, config, setup)


def _origin(spec: RunSpec, context: Context) -> str:
    if spec.taxonomy is not None:
        return "given"
    return "built" if context.taxonomy is None else "own"


def tree_in_words(config: Mapping[str, Any]) -> str:
    """Where the tree of a run came from."""
    if config["tree"] == "given":
        return f"{config['taxonomy']!r}, as asked for"
    if config["tree"] == "own":
        return f"the one that {config['data']!r} comes with"
    return "built from the training data, by average linkage of the class means, since none was given"


def environment() -> dict[str, str]:
    """The versions that a result may depend on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "labelkin": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "device": device,
    }
