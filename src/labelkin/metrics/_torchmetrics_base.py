"""Base classes of the metrics that accumulate: states are sums in double precision."""

from typing import TYPE_CHECKING, Any
from zlib import crc32

import torch
from torch import Tensor

from labelkin._arrays import reads_values
from labelkin._extras import require
from labelkin.metrics._result import warn_undefined
from labelkin.metrics._tree_tensors import TreeTensors, tree_tensors
from labelkin.metrics._validation import check_taxonomy
from labelkin.structure import Taxonomy

if TYPE_CHECKING:
    from torchmetrics import Metric
else:
    Metric = require("torchmetrics", extra="torchmetrics", use="the metric classes of labelkin.metrics").Metric


class SumsMetric(Metric):
    """A metric whose states are sums in double precision."""

    is_differentiable = False
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound: float | None = None
    _what = "samples"

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot values with matplotlib, as the metrics of torchmetrics do.

        Args:
            val: A result of `compute` or `forward`, or a list of them, which gives a curve. None means `compute()`.
            ax: The axes of matplotlib to draw on; new ones by default.

        Returns:
            The figure and the axes.
        """
        return self._plot(val, ax)

    def _add_sums(self, *names: str, size: tuple[int, ...] = ()) -> None:
        for name in names:
            self.add_state(name, torch.zeros(size, dtype=torch.float64), dist_reduce_fx="sum")

    def _tell_apart(self, *by: object) -> None:
        """Keep a `MetricCollection` from sharing states between metrics with different settings.

        A collection updates only one of the metrics whose states are equal after the first batch, and states of different
        trees or k may be equal then.
        """
        settings = crc32(b"".join(_bytes_of(part) for part in by)).to_bytes(4, "big")
        self.add_state("_configuration", torch.tensor(list(settings), dtype=torch.float64), dist_reduce_fx="max")

    def _divided(self, part: Tensor, whole: Tensor) -> Tensor:
        if not whole:
            warn_undefined(
                f"{type(self).__name__}: there were no {self._what}, so it is undefined (NaN).", stacklevel=4
            )
        return part / whole


class MeanMetric(SumsMetric):
    """The mean of one value per sample."""

    total: Tensor
    count: Tensor

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._add_sums("total", "count")
        self._tell_apart(type(self).__name__)

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        """Check the arguments, and return one value per sample on their device."""
        raise NotImplementedError

    def update(self, given: Tensor, target: Tensor) -> None:
        values = self._values(given, target, read_values=values_are_read(given))
        self.total += values.sum(dtype=torch.float64).to(self.total.device)
        self.count += values.numel()

    def compute(self) -> Tensor:
        return self._divided(self.total, self.count)


class TreeMetric(SumsMetric):
    """A metric that stores the arrays of its taxonomy on its device."""

    def _keep_tree(self, taxonomy: Taxonomy) -> None:
        check_taxonomy(taxonomy)
        self.taxonomy = taxonomy
        self._store_tree(None)

    def _store_tree(self, device: torch.device | None) -> None:
        for name, part in tree_tensors(self.taxonomy, device)._asdict().items():
            self.register_buffer(f"_tree_{name}", part, persistent=False)

    def _apply(self, *args: Any, **options: Any) -> Any:
        """Move the metric to a device or dtype; `set_dtype` and `Module.type` convert the indices of the tree as well."""
        moved = super()._apply(*args, **options)
        leaves = self._buffers.get("_tree_leaves")
        if leaves is not None and leaves.dtype != torch.int64:
            self._store_tree(leaves.device)
        return moved

    def _tree(self, device: torch.device) -> TreeTensors:
        return TreeTensors(*(getattr(self, f"_tree_{name}").to(device) for name in TreeTensors._fields))


def device_of(given: object) -> torch.device:
    return given.device if isinstance(given, Tensor) else torch.device("cpu")


def values_are_read(given: object) -> bool:
    return isinstance(given, Tensor) and reads_values(given)


def _bytes_of(part: object) -> bytes:
    if isinstance(part, Taxonomy):
        return part.parents.tobytes() + part.leaves.tobytes()
    return part.cpu().numpy().tobytes() if isinstance(part, Tensor) else f"{part};".encode()
