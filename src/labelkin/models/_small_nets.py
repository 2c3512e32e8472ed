"""Small networks for small data, without batch norm: a CNN for 8 x 8 digits and an MLP for vectors."""

from collections.abc import Sequence
from math import prod

from labelkin._checks import InputError, check_count
from labelkin.models._blocks import (
    Backbone,
    Builder,
    GridPool,
    Shape,
    checked_shape,
    conv_relu,
    dense_relu,
    image_shape,
)


def tiny_cnn(input_shape: Shape) -> Backbone:
    """Build 3 x 3 convolutions 16-32, max pooling and means on a 4 x 4 grid: 512 features, 4,800 weights for gray images."""
    channels, _, _ = image_shape(input_shape, least=8)
    return Backbone(features=32 * 16, convolutions=conv_relu(channels, (16, 32), pool_every=2), pool=GridPool(4))


def mlp(input_shape: Shape, *, hidden: Sequence[int] = (128, 128)) -> Backbone:
    """Build hidden dense layers with ReLU; any input shape is flattened."""
    inputs = prod(checked_shape(input_shape))
    if not hidden:
        raise InputError("hidden: expected the width of at least one layer, got none.")
    for width in hidden:
        check_count("hidden", width)
    return Backbone(features=hidden[-1], dense=dense_relu(inputs, hidden))


NETS: dict[str, Builder] = {"tiny-cnn": tiny_cnn, "mlp": mlp}
