"""Evaluate a network in training mode, as some published results did, without changing it."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def batch_statistics(net: nn.Module) -> Iterator[None]:
    """Put a network into training mode for the duration of a `with` block.

    Batch normalization uses the statistics of each batch and does not update its running ones; dropout is active.

    >>> net = nn.BatchNorm1d(3).eval()
    >>> with batch_statistics(net):
    ...     net.training
    True
    >>> net.training
    False
    """
    modes = {module: module.training for module in net.modules()}
    norms = {module: module.momentum for module in modes if isinstance(module, _BatchNorm)}
    counts = {norm: None if norm.num_batches_tracked is None else norm.num_batches_tracked.clone() for norm in norms}
    net.train()
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
        for norm, momentum in norms.items():
            norm.momentum = momentum
            if (count := counts[norm]) is not None:
                norm.num_batches_tracked = count
