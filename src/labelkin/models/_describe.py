"""A table of the backbones: their sizes and the inputs that they take."""

from typing import Any, NamedTuple

import torch

from labelkin._checks import InputError
from labelkin._extras import MissingExtra
from labelkin.models._registry import BACKBONES, PRETRAINED, build, preprocessing

SIDES = (8, 16, 28, 32, 64, 128)
FEATURES = 512


class BackboneSummary(NamedTuple):
    """What is known about a backbone before it is built.

    Args:
        name: The name.
        parameters: The number of parameters for the inputs in `example`; None if it cannot be built here.
        features: The width of its output; None if it cannot be built here.
        example: The shape of one input: the smallest image of three channels that it takes, or vectors of 512 numbers.
        needs: A description of its inputs and of the packages that it needs.

    Example:
        >>> from labelkin.models import describe_backbones
        >>> summary = describe_backbones(["mlp-500"])[0]
        >>> summary.features, summary.example, summary.needs
        (500, (512,), 'vectors or images')
    """

    name: str
    parameters: int | None
    features: int | None
    example: tuple[int, ...] | None
    needs: str


def describe_backbones(names: list[str] | None = None) -> list[BackboneSummary]:
    """Describe backbones without allocating their weights.

    Args:
        names: Names of `BACKBONES` and `PRETRAINED`; None describes all of them, and then the libraries of other ones.

    Returns:
        One summary per name.

    Example:
        >>> from labelkin.models import describe_backbones
        >>> describe_backbones(["resnet-18"])[0].needs
        'images of 16 pixels or more'
    """
    found = [_describe(name) for name in ([*BACKBONES, *PRETRAINED] if names is None else names)]
    if names is None:
        needs = {
            "timm": "images, and the package timm",
            "hf": "images or texts, and the package transformers",
            "timm-scratch": "images, and the package timm; random weights",
        }
        found += [BackboneSummary(f"{library}:NAME", None, None, None, words) for library, words in needs.items()]
    return found


def _describe(name: str) -> BackboneSummary:
    if name in PRETRAINED and (expected := preprocessing(name)) is not None:
        side = expected.size
        size, missing = _try(name, (3, side, side), pretrained=False)
        needs = missing or f"images of any size, which it resizes to {side} pixels; pretrained"
        parameters, features = size or (None, None)
        return BackboneSummary(name, parameters, features, (3, side, side), needs)
    vectors, missing = _try(name, (FEATURES,))
    tried = ((side, _try(name, (3, side, side))[0]) for side in SIDES)
    side, size = next(((side, size) for side, size in tried if size is not None), (0, None))
    if vectors is not None:
        needs = "vectors, such as encoded texts" if size is None else "vectors or images"
        return BackboneSummary(name, *vectors, (FEATURES,), needs)
    if size is None:
        return BackboneSummary(name, None, None, None, missing or "inputs of another kind")
    return BackboneSummary(name, *size, (3, side, side), f"images of {side} pixels or more")


def _try(name: str, shape: tuple[int, ...], **options: Any) -> tuple[tuple[int, int] | None, str | None]:
    """Build a backbone on the meta device. Returns its parameters and features, or None and the missing package."""
    try:
        with torch.device("meta"):
            net = build(name, shape, **options)
    except MissingExtra as error:
        return None, str(error)
    except InputError:
        return None, None
    return (sum(parameter.numel() for parameter in net.parameters()), net.features), None
