"""The residual transformation that HAFrame and Hier-COS put between a network and its classifier (Liang & Davis, 2023)."""

from torch import Tensor, nn

from labelkin._checks import check_count


class ResidualHead(nn.Module):
    """Map features to another width by a linear layer, batch norm and two residual layers.

    HAFrame and Hier-COS train every network with it. At the end of a backbone (`models.build("wrn-28-8+residual-100", ...)`) it
    serves all objectives alike. The authors reduce the width by a 1 x 1 convolution before the average over the map, which is
    the same as a linear layer after it.

    Args:
        features: Width of the input.
        width: Width of the output; the authors take the number of classes, or of nodes.

    Example:
        >>> import torch
        >>> from labelkin.models import ResidualHead
        >>> ResidualHead(8, 3)(torch.randn(4, 8)).shape
        torch.Size([4, 3])
    """

    def __init__(self, features: int, width: int) -> None:
        check_count("features", features)
        check_count("width", width)
        super().__init__()
        self.reduce = nn.Sequential(nn.Linear(features, width, bias=False), nn.BatchNorm1d(width))
        self.layers = nn.Sequential(ResidualLayer(width), ResidualLayer(width))

    def forward(self, features: Tensor) -> Tensor:
        """Return (B, width) for features (B, F)."""
        found: Tensor = self.layers(self.reduce(features))
        return found


class ResidualLayer(nn.Module):
    """Return x plus two linear layers of it, each followed by batch norm and PReLU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(*(_linear_norm(width) for _ in range(2)))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.branch(x)
        return out


def _linear_norm(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.PReLU(width))
