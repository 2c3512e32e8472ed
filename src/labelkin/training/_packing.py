"""Save nested Python data with tensors in a safetensors file, without pickle."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, refuse_damaged
from labelkin._extras import require
from labelkin._files import write_bytes

TENSOR, TUPLE, PAIRS = "@tensor", "@tuple", "@pairs"


def pack(value: Any, tensors: dict[str, Tensor], path: str = "") -> Any:
    """Return `value` as JSON data, with each tensor replaced by its name; the tensors are added to `tensors`.

    >>> tensors = {}
    >>> pack({"epoch": 3, "weights": [torch.zeros(2)]}, tensors)
    {'epoch': 3, 'weights': [{'@tensor': '/weights/0'}]}
    >>> list(tensors)
    ['/weights/0']
    """
    if isinstance(value, Tensor):
        tensors[path] = (
            value.detach().to("cpu", copy=True).contiguous()
        )  # safetensors refuses tensors that share memory
        return {TENSOR: path}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: pack(part, tensors, f"{path}/{key}") for key, part in value.items()}
        return {PAIRS: [[key, pack(part, tensors, f"{path}/{key}")] for key, part in value.items()]}
    if isinstance(value, (list, tuple)):
        parts = [pack(part, tensors, f"{path}/{i}") for i, part in enumerate(value)]
        return {TUPLE: parts} if isinstance(value, tuple) else parts
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"cannot save a value of type {type(value).__name__} at {path or 'the top level'}")


def unpack(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Return the value that `pack` was called with."""
    if isinstance(value, list):
        return [unpack(part, tensors) for part in value]
    if not isinstance(value, dict):
        return value
    if TENSOR in value:
        return tensors[value[TENSOR]]
    if TUPLE in value:
        return tuple(unpack(part, tensors) for part in value[TUPLE])
    if PAIRS in value:
        return {key: unpack(part, tensors) for key, part in value[PAIRS]}
    return {key: unpack(part, tensors) for key, part in value.items()}


def save_packed(path: Path, value: Any) -> None:
    """Write nested data to one safetensors file, with the JSON part in its header, completely or not at all."""
    tensors: dict[str, Tensor] = {}
    layout = pack(value, tensors)
    torch_files = require("safetensors.torch", extra="train", use="saving a model")
    write_bytes(path, torch_files.save(tensors, metadata={"layout": json.dumps(layout)}))


def load_packed(path: Path) -> Any:
    """Read a file that `save_packed` wrote; raises `InputError` if it is missing or damaged."""
    safetensors = require("safetensors", extra="train", use="loading a model")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            layout = json.loads((file.metadata() or {})["layout"])
    except FileNotFoundError:
        raise InputError(f"{path}: the file does not exist.") from None
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: labelkin did not write this file, or it is damaged ({error}).") from error
    with refuse_damaged(path):
        return unpack(layout, tensors)


def is_packed(path: Path) -> bool:
    """Return whether `save_packed` wrote this file; only its header is read."""
    safetensors = require("safetensors", extra="train", use="loading a model")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return "layout" in (file.metadata() or {})
    except (safetensors.SafetensorError, OSError):
        return False


def state_of(module: torch.nn.Module) -> dict[str, Any]:
    """Return a copy of the module's state."""
    return {name: _copied(value) for name, value in module.state_dict().items()}


def _copied(value: Any) -> Any:
    """Copy a value of a state dict. The extra state of a module may be a mapping that holds tensors."""
    return value.clone() if isinstance(value, Tensor) else copy.deepcopy(value)
