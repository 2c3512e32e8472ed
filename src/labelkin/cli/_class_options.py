"""Options of `labelkin.training.Settings` for classes of different sizes and costs."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

PANEL = "Classes"


@dataclass(frozen=True, kw_only=True)
class ClassOptions:
    """Options of `labelkin.training.Settings` for classes of different sizes and costs."""

    sampler: Annotated[
        str,
        Option(
            help="With balanced, take samples of each class equally often, instead of each sample once in an epoch.",
            metavar="random|balanced",
            rich_help_panel=PANEL,
        ),
    ] = "random"
    class_weight: Annotated[
        str | None,
        Option(
            help="Weights of the classes in the loss: balanced, effective (less extreme than balanced), or a .csv or .json "
            "file of weights by class name.",
            metavar="balanced|effective|FILE",
            rich_help_panel=PANEL,
        ),
    ] = None
    logit_adjustment: Annotated[
        float,
        Option(
            help="Add this many times the logarithm of the class frequencies to the logits in training; 1 suits balanced "
            "accuracy.",
            metavar="TAU",
            rich_help_panel=PANEL,
        ),
    ] = 0.0
    costs: Annotated[
        str | None,
        Option(
            help="Costs by class name (.csv or .npz; rows: true class, columns: answer) for decisions and their metrics. "
            "Default: distances in the tree.",
            metavar="FILE",
            rich_help_panel=PANEL,
        ),
    ] = None
