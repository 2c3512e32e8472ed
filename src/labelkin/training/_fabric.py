"""Lightning Fabric, from the package `lightning_fabric` or `lightning`, whichever is installed."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

import torch

from labelkin._extras import MissingExtra, require
from labelkin.training._settings import Settings
from labelkin.training._task import Place


def make_fabric(settings: Settings) -> Any:
    """Return a Fabric with the settings' accelerator, devices, strategy and precision."""
    fabric = _import_fabric()
    with without_advice():
        return fabric.Fabric(
            accelerator=settings.accelerator,
            devices=settings.devices,
            strategy=settings.strategy,
            precision=settings.precision,
        )


def _import_fabric() -> Any:
    try:
        with version_only("torchmetrics"):
            return import_module("lightning_fabric")
    except ImportError:
        pass  # it is not installed, or it uses more of torchmetrics than the version
    try:
        return require("lightning_fabric", extra="train", use="training")
    except MissingExtra:
        return require("lightning.fabric", extra="train", use="training")


@contextmanager
def version_only(package: str) -> Iterator[None]:
    """Let imports of a package that is not yet imported find a module with its version and nothing else.

    Fabric imports torchmetrics to read its version, and torchmetrics imports transformers if it is installed: seconds of
    processor time in every process that trains.
    """
    try:
        found = version(package)
    except PackageNotFoundError:
        found = ""
    stand_in = ModuleType(package)
    stand_in.__dict__["__version__"] = found
    if found:
        sys.modules.setdefault(package, stand_in)
    try:
        yield
    finally:
        if sys.modules.get(package) is stand_in:
            del sys.modules[package]


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
