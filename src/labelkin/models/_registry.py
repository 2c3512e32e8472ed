"""Backbones by name."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from inspect import Parameter, signature
from typing import Any

from torch import nn

from labelkin._checks import InputError, listed, near
from labelkin.models import (
    _label_embedding_nets as embedding,
)
from labelkin.models import (
    _loss_in_layers_nets as hierarchy,
)
from labelkin.models import (
    _mcel_nets as mcel,
)
from labelkin.models import (
    _small_nets as tiny,
)
from labelkin.models import (
    _smoothing_nets as smoothing,
)
from labelkin.models import (
    _text_head as text,
)
from labelkin.models._blocks import Backbone, Builder, checked_shape
from labelkin.models._efficientnet import SIDES, efficientnet_lite0, expected_images
from labelkin.models._preprocessing import Prepare, Preprocessing, hf_preprocessing, takes_texts, timm_preprocessing
from labelkin.models._residual_head import ResidualHead
from labelkin.models._third_party import hf_backbone, hf_config, timm_backbone, timm_config, timm_untrained

__all__ = [
    "BACKBONES",
    "LIBRARIES",
    "PRETRAINED",
    "Backbone",
    "build",
    "default",
    "is_pretrained",
    "network_config",
    "preprocessing",
    "text_model",
]

# Each module names its networks, with the widths that its paper states.
BACKBONES: dict[str, Builder] = {
    **tiny.NETS,
    **smoothing.NETS,  # 000
    **text.NETS,  # 001
    **hierarchy.NETS,  # 002
    **embedding.NETS,  # 003
    **mcel.NETS,  # 004
}
# Networks whose weights come from a package, each behind an extra.
PRETRAINED: dict[str, Builder] = {name: partial(efficientnet_lite0, name=name) for name in SIDES}
LIBRARIES: dict[str, Builder] = {"timm": timm_backbone, "hf": hf_backbone}
UNTRAINED: dict[str, Builder] = {"timm-scratch": timm_untrained}  # their networks with random weights
EXPECTED: dict[str, Preprocessing] = {name: expected_images(side) for name, side in SIDES.items()}
PUBLISHED: dict[str, Callable[[str], Preprocessing | None]] = {"timm": timm_preprocessing, "hf": hf_preprocessing}

CONFIGS: dict[str, Callable[[str], dict[str, Any] | None]] = {"timm": timm_config, "hf": hf_config}


def build(
    name: str, input_shape: Sequence[int], *, preprocessing: Preprocessing | None = None, **options: Any
) -> Backbone:
    """Build a backbone by its name.

    Args:
        name: A name of `BACKBONES` or `PRETRAINED`; `timm:NAME` or `hf:NAME`; `timm-scratch:NAME` for a network of timm with
            random weights. Followed by `+residual` or `+residual-WIDTH`, the backbone ends in a `ResidualHead`, of its own
            width or of the given one.
        input_shape: Shape of one input: `(channels, height, width)` or `(features,)`.
        preprocessing: The preprocessing that the backbone's weights expect, usually `preprocessing(name)`. The backbone then
            takes images of 1 or 3 channels and of any size, with pixels from 0 to 1. None does not change the inputs.
        **options: Keyword arguments of the builder, such as `hidden=(64,)` for "mlp".

    Returns:
        The backbone, whose `features` is the width of its output.

    Example:
        >>> import torch
        >>> from labelkin import models
        >>> net = models.build("mlp", (8,), hidden=(16,))
        >>> net.features
        16
        >>> net(torch.zeros(2, 8)).shape
        torch.Size([2, 16])
        >>> models.build("mlp+residual-10", (8,)).features
        10
    """
    shape = checked_shape(input_shape)
    if preprocessing is not None:
        prepare = Prepare(preprocessing, shape)
        inner = build(name, prepare.output_shape, **options)
        return Backbone(features=inner.features, prepare=prepare, network=inner)
    plain, plus, head = name.partition("+")
    if plus:
        width = _residual_width(name, head)
        net = build(plain, shape, **options)
        width = net.features if width is None else width
        return Backbone(features=width, trunk=net, residual=ResidualHead(net.features, width))
    builder = _builder(name)
    _check_options(name, builder, options)
    try:
        return builder(shape, **options)
    except InputError as error:
        raise InputError(f"backbone {name!r}: {error}") from error


def split_residual(backbone: nn.Module) -> tuple[nn.Module, nn.Module]:
    """Return a backbone without the residual head at its end, and that head; an identity if it has none.

    Both have the modules of the backbone, not copies.

    Args:
        backbone: A result of `build`.
    """
    layers = dict(backbone.layers.named_children()) if isinstance(backbone, Backbone) else {}
    last, end = next(reversed(layers.items()), ("", None))
    if isinstance(end, ResidualHead):
        return layers["trunk"], end
    if isinstance(end, Backbone):  # after the preparation of the images
        inner, residual = split_residual(end)
        if isinstance(residual, ResidualHead) and isinstance(inner, Backbone):
            return Backbone(features=inner.features, **{**layers, last: inner}), residual
    return backbone, nn.Identity()


def default(input_shape: Sequence[int]) -> str:
    """Return the name of a reasonable first backbone for inputs of a shape.

    Args:
        input_shape: Shape of one input: `(channels, height, width)` or `(features,)`.

    Returns:
        "resnet-18" for images of at least 32 pixels per side, "tiny-cnn" for smaller images, "mlp" for anything else.

    Example:
        >>> from labelkin import models
        >>> models.default((3, 32, 32)), models.default((1, 8, 8)), models.default((64,))
        ('resnet-18', 'tiny-cnn', 'mlp')
    """
    shape = checked_shape(input_shape)
    if len(shape) == 1 or min(shape[1:]) < 8:
        return "mlp"
    return "tiny-cnn" if min(shape[1:]) < 32 else "resnet-18"


def is_pretrained(name: str | None) -> bool:
    """Return whether a backbone comes with pretrained weights.

    Args:
        name: A name for `build`, or None.

    Returns:
        True for names of `PRETRAINED`, `timm:NAME` and `hf:NAME`, but not for `timm-scratch:NAME`.

    Example:
        >>> from labelkin import models
        >>> models.is_pretrained("efficientnet-lite0"), models.is_pretrained("resnet-18")
        (True, False)
    """
    plain = (name or "").partition("+")[0]
    return plain in PRETRAINED or plain.partition(":")[0] in LIBRARIES


def preprocessing(name: str) -> Preprocessing | None:
    """Return the preprocessing that belongs to the weights of a backbone.

    Args:
        name: A name for `build`.

    Returns:
        The preprocessing, or None if the backbone has no pretrained weights or does not take images.

    Example:
        >>> from labelkin import models
        >>> models.preprocessing("efficientnet-lite0").resize
        256
        >>> models.preprocessing("resnet-18")
    """
    plain = name.partition("+")[0]
    library, _, inner = plain.partition(":")
    return PUBLISHED[library](inner) if inner and library in PUBLISHED else EXPECTED.get(plain)


def network_config(name: str) -> dict[str, Any] | None:
    """Return what a network of another library is built from, so that a run can rebuild it without the library's files.

    Args:
        name: A name for `build`.

    Returns:
        Plain values for the argument `config` of the builder; None if the name alone determines the network.

    Example:
        >>> from labelkin.models import network_config
        >>> network_config("resnet-18")
    """
    library, _, inner = name.partition("+")[0].partition(":")
    return CONFIGS[library](inner) if inner and library in CONFIGS else None


@lru_cache(maxsize=16)
def text_model(name: str | None) -> str | None:
    """Return the model whose tokens a backbone takes; None if it takes images or vectors.

    Args:
        name: A name for `build`, or None.

    Returns:
        The name of the model or its folder, which the encoder `tokens:NAME` takes.

    Example:
        >>> from labelkin.models import text_model
        >>> text_model("resnet-18")
    """
    library, _, inner = (name or "").partition("+")[0].partition(":")
    return inner if library == "hf" and inner and takes_texts(inner) else None


def _residual_width(name: str, head: str) -> int | None:
    """Return the width after the plus of a backbone's name, or None if it names none."""
    kind, dash, width = head.partition("-")
    if kind != "residual" or (dash and not (width.isdecimal() and int(width))):
        raise InputError(f"backbone {name!r}: expected '+residual' or '+residual-WIDTH' after the name, got '+{head}'.")
    return int(width) if dash else None


def _builder(name: str) -> Builder:
    """Return the builder of a name."""
    library, colon, inner = name.partition(":")
    if colon and inner and library in (builders := {**LIBRARIES, **UNTRAINED}):
        return partial(builders[library], inner)
    known = {**BACKBONES, **PRETRAINED}
    if name not in known:
        others = " or ".join(f"{library}:NAME" for library in LIBRARIES)
        hint = near(name, known) or f" The names: {', '.join(known)}."
        raise InputError(f"there is no backbone {name!r}; expected a name from `labelkin backbones`, {others}.{hint}")
    return known[name]


def _check_options(name: str, builder: Builder, options: dict[str, Any]) -> None:
    """Refuse options that a name fixes, such as the width of "wrn-28-8", or that its builder does not have."""
    fixed = builder.keywords if isinstance(builder, partial) else {}
    keywords = [p for p in signature(builder).parameters.values() if p.name not in fixed]
    if any(p.kind is Parameter.VAR_KEYWORD for p in keywords):
        return
    known = [p.name for p in keywords if p.kind is Parameter.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            takes = f"it takes {listed(known)}" if known else "it takes none"
            raise InputError(f"backbone {name!r} has no option {option!r}; {takes}.{near(option, known)}")
