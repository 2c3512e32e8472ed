"""Capture operations as a CUDA graph."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def capturing(graph: Any, device: torch.device, stream: Any) -> Iterator[None]:
    """Capture the operations of a `with` block; if CUDA cannot, restore the random state and raise `RuntimeError`.

    Args:
        graph: The `torch.cuda.CUDAGraph`.
        device: The GPU.
        stream: The stream to capture on.
    """
    generator = torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    before = generator.clone_state()  # a capture that fails leaves the generator unusable
    try:
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            yield
    except RuntimeError:
        generator.graphsafe_set_state(before)
        raise
