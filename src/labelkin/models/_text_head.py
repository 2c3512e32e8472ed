"""The head of the text experiments in paper 001, on top of vectors from a text encoder."""

from functools import partial
from math import prod

from torch import nn

from labelkin._checks import check_count
from labelkin.models._blocks import Backbone, Builder, Shape, checked_shape

WIDTH = 768  # BERT's, as in 001


def text_head(input_shape: Shape, *, hidden: int = WIDTH, dropout: float = 0.1) -> Backbone:
    """Build a dense layer with ReLU, batch norm and dropout, as in the released code of 001.

    The last dense layer belongs to the objective. With the 768 features of BERT it has 592,128 parameters: the dense layer
    with bias, and the weights of batch norm.
    """
    check_count("hidden", hidden)
    dense = nn.Sequential(
        nn.Flatten(), nn.Linear(prod(checked_shape(input_shape)), hidden), nn.ReLU(), nn.BatchNorm1d(hidden)
    )
    return Backbone(features=hidden, dense=dense, dropout=nn.Dropout(dropout))


NETS: dict[str, Builder] = {
    "text-head": text_head,
    "text-head-256": partial(text_head, hidden=256, dropout=0.2),
    "text-head-512": partial(text_head, hidden=512, dropout=0.2),
}
