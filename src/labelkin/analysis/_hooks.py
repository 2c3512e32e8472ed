"""Record the outputs of named layers of a model."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from labelkin._checks import InputError, check_names, counted, listed, near

Run = Callable[[Any], dict[str, Tensor]]


@contextmanager
def record_layers(model: nn.Module, layers: Sequence[str]) -> Iterator[Run]:
    """Yield a function from a batch of inputs to each layer's activations, (n, F) on the CPU.

    Meanwhile the model is in evaluation mode and computes no gradients; afterwards its modes are restored.
    """
    modules = _named(model, layers)
    caught: dict[str, list[Any]] = {name: [] for name in layers}
    modes = {module: module.training for module in model.modules()}
    device = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), None)
    handles = [module.register_forward_hook(_keeper(caught[name])) for name, module in modules.items()]

    def run(inputs: Any) -> dict[str, Tensor]:
        for kept in caught.values():
            kept.clear()
        with torch.no_grad():
            model(inputs.to(device) if isinstance(inputs, Tensor) and device is not None else inputs)
        return {name: flatten_activations(name, _only(name, kept)) for name, kept in caught.items()}

    try:
        model.eval()
        yield run
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode


def flatten_activations(name: str, activations: Any) -> Tensor:
    """Flatten (n, C, H, W) to (n, C*H*W)."""
    if not isinstance(activations, Tensor) or activations.ndim < 2 or activations.is_complex():
        came = f"shape {tuple(activations.shape)}" if isinstance(activations, Tensor) else type(activations).__name__
        raise InputError(
            f"layer {name!r}: expected real activations (samples, ...), got {came}; name a layer inside it."
        )
    return activations.flatten(1)


def _named(model: nn.Module, layers: Sequence[str]) -> dict[str, nn.Module]:
    check_names("layers", layers, least=0)
    known = {name: module for name, module in model.named_modules(remove_duplicate=False) if name}
    for name in layers:
        if name not in known:
            hint = near(name, known) or f" It has {listed(list(known))}."
            raise InputError(f"layers: the model has no layer {name!r}.{hint}")
    return {name: known[name] for name in layers}


def _keeper(kept: list[Any]) -> Callable[[nn.Module, Any, Any], None]:
    def keep(module: nn.Module, given: Any, output: Any) -> None:
        # a copy: the layer that follows may work in place, as ReLU(inplace=True) does
        kept.append(output.detach().to("cpu", copy=True) if isinstance(output, Tensor) else output)

    return keep


def _only(name: str, kept: list[Any]) -> Any:
    if len(kept) != 1:
        times = "did not run" if not kept else f"ran {counted(len(kept), 'time')}"
        raise InputError(f"layer {name!r} {times} in one pass of the model; name a layer that runs once.")
    return kept[0]
