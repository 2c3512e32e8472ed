"""Building blocks of the networks: convolutions, residual blocks, pooling, and checks of the input shape."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import InputError, check_count

Shape = tuple[int, ...]
Builder = Callable[..., "Backbone"]
ResidualBlock = Callable[[int, int, int, bool], nn.Module]  # inputs, outputs, stride, first of its stage
Net = TypeVar("Net", bound=nn.Module)


class Backbone(nn.Module):
    """A network without its classifier, which maps inputs `(B, *input_shape)` to features `(B, features)`.

    Args:
        features: Width of the output.
        **layers: The layers, in order, under the names that they have in the state dict.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from labelkin.models import Backbone
        >>> net = Backbone(features=3, dense=nn.Linear(5, 3), relu=nn.ReLU())
        >>> net(torch.zeros(2, 5)).shape
        torch.Size([2, 3])
    """

    def __init__(self, *, features: int, **layers: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.layers = nn.Sequential(OrderedDict(layers))

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x)
        return features


def checked_shape(input_shape: Sequence[int]) -> Shape:
    """Return the input shape as a tuple, or raise if it is not `(channels, height, width)` or `(features,)`."""
    shape = tuple(input_shape)
    if len(shape) not in (1, 3):
        raise InputError(f"input_shape: expected (channels, height, width) or (features,), got {shape}.")
    for size in shape:
        check_count("input_shape", size)
    return shape


def image_shape(input_shape: Sequence[int], *, least: int) -> tuple[int, int, int]:
    """Return channels, height and width, or raise unless they are those of an image of at least `least` pixels per side."""
    shape = checked_shape(input_shape)
    if len(shape) != 3 or min(shape[1:]) < least:
        raise InputError(
            f"input_shape: expected images (channels, height, width) of at least {least} x {least} pixels, "
            f"got {shape}; 'tiny-cnn' accepts images from 8 x 8 pixels, 'mlp' any shape."
        )
    channels, height, width = shape
    return channels, height, width


def conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, *, bias: bool = False) -> nn.Conv2d:
    """Return a "same" convolution: the map keeps its size, divided by the stride."""
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=bias)


def norm_relu(channels: int) -> nn.Sequential:
    """Return batch norm and ReLU."""
    return nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU())


def small_stem(channels: int, width: int) -> nn.Sequential:
    """Return the stem of the CIFAR networks: one 3 x 3 convolution that keeps the size, batch norm, ReLU."""
    return nn.Sequential(conv(channels, width), norm_relu(width))


def conv_relu(inputs: int, widths: Sequence[int], *, kernel: int = 3, pool_every: int | None = None) -> nn.Sequential:
    """Return convolutions with bias and ReLU, and 2 x 2 max pooling after every `pool_every` of them."""
    layers: list[nn.Module] = []
    for count, width in enumerate(widths, start=1):
        layers += [conv(inputs, width, kernel, bias=True), nn.ReLU()]
        if pool_every and count % pool_every == 0:
            layers.append(nn.MaxPool2d(2))
        inputs = width
    return nn.Sequential(*layers)


def dense_relu(inputs: int, widths: Sequence[int]) -> nn.Sequential:
    """Return a flattening layer followed by linear layers with ReLU."""
    layers: list[nn.Module] = [nn.Flatten()]
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers)


def basic(inputs: int, outputs: int, stride: int) -> list[nn.Conv2d]:
    """Return two 3 x 3 convolutions, the first with the stride."""
    return [conv(inputs, outputs, stride=stride), conv(outputs, outputs)]


def bottleneck(inputs: int, outputs: int, stride: int) -> list[nn.Conv2d]:
    """Return a 1 x 1 convolution to a quarter of the width, a 3 x 3 with the stride, and a 1 x 1 to the width."""
    inner = outputs // 4
    return [conv(inputs, inner, 1), conv(inner, inner, stride=stride), conv(inner, outputs, 1)]


class PostActivation(nn.Module):
    """Residual block with batch norm after each convolution and ReLU between them and after the sum (He et al. 2015)."""

    def __init__(self, convolutions: Sequence[nn.Conv2d], shortcut: nn.Module) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for convolution in convolutions:
            layers += [convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU()]
        self.branch = nn.Sequential(*layers[:-1])
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.branch(x) + self.shortcut(x))


class PreActivation(nn.Module):
    """Residual block with batch norm and ReLU before each convolution (He et al. 2016).

    A projection takes the activated input.
    """

    def __init__(self, convolutions: Sequence[nn.Conv2d], projection: nn.Conv2d | None) -> None:
        super().__init__()
        first, *others = convolutions
        self.activation = norm_relu(first.in_channels)
        layers: list[nn.Module] = [first]
        for convolution in others:
            layers += [norm_relu(convolution.in_channels), convolution]
        self.branch = nn.Sequential(*layers)
        self.projection = projection

    def forward(self, x: Tensor) -> Tensor:
        active = self.activation(x)
        shortcut = x if self.projection is None else self.projection(active)
        out: Tensor = self.branch(active) + shortcut
        return out


def projection_shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    """Return the identity if it fits, else a 1 x 1 convolution with batch norm (He et al. 2015, option B)."""
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


def basic_block(inputs: int, outputs: int, stride: int, first: bool) -> nn.Module:
    """Return the residual block of ResNet-18 and ResNet-34."""
    return PostActivation(basic(inputs, outputs, stride), projection_shortcut(inputs, outputs, stride))


def stages(
    block: ResidualBlock, *, inputs: int, widths: Sequence[int], depths: Sequence[int], strides: Sequence[int]
) -> nn.Sequential:
    """Return stages of `depths` blocks of `widths`; the first block of each has the stride and may project."""
    built = []
    for width, depth, stride in zip(widths, depths, strides, strict=True):
        blocks = [block(inputs, width, stride, True), *(block(width, width, 1, False) for _ in range(depth - 1))]
        built.append(nn.Sequential(*blocks))
        inputs = width
    return nn.Sequential(*built)


class GlobalPool(nn.Module):
    """Average over the map."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


class GridPool(nn.Module):
    """Average over `cells` x `cells` equal windows that cover the map, and flatten: `(B, C, H, W)` to `(B, C cells^2)`.

    Neighboring windows overlap if the side of the map is not a multiple of `cells`. With two cells it equals adaptive
    average pooling, whose gradient on a GPU is not deterministic.
    """

    def __init__(self, cells: int) -> None:
        super().__init__()
        self.cells = cells

    def forward(self, x: Tensor) -> Tensor:
        stride = [side // self.cells for side in x.shape[2:]]
        window = [side - (self.cells - 1) * step for side, step in zip(x.shape[2:], stride, strict=True)]
        return F.avg_pool2d(x, window, stride).flatten(1)


def he_normal(net: Net) -> Net:
    """Draw the weights as He et al. 2015 do (fan-out for convolutions), set biases to zero, and return the network."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
            nn.init.zeros_(module.bias)
    return net
