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
            help="Train only the head of a pretrained backbone. Its features are computed once and kept.",
            rich_help_panel=PANEL,
        ),
    ] = False
