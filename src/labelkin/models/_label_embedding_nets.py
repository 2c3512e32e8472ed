"""Networks of the label embedding paper (003): CNN and MLP for MNIST, ResNet-8 and a wide ResNet-18 for CIFAR.

Each parameter count is that of the trunk with one linear layer (the paper's o1), including biases and batch norm. The
initialization follows the released code: PyTorch's default for the ResNets, a truncated normal of 0.1 for the others.
"""

from math import prod

from torch import nn

from labelkin.models._blocks import (
    Backbone,
    Builder,
    GlobalPool,
    GridPool,
    Shape,
    basic_block,
    checked_shape,
    conv_relu,
    dense_relu,
    image_shape,
    small_stem,
    stages,
)


def cnn_5x5(input_shape: Shape) -> Backbone:
    """Build 5 x 5 "same" convolutions 32-64 with max pooling after each, and a hidden dense layer of 1,024.

    With ten classes of 28 x 28 gray images it has 3,274,634 parameters.
    """
    channels, height, width = image_shape(input_shape, least=4)
    net = Backbone(
        features=1024,
        convolutions=conv_relu(channels, (32, 64), kernel=5, pool_every=1),
        dense=dense_relu(64 * (height // 4) * (width // 4), (1024,)),
    )
    return _truncated_normal(net)


def mlp_500(input_shape: Shape) -> Backbone:
    """Build two hidden dense layers of 500; 648,010 parameters with ten classes of 28 x 28 gray images."""
    return _truncated_normal(Backbone(features=500, dense=dense_relu(prod(checked_shape(input_shape)), (500, 500))))


def resnet_8(input_shape: Shape) -> Backbone:
    """Build one basic block for each width of 128-256-512, the last map pooled to 2 x 2: 2,048 features.

    With ten classes of color images it has 4,911,754 parameters.
    """
    channels, _, _ = image_shape(input_shape, least=8)
    return Backbone(
        features=4 * 512,
        stem=small_stem(channels, 128),
        stages=stages(basic_block, inputs=128, widths=(128, 256, 512), depths=(1, 1, 1), strides=(1, 2, 2)),
        pool=GridPool(2),
    )


def resnet_18_double(input_shape: Shape) -> Backbone:
    """Build a ResNet-18 of double width, 128-256-512-1024; 44,755,172 parameters with 100 classes of color images."""
    channels, _, _ = image_shape(input_shape, least=16)
    return Backbone(
        features=1024,
        stem=small_stem(channels, 128),
        stages=stages(basic_block, inputs=128, widths=(128, 256, 512, 1024), depths=(2, 2, 2, 2), strides=(1, 2, 2, 2)),
        pool=GlobalPool(),
    )


def _truncated_normal(net: Backbone) -> Backbone:
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.trunc_normal_(parameter, std=0.1, a=-0.2, b=0.2)
    return net


NETS: dict[str, Builder] = {
    "cnn-5x5": cnn_5x5,
    "mlp-500": mlp_500,
    "resnet-8": resnet_8,
    "resnet-18-double": resnet_18_double,
}
