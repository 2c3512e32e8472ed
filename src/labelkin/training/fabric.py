"""Lightning Fabric, from whichever of its two packages is installed."""

from typing import Any

import torch

from labelkin._extras import MissingExtra, require
from labelkin.training.settings import Settings
from labelkin.training.task import Place


def make_fabric(settings: Settings) -> Any:
    use = "training"
    try:
        fabric = require("lightning_fabric", extra="train", use=use)
    except MissingExtra:
        fabric = require("lightning.fabric", extra="train", use=use)
    return fabric.Fabric(
        accelerator=settings.accelerator,
        devices=settings.devices,
        strategy=settings.strategy,
        precision=settings.precision,
    )


def place_of(fabric: Any) -> Place:
    def gather(part: torch.Tensor) -> torch.Tensor:
        together: torch.Tensor = fabric.all_gather(part)
        return together if fabric.world_size > 1 else together.unsqueeze(0)

    return Place(fabric.device, fabric.global_rank, fabric.world_size, gather)
