"""Lightning Fabric, from the package `lightning_fabric` or `lightning`, whichever is installed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from labelkin._extras import MissingExtra, require
from labelkin.training._settings import Settings
from labelkin.training._task import Place


def make_fabric(settings: Settings) -> Any:
    """Return a Fabric with the settings' accelerator, devices, strategy and precision."""
    use = "training"
    try:
        fabric = require("lightning_fabric", extra="train", use=use)
    except MissingExtra:
        fabric = require("lightning.fabric", extra="train", use=use)
    with without_advice():
        return fabric.Fabric(
            accelerator=settings.accelerator,
            devices=settings.devices,
            strategy=settings.strategy,
            precision=settings.precision,
        )


@contextmanager
def without_advice() -> Iterator[None]:
    """Silence Fabric's hints on precision, which it would print for every run; warnings are still shown."""
    loggers = [
        logging.getLogger(f"{package}.utilities.rank_zero") for package in ("lightning_fabric", "lightning.fabric")
    ]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def place_of(fabric: Any) -> Place:
    """Return the device and the rank of this process, and a function that gathers tensors of all processes."""

    def gather(part: torch.Tensor) -> torch.Tensor:
        together: torch.Tensor = fabric.all_gather(part)
        return together if fabric.world_size > 1 else together.unsqueeze(0)

    return Place(fabric.device, fabric.global_rank, fabric.world_size, gather)
