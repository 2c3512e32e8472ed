"""Log the metrics of each epoch for TensorBoard."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from labelkin._extras import require


@contextmanager
def tensorboard_log(run: str | os.PathLike[str]) -> Iterator[Callable[[Mapping[str, float]], None]]:
    """Return a `log` function for `train` that writes to `run/tensorboard`."""
    require("tensorboard", extra="tensorboard", use="logging for TensorBoard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(Path(run) / "tensorboard")) as writer:

        def log(row: Mapping[str, float]) -> None:
            for name, value in row.items():
                if name != "epoch":
                    writer.add_scalar(name, value, int(row["epoch"]))
            writer.flush()

        yield log
