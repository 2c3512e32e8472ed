"""Parts of the setup of a run: its saved context, its device, the environment and the TensorBoard log."""

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from labelkin._checks import InputError
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
