"""Networks of Loss in Layers (paper 002). Their widths are in Table 1; the other choices are this library's."""

from labelkin.models._blocks import (
    Backbone,
    Builder,
    GlobalPool,
    Shape,
    basic_block,
    conv_relu,
    dense_relu,
    he_normal,
    image_shape,
    small_stem,
    stages,
)


def lenet(input_shape: Shape) -> Backbone:
    """Build 3 x 3 convolutions 16-32-64 with max pooling after each, and one hidden dense layer of 128."""
    channels, height, width = image_shape(input_shape, least=8)
    return Backbone(
        features=128,
        convolutions=conv_relu(channels, (16, 32, 64), pool_every=1),
        dense=dense_relu(64 * (height // 8) * (width // 8), (128,)),
    )


def cnn_6(input_shape: Shape) -> Backbone:
    """Build 3 x 3 convolutions 32-64-128-128-256-256 with max pooling after every second, and dense layers 256-128."""
    channels, height, width = image_shape(input_shape, least=8)
    net = Backbone(
        features=128,
        convolutions=conv_relu(channels, (32, 64, 128, 128, 256, 256), pool_every=2),
        dense=dense_relu(256 * (height // 8) * (width // 8), (256, 128)),
    )
    return he_normal(net)


def resnet_small(input_shape: Shape) -> Backbone:
    """Build a stem of 32 and one basic block for each width of 64-128-128-256-256; the map halves where the width grows."""
    channels, _, _ = image_shape(input_shape, least=16)
    net = Backbone(
        features=256,
        stem=small_stem(channels, 32),
        stages=stages(basic_block, inputs=32, widths=(64, 128, 256), depths=(1, 2, 2), strides=(2, 2, 2)),
        pool=GlobalPool(),
    )
    return he_normal(net)


NETS: dict[str, Builder] = {"lenet": lenet, "cnn-6": cnn_6, "resnet-small": resnet_small}
