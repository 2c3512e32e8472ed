"""Convolutions of a fleet: grouped convolutions, as `torch.func.vmap` creates them, products of unfolded images, or our kernel.

Which is fastest depends on the GPU and on the number of channels, and is measured: cuDNN's kernels for grouped convolutions
with few channels in a group leave much of a GPU idle, in particular for gradients. On the CPU, grouped convolutions are faster
than products.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from labelkin.functional import MOST_MEMBER_CHANNELS, convolution_for_fleets, has_member_convolution
from labelkin.training._capture import capturing

if TYPE_CHECKING:
    from labelkin.training._fleet_model import Stack

REPEATS = 3
CONVOLVE: Any = F.conv2d
GROUPED, PRODUCTS, KERNEL = "grouped", "products", "kernel"  # the ways to compute the convolutions of a fleet
Way = Callable[..., Tensor | None]


class Convolutions(TorchFunctionMode):
    """Compute convolutions of images in another way, for the duration of a `with` block.

    Args:
        way: Takes the arguments of `conv2d`; returns the convolution, or None for one that it cannot compute, which is then
            computed as usual.

    >>> images, weight = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    >>> with Convolutions(by_product):
    ...     found = F.conv2d(images, weight, padding=1)
    >>> torch.allclose(found, F.conv2d(images, weight, padding=1), atol=1e-5)
    True
    """

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.way = way

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func is CONVOLVE:
            found = self.way(*args, **given)
            if found is not None:
                return found
        return func(*args, **given)


def convolutions(way: str) -> AbstractContextManager[Any]:
    """Return a context in which convolutions are computed in one of the three ways; to be entered inside `vmap`."""
    return nullcontext() if way == GROUPED else Convolutions({PRODUCTS: by_product, KERNEL: by_kernel}[way])


def by_product(
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    """Return the convolution of images (n, C, H, W) as a product of the weights with unfolded images.

    Returns None for dilated and grouped convolutions, and for padding by name.
    """
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


def by_kernel(
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    """Return a 3 x 3 convolution of images (n, C, H, W) that keeps their size, with our kernel for all members at once.

    Returns None for other convolutions, and for more than 16 channels.
    """
    keeps_size = padding == "same" or (not isinstance(padding, str) and _pair(padding) == (1, 1))
    if images.dim() != 4 or weight.shape[-2:] != (3, 3) or not keeps_size or groups != 1:
        return None
    if _pair(stride) != (1, 1) or _pair(dilation) != (1, 1) or max(weight.shape[:2]) > MOST_MEMBER_CHANNELS:
        return None
    found = convolution_for_fleets(images, weight)
    return found if bias is None else found + bias.view(-1, 1, 1)


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def fastest_way(backbone: "Stack", step: Callable[[], None], device: torch.device) -> str:
    """Return the way in which the convolutions of a fleet make its step fastest; only measured on CUDA.

    Args:
        backbone: The stacked backbones, whose attribute `way` is set for each measurement.
        step: Computes a forward and a backward pass.
        device: The device.
    """
    if device.type != "cuda" or not any(isinstance(part, nn.Conv2d) for part in backbone.members[0].modules()):
        return GROUPED
    ways = [GROUPED, PRODUCTS, *([KERNEL] if has_member_convolution(backbone.stacked[0]) else [])]
    seconds = {}
    for way in ways:
        backbone.way = way
        seconds[way] = replay_seconds(step, device)
    return min(ways, key=seconds.__getitem__)


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
