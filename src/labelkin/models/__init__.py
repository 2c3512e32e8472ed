"""Backbones: the papers' nets, two tiny ones, and doors to timm and transformers.

A backbone is a module that takes `(B, *input_shape)`, returns features `(B, F)`, and says F in `features`; the
classifier belongs to the objective. Weights are drawn from torch's global generator: `torch.manual_seed` fixes them.
"""

from collections.abc import Sequence
from functools import partial
from inspect import Parameter, signature
from typing import Any

from labelkin._checks import InputError, listed, near
from labelkin.models import embedding, hierarchy, mcel, smoothing, text, tiny
from labelkin.models.blocks import Backbone, Builder, checked_shape
from labelkin.models.doors import hf_backbone, timm_backbone

__all__ = ["BACKBONES", "DOORS", "Backbone", "build", "default"]

# Each family's file holds its names, with the widths that its paper prints.
BACKBONES: dict[str, Builder] = {
    **tiny.NETS,
    **smoothing.NETS,  # 000
    **text.NETS,  # 001
    **hierarchy.NETS,  # 002
    **embedding.NETS,  # 003
    **mcel.NETS,  # 004
}
DOORS: dict[str, Builder] = {"timm": timm_backbone, "hf": hf_backbone}


def build(name: str, input_shape: Sequence[int], **options: Any) -> Backbone:
    """The backbone of that name for inputs of that shape: `(channels, height, width)` or `(features,)`.

    `name` is one of `BACKBONES`, or `timm:NAME` or `hf:NAME`. `options` are the builder's own keywords.
    """
    shape = checked_shape(input_shape)
    builder = _builder(name)
    _check_options(name, builder, options)
    try:
        return builder(shape, **options)
    except InputError as error:
        raise InputError(f"backbone {name!r}: {error}") from error


def default(input_shape: Sequence[int]) -> str:
    """The name of a fair first choice: `resnet-18` from 32 pixels a side, below it `tiny-cnn`, else `mlp`."""
    shape = checked_shape(input_shape)
    if len(shape) == 1 or min(shape[1:]) < 8:
        return "mlp"
    return "tiny-cnn" if min(shape[1:]) < 32 else "resnet-18"


def _builder(name: str) -> Builder:
    door, colon, inner = name.partition(":")
    if colon and inner and door in DOORS:
        return partial(DOORS[door], inner)
    if name not in BACKBONES:
        doors = " or ".join(f"{door}:NAME" for door in DOORS)
        hint = near(name, BACKBONES) or f" The names: {', '.join(BACKBONES)}."
        raise InputError(f"there is no backbone {name!r}; expected a name of BACKBONES, {doors}.{hint}")
    return BACKBONES[name]


def _check_options(name: str, builder: Builder, options: dict[str, Any]) -> None:
    """Options are the keywords that the name leaves open: "wrn-28-8" has its width fixed."""
    fixed = builder.keywords if isinstance(builder, partial) else {}
    keywords = [p for p in signature(builder).parameters.values() if p.name not in fixed]
    if any(p.kind is Parameter.VAR_KEYWORD for p in keywords):
        return
    known = [p.name for p in keywords if p.kind is Parameter.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            takes = f"it takes {listed(known)}" if known else "it takes none"
            raise InputError(f"backbone {name!r} has no option {option!r}; {takes}.{near(option, known)}")
