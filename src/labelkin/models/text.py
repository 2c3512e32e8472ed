"""The head of 001's text experiments: what is trained on top of vectors that an encoder made of texts."""

from math import prod

from torch import nn

from labelkin._checks import check_count
from labelkin.models.blocks import Backbone, Builder, Shape, checked_shape

WIDTH = 768  # BERT's, as in 001


def text_head(input_shape: Shape, *, hidden: int = WIDTH, dropout: float = 0.1) -> Backbone:
    """Dense 768, ReLU, batch norm, dropout .1 (001's released code); the last dense layer is the objective's.

    592,128 parameters for BERT's 768 features: the dense layer with bias, and batch norm's weights.
    """
    check_count("hidden", hidden)
    dense = nn.Sequential(
        nn.Flatten(), nn.Linear(prod(checked_shape(input_shape)), hidden), nn.ReLU(), nn.BatchNorm1d(hidden)
    )
    return Backbone(features=hidden, dense=dense, dropout=nn.Dropout(dropout))


NETS: dict[str, Builder] = {"text-head": text_head}
