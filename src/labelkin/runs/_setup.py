"""Parts of the setup of a run: its saved context, its device, the environment and the TensorBoard log."""

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from labelkin._checks import InputError, counted
from labelkin._extras import MissingExtra, require
from labelkin._version import __version__
from labelkin.objectives import Context
from labelkin.structure import Taxonomy
from labelkin.training import Settings, make_fabric


def saved_context(context: Context) -> dict[str, Any]:
    """Return the context as plain values and tensors, without the data."""
    plain = context.without_data()
    assert plain.taxonomy is not None
    return {
        "classes": list(plain.classes),
        "parents": torch.from_numpy(plain.taxonomy.parents.copy()),
        "names": list(plain.taxonomy.names),
        "leaves": torch.from_numpy(plain.taxonomy.leaves.copy()),
        "samples": plain.samples,
        "similar": plain.similar,
    }


def restored_context(saved: Mapping[str, Any]) -> Context:
    """Rebuild a context from the result of `saved_context`."""
    return Context(
        classes=tuple(saved["classes"]),
        taxonomy=Taxonomy(saved["parents"].numpy(), saved["names"], saved["leaves"].numpy()),
        train_samples=saved["samples"],
        similar=saved["similar"],
    )


def fastest_device() -> torch.device:
    """Return the GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def check_machine(settings: Settings) -> None:
    """Refuse an accelerator, devices or a strategy that this machine does not have."""
    try:
        make_fabric(settings)
    except MissingExtra:
        raise
    except (ValueError, RuntimeError, ImportError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"accelerator {settings.accelerator!r}, devices {settings.devices} and strategy {settings.strategy!r} are not "
            f"available on this machine ({reason})"
        ) from error


def is_other_process() -> bool:
    """Return whether this process is not the first of several that train one run."""
    return int(os.environ.get("LOCAL_RANK", "0")) > 0


def environment() -> dict[str, str]:
    """Return the versions and the device that a result may depend on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "labelkin": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "device": device,
    }


@contextmanager
def tensorboard_log(run: str | os.PathLike[str]) -> Iterator[Callable[[Mapping[str, float]], None]]:
    """Yield a `log` function for `train_run` that writes TensorBoard events to `run/tensorboard`."""
    require("tensorboard", extra="tensorboard", use="logging for TensorBoard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(Path(run) / "tensorboard")) as writer:

        def log(row: Mapping[str, float]) -> None:
            for name, value in row.items():
                if name != "epoch":
                    writer.add_scalar(name, value, int(row["epoch"]))
            writer.flush()

        yield log


def check_setup(setup: Mapping[str, Any], classes: int, leaves: int) -> None:
    """Raise an error if the parts of a setup contradict each other or have unexpected types."""
    shape, mean, std = setup["shape"], setup["mean"], setup["std"]
    if classes != leaves:
        raise ValueError(f"it has {classes} classes and a tree with {leaves} leaves")
    if not all(type(size) is int and size > 0 for size in shape) or len(shape) not in (1, 3):
        raise ValueError(f"its samples have the shape {shape!r:.40}")
    if not mean.shape == std.shape == (shape[0],) or not mean.is_floating_point() or not std.is_floating_point():
        raise ValueError(f"its mean and deviation do not have {counted(shape[0], 'number')}")
    if not bool((std > 0).all()) or not bool(mean.isfinite().all()):
        raise ValueError("its mean is not finite, or its deviation is not positive")
    kinds = {"pixels": bool, "columns": list | None, "image": str | None, "text": str | None, "encoder": dict | None}
    for name, kind in kinds.items():
        if not isinstance(setup["samples"].get(name), kind):
            raise TypeError(f"{name} of its samples is {setup['samples'].get(name)!r:.40}")
