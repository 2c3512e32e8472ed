"""Networks of mixed cross entropy (paper 004): ResNets for CIFAR and ImageNet, and wide ResNets."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import check_choice, check_count
from labelkin.models._blocks import (
    Backbone,
    Builder,
    GlobalPool,
    PostActivation,
    PreActivation,
    ResidualBlock,
    Shape,
    basic,
    basic_block,
    bottleneck,
    conv,
    he_normal,
    image_shape,
    norm_relu,
    projection_shortcut,
    small_stem,
    stages,
)

Stem = Literal["auto", "small", "large"]
STEMS: tuple[Stem, ...] = ("auto", "small", "large")
LARGE_IMAGE = 96  # smallest side in pixels for which "auto" uses the large stem


def resnet_32(input_shape: Shape) -> Backbone:
    """Build the CIFAR network of He et al. 2015 (Sec. 4.2): three stages of five basic blocks, 16-32-64.

    Shortcuts are option A, as He et al. use on CIFAR: every second pixel, and zeros for new channels. It has 464,154
    parameters with ten classes, the published 0.46 M; option B would give 466,906.
    """
    channels, _, _ = image_shape(input_shape, least=8)
    net = Backbone(
        features=64,
        stem=small_stem(channels, 16),
        stages=stages(_padded_block, inputs=16, widths=(16, 32, 64), depths=(5, 5, 5), strides=(1, 2, 2)),
        pool=GlobalPool(),
    )
    return he_normal(net)


class PadShortcut(nn.Module):
    """Shortcut of option A (He et al. 2015): every `stride`-th pixel, and zeros for the channels that the input lacks."""

    def __init__(self, added: int, stride: int) -> None:
        super().__init__()
        self.added = added
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))


def _padded_block(inputs: int, outputs: int, stride: int, first: bool) -> nn.Module:
    shortcut = PadShortcut(outputs - inputs, stride) if stride > 1 else nn.Identity()
    return PostActivation(basic(inputs, outputs, stride), shortcut)


def resnet(
    input_shape: Shape, *, block: ResidualBlock, widths: Sequence[int], depths: Sequence[int], stem: Stem = "auto"
) -> Backbone:
    """Build an ImageNet network of He et al. 2015, with shortcuts of option B.

    Args:
        input_shape: `(channels, height, width)`.
        block: Builder of a residual block.
        widths: Widths of the four stages.
        depths: Number of blocks in each stage.
        stem: "small" is a 3 x 3 convolution that keeps the size, for CIFAR. "large" is the published 7 x 7 of stride 2 with
            max pooling, for photographs. "auto" uses the large one from 96 pixels per side.

    Returns:
        The backbone.
    """
    check_choice("stem", stem, STEMS)
    if stem == "auto":
        stem = "large" if len(input_shape) == 3 and min(input_shape[1:]) >= LARGE_IMAGE else "small"
    channels, _, _ = image_shape(input_shape, least=64 if stem == "large" else 16)
    net = Backbone(
        features=widths[-1],
        stem=_large_stem(channels) if stem == "large" else small_stem(channels, 64),
        stages=stages(block, inputs=64, widths=widths, depths=depths, strides=(1, 2, 2, 2)),
        pool=GlobalPool(),
    )
    return he_normal(net)


def _large_stem(channels: int) -> nn.Module:
    return nn.Sequential(conv(channels, 64, 7, 2), norm_relu(64), nn.MaxPool2d(3, stride=2, padding=1))


def _bottleneck_block(inputs: int, outputs: int, stride: int, first: bool) -> nn.Module:
    return PostActivation(bottleneck(inputs, outputs, stride), projection_shortcut(inputs, outputs, stride))


def wide_resnet(input_shape: Shape, *, widen: int) -> Backbone:
    """Build WRN-28-`widen` (Zagoruyko & Komodakis 2016): pre-activation basic blocks without dropout."""
    check_count("widen", widen)
    channels, _, _ = image_shape(input_shape, least=8)
    widths = (16 * widen, 32 * widen, 64 * widen)
    net = Backbone(
        features=widths[-1],
        stem=conv(channels, 16),
        stages=stages(_wide_block, inputs=16, widths=widths, depths=(4, 4, 4), strides=(1, 2, 2)),
        activation=norm_relu(widths[-1]),
        pool=GlobalPool(),
    )
    return he_normal(net)


def _wide_block(inputs: int, outputs: int, stride: int, first: bool) -> nn.Module:
    projection = None if stride == 1 and inputs == outputs else conv(inputs, outputs, 1, stride)
    return PreActivation(basic(inputs, outputs, stride), projection)


NETS: dict[str, Builder] = {
    "resnet-18": partial(resnet, block=basic_block, widths=(64, 128, 256, 512), depths=(2, 2, 2, 2)),
    "resnet-32": resnet_32,
    "resnet-34": partial(resnet, block=basic_block, widths=(64, 128, 256, 512), depths=(3, 4, 6, 3)),
    "resnet-152": partial(resnet, block=_bottleneck_block, widths=(256, 512, 1024, 2048), depths=(3, 8, 36, 3)),
    "wrn-28-8": partial(wide_resnet, widen=8),
    "wrn-28-10": partial(wide_resnet, widen=10),
    "wrn-28-12": partial(wide_resnet, widen=12),
}
