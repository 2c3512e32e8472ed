"""One run from its spec: assembled, trained, kept in its folder."""

import os
import platform
import shlex
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from labelkin import data, models
from labelkin._checks import InputError, near
from labelkin._extras import MissingExtra
from labelkin._version import __version__
from labelkin.data import Dataset
from labelkin.data.corpora import is_corpus
from labelkin.data.unlabelled import samples_of
from labelkin.experiments.assemble import saved_context
from labelkin.experiments.identity import data_id, run_id
from labelkin.experiments.lock import locked
from labelkin.experiments.spec import RunSpec
from labelkin.objectives import OBJECTIVES, Context
from labelkin.training import Classify, Place, RunFolder, Settings, Trained, Trainer
from labelkin.training.assemble import build_model, context_for, resolved, taxonomy_for
from labelkin.training.fabric import make_fabric
from labelkin.training.loop import check_accumulation
from labelkin.training.progress import Progress, Silent


class Bench:
    """A data set with what all runs on it share: its tree, and what objectives are built from."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec

    @cached_property
    def dataset(self) -> Dataset:
        known = list(signature(data.load).parameters)[1:]
        for name in self.spec.data_options:
            if name not in known:
                raise InputError(
                    f"data_options: there is no option {name!r} of data; known: {', '.join(known)}.{near(name, known)}"
                )
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
            options = resolved(spec.options, self.context.classes)
            OBJECTIVES[spec.objective].build(self.context.with_features(1), **options)
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
        if not resume and not other_process():  # other processes find what the first one wrote
            raise InputError(
                f"{path}: holds a run already; go on with it by `labelkin train --resume {shlex.quote(str(path))}`, or choose "
                "another folder."
            )
        check_same(path, spec)
    elif path is not None and not other_process():
        RunFolder(os.fspath(path)).check_free()
    if is_corpus(spec.data):
        from labelkin.experiments.translation import train_translation  # which imports this file

        return train_translation(spec, path, resume=resume, progress=progress, log=log)
    bench = bench if bench is not None and bench.serves(spec) else Bench(spec)
    check(spec, bench)
    dataset = bench.dataset
    backbone = spec.backbone or models.default(dataset.shape)
    options = resolved(spec.options, bench.context.classes)
    context = bench.context.afresh()
    model = build_model(spec.objective, options, backbone, dataset.shape, context, seed=spec.settings.seed)
    task = Classify(dataset, context.tree())
    folder = None if path is None else RunFolder(os.fspath(path))
    trainer = Trainer(model, task, spec.settings, checkpoint=folder, progress=progress, log=log)
    with nullcontext() if folder is None or other_process() else locked(folder.path):
        if folder is not None:
            _begin(folder, spec, backbone, dataset, context, options)
        trained = trainer.fit(resume=resume)
        if torch.distributed.is_initialized():
            torch.distributed.barrier()  # the first process has written what the others may read
    return trained


def other_process() -> bool:
    """Whether this is not the first of several processes that train one run."""
    return int(os.environ.get("LOCAL_RANK", "0")) > 0


def is_begun(spec: RunSpec, path: str | os.PathLike[str]) -> bool:
    """Whether the folder holds this very run, and it has not ended; a finished or another one is refused."""
    folder = RunFolder(os.fspath(path))
    if other_process():  # the first one has looked, and has perhaps begun the run meanwhile
        return (folder.path / "state.json").exists()
    if not (folder.path / "config.json").exists():
        folder.check_free()
        return False
    check_same(path, spec)
    if folder.final is not None:
        look = f"labelkin {'translate' if is_corpus(spec.data) else 'evaluate'} {shlex.quote(str(path))}"
        raise InputError(f"{path}: this run is finished; use it with `{look}`, or train it anew with another --out.")
    return True


def check_same(path: str | os.PathLike[str], spec: RunSpec) -> None:
    """Refuse to go on with a run of another configuration, or of an objective that has changed since."""
    config = RunFolder(os.fspath(path)).config
    if config["id"] == run_id(spec):
        return
    revision = OBJECTIVES[spec.objective].revision
    if config["objective"] == spec.objective and config["revision"] != revision:
        raise InputError(
            f"{path}: trained with revision {config['revision']} of {spec.objective!r}, this labelkin has {revision} "
            "and gives other results; choose another folder, or remove it."
        )
    apart = spec.differs_in(RunSpec.from_dict(config))[:3] or ["files of other content"]
    raise InputError(f"{path}: holds a run with {'; '.join(apart)}; choose another folder, or remove it.")


def check(spec: RunSpec, bench: Bench) -> None:
    """Refuse what data, objective and machine do not allow before a folder is made."""
    if is_corpus(spec.data):
        return  # which is checked as it is read
    bench.try_out(spec)
    if spec.backbone in models.BACKBONES or (spec.backbone is not None and ":" not in spec.backbone):
        shape = bench.dataset.shape  # read before, or the data would be made on the meta device too
        with torch.device("meta"):
            models.build(spec.backbone, shape)
    check_accumulation(OBJECTIVES[spec.objective], spec.settings)
    Classify(bench.dataset, bench.context.tree()).batches(spec.settings, Place(torch.device("cpu")))
    check_machine(spec.settings)


def check_machine(settings: Settings) -> None:
    """Refuse an accelerator, devices or a strategy that this machine does not have."""
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


def _begin(
    folder: RunFolder,
    spec: RunSpec,
    backbone: str,
    dataset: Dataset,
    context: Context,
    options: Mapping[str, Any],
) -> None:
    """Write what the run is, unless it has begun before; of several processes the first one does it."""
    if (folder.path / "config.json").exists() or other_process():
        return
    config = {
        "id": run_id(spec),
        "data_id": data_id(spec),
        **spec.as_dict(),
        "resolved_backbone": backbone,
        "revision": OBJECTIVES[spec.objective].revision,
        "tree": _origin(spec, context),
        "environment": environment(),
    }
    setup = {
        "context": saved_context(context),
        "options": dict(options),
        "shape": list(dataset.shape),
        "samples": samples_of(dataset, spec.data, **spec.data_options)._asdict(),
        "mean": dataset.normalize.mean,
        "std": dataset.normalize.std,
    }
    RunFolder.create(folder.path, config, setup)


def _origin(spec: RunSpec, context: Context) -> str:
    if spec.taxonomy is not None:
        return "given"
    return "built" if context.taxonomy is None else "own"


def environment() -> dict[str, str]:
    """The versions that a result may depend on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "labelkin": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "device": device,
    }
