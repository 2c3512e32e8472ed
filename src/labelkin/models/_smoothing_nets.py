"""Networks of semantic target smoothing (paper 000): plain networks for MNIST and bottleneck ResNets for CIFAR-10."""

from collections.abc import Sequence
from functools import partial

from torch import nn

from labelkin.models._blocks import (
    Backbone,
    Builder,
    GlobalPool,
    PreActivation,
    Shape,
    bottleneck,
    conv,
    conv_relu,
    dense_relu,
    he_normal,
    image_shape,
    norm_relu,
    stages,
)


def plain(input_shape: Shape, *, convolutions: Sequence[int], dense: Sequence[int]) -> Backbone:
    """Build 3 x 3 "same" convolutions and hidden dense layers with ReLU, without pooling (000 Table 2).

    The number of layers in the name counts convolutions and hidden dense layers, not the output layer. The paper does not
    state the initialization. This library uses He's with zero biases; with smaller weights the deepest networks stay at
    chance for epochs.
    """
    channels, height, width = image_shape(input_shape, least=1)
    return he_normal(
        Backbone(
            features=dense[-1],
            convolutions=conv_relu(channels, convolutions),
            dense=dense_relu(convolutions[-1] * height * width, dense),
        )
    )


def bottleneck_resnet(input_shape: Shape, *, widths: Sequence[int], depth: int) -> Backbone:
    """Build a pre-activation bottleneck ResNet with three stages of `depth` modules (000 Table 5).

    `widths` are those of the stem and of the stages. Batch norm on the input channels; a stem without bias or batch norm; a
    projection of the activated input in the first module of every stage, even where the identity would fit; strides 1, 2,
    2; batch norm, ReLU and the mean over the map at the end. With a 10-way linear layer the parameter counts are those
    published, which include the running statistics of batch norm.
    """
    channels, _, _ = image_shape(input_shape, least=8)
    stem, *outputs = widths
    net = Backbone(
        features=outputs[-1],
        input_norm=nn.BatchNorm2d(channels),
        stem=conv(channels, stem),
        stages=stages(_module, inputs=stem, widths=outputs, depths=(depth, depth, depth), strides=(1, 2, 2)),
        activation=norm_relu(outputs[-1]),
        pool=GlobalPool(),
    )
    return he_normal(net)


def _module(inputs: int, outputs: int, stride: int, first: bool) -> nn.Module:
    projection = conv(inputs, outputs, 1, stride) if first else None
    return PreActivation(bottleneck(inputs, outputs, stride), projection)


NETS: dict[str, Builder] = {
    "3-layer-0": partial(plain, convolutions=(2, 2), dense=(2,)),
    "3-layer-1": partial(plain, convolutions=(4, 4), dense=(4,)),
    "3-layer-2": partial(plain, convolutions=(8, 8), dense=(8,)),
    "3-layer-3": partial(plain, convolutions=(16, 16), dense=(16,)),
    "6-layer-0": partial(plain, convolutions=(16, 16, 16), dense=(16, 16, 16)),
    "6-layer-1": partial(plain, convolutions=(32, 32, 32), dense=(32, 32, 32)),
    "6-layer-2": partial(plain, convolutions=(32, 32, 32), dense=(64, 64, 64)),
    "9-layer": partial(plain, convolutions=(32, 32, 32), dense=(64, 64, 64, 128, 128, 128)),
    # Mentioned in Table 6 but not specified; the widths are this library's.
    "12-layer": partial(plain, convolutions=(32, 32, 32), dense=(64, 64, 64, 128, 128, 128, 256, 256, 256)),
    "resnet-3-0": partial(bottleneck_resnet, widths=(16, 16, 32, 64), depth=1),
    "resnet-3-1": partial(bottleneck_resnet, widths=(64, 64, 128, 256), depth=1),
    "resnet-9": partial(bottleneck_resnet, widths=(64, 64, 128, 256), depth=3),
    "resnet-18-bottleneck": partial(bottleneck_resnet, widths=(64, 64, 128, 256), depth=6),
}
