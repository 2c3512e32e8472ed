"""The machine that runs are trained and used on."""

import os
import platform

import torch

from labelkin._checks import InputError
from labelkin._extras import MissingExtra
from labelkin._version import __version__
from labelkin.training import Settings
from labelkin.training.fabric import make_fabric


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


def other_process() -> bool:
    """Whether this is not the first of several processes that train one run."""
    return int(os.environ.get("LOCAL_RANK", "0")) > 0


def environment() -> dict[str, str]:
    """Return the versions that a result may depend on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "labelkin": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "device": device,
    }
