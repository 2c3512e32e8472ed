"""Options of `labelkin.training.Settings` for pretrained networks."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

PANEL = "Fine-tuning"


@dataclass(frozen=True, kw_only=True)
class FineTuningOptions:
    """Options of `labelkin.training.Settings` for pretrained networks."""

    preprocessing: Annotated[
        str | None,
        Option(
            help="Prepare images as the weights of the backbone expect, or by the mean and deviation of the data. "
            "Default: weights for pretrained backbones.",
            metavar="weights|data",
            rich_help_panel=PANEL,
        ),
    ] = None
    freeze: Annotated[
        bool,
        Option(
            "--freeze",
            help="Train only the head of a pretrained backbone. Its features are computed once and cached.",
            rich_help_panel=PANEL,
        ),
    ] = False
    backbone_lr: Annotated[
        float,
        Option(help="Multiply the learning rate of the backbone by this factor.", metavar="F", rich_help_panel=PANEL),
    ] = 1.0
    unfreeze_after: Annotated[
        int,
        Option(help="Train only the head for this many epochs, then everything.", metavar="N", rich_help_panel=PANEL),
    ] = 0
    ema: Annotated[
        float,
        Option(
            help="Evaluate and save a moving average of the weights, with this decay.",
            metavar="DECAY",
            rich_help_panel=PANEL,
        ),
    ] = 0.0
    patience: Annotated[
        int | None,
        Option(
            help="Stop after this many epochs without a better result on the validation split.",
            metavar="N",
            rich_help_panel=PANEL,
        ),
    ] = None
    dropout: Annotated[
        float, Option(help="Probability of dropping a feature before the head.", metavar="P", rich_help_panel=PANEL)
    ] = 0.0
