"""Convolutions of a fleet: grouped convolutions, as `torch.func.vmap` creates them, or products of unfolded images.

Which is faster depends on the GPU and on the number of channels: kernels for grouped convolutions with few channels in a group
leave much of a GPU idle, in particular for the gradient of the weights. On the CPU, grouped convolutions are faster.
"""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from labelkin.training._capture import capturing

if TYPE_CHECKING:
    from labelkin.training._fleet_model import Stack

REPEATS = 3
CONVOLVE: Any = F.conv2d


class AsProducts(TorchFunctionMode):
    """Compute convolutions of images as products of the weights with unfolded images, for the duration of a `with` block.

    Dilated and grouped convolutions, and padding by name, are not changed.

    >>> images, weight = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    >>> with AsProducts():
    ...     found = F.conv2d(images, weight, padding=1)
    >>> torch.allclose(found, F.conv2d(images, weight, padding=1), atol=1e-5)
    True
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func is CONVOLVE:
            found = _product(*args, **given)
            if found is not None:
                return found
        return func(*args, **given)


def _product(
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    """Return the convolution of images (n, C, H, W), or None if it is of another form."""
    if isinstance(padding, str) or groups != 1 or _pair(dilation) != (1, 1) or images.dim() != 4:
        return None
    (high, wide), (tall, broad), (down, right) = weight.shape[-2:], _pair(padding), _pair(stride)
    windows = (
        F.pad(images, (broad, broad, tall, tall)).unfold(-2, high, down).unfold(-2, wide, right)
    )  # n, C, H, W, h, w
    columns = (
        windows.permute(0, 1, 4, 5, 2, 3).flatten(1, 3).flatten(2)
    )  # one copy; `F.unfold` launches a kernel per image
    product = weight.flatten(1) @ columns
    if bias is not None:
        product = product + bias.unsqueeze(-1)
    return product.reshape(*product.shape[:-1], windows.shape[2], -1)


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def products_are_faster(backbone: "Stack", step: Callable[[], None], device: torch.device) -> bool:
    """Return whether a step of a fleet is faster with convolutions as products; only measured on CUDA.

    Args:
        backbone: The stacked backbones, whose attribute `products` is set for each measurement.
        step: Computes a forward and a backward pass.
        device: The device.
    """
    if device.type != "cuda" or not any(isinstance(part, nn.Conv2d) for part in backbone.members[0].modules()):
        return False
    seconds = []
    for products in (False, True):
        backbone.products = products
        seconds.append(replay_seconds(step, device))
    return seconds[1] < seconds[0]


def replay_seconds(step: Callable[[], None], device: torch.device) -> float:
    """Return the time of a step as a captured CUDA graph; infinity if it needs too much memory or cannot be captured."""
    stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    graph = torch.cuda.CUDAGraph()
    try:
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(REPEATS):
                step()
        torch.cuda.synchronize(device)
        with capturing(graph, device, stream):
            step()
        graph.replay()
        torch.cuda.synchronize(device)
        begun = perf_counter()
        for _ in range(REPEATS):
            graph.replay()
        torch.cuda.synchronize(device)
        return perf_counter() - begun
    except RuntimeError:  # out of memory, or the step waits for the device
        return float("inf")
