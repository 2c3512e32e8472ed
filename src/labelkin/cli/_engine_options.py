"""Options of the commands that train many runs: how many at once, where, and for how long."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from typer import Option

from labelkin.cli._option_groups import seconds


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How many runs train at once, where, and for how long; defaults as in `labelkin.comparison.execute`."""

    jobs: Annotated[
        int,
        Option(help="Number of runs to train at once. They share the CPU cores or one GPU.", rich_help_panel="Machine"),
    ] = 1
    fleet: Annotated[
        int,
        Option(
            help="Train up to this many small networks at once as one batched model: runs that differ only in seed and "
            "objective. The others are trained one by one.",
            metavar="N",
            rich_help_panel="Machine",
        ),
    ] = 1
    mps: Annotated[
        bool,
        Option("--mps", help="With --jobs on one NVIDIA GPU: share it through CUDA MPS.", rich_help_panel="Machine"),
    ] = False
    engine: Annotated[str, Option(help="Where to train.", metavar="local|ray", rich_help_panel="Machine")] = "local"
    address: Annotated[
        str | None, Option(help="Address of a Ray cluster. Default: start a local one.", rich_help_panel="Machine")
    ] = None
    budget: Annotated[
        str | None,
        Option(
            help="Time limit, such as 90s, 10m or 2h. Runs that would exceed it are not started.",
            metavar="TIME",
            rich_help_panel="Machine",
        ),
    ] = None

    def chosen(self) -> dict[str, Any]:
        return {**asdict(self), "budget": seconds("budget", self.budget)}
