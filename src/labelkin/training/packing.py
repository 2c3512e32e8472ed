"""Nested Python data with tensors in it, as safetensors beside JSON: nothing is ever unpickled."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin._files import write_bytes

TENSOR, TUPLE, PAIRS = "@tensor", "@tuple", "@pairs"


def pack(value: Any, tensors: dict[str, Tensor], path: str = "") -> Any:
    """`value` with each tensor replaced by its name in `tensors`, which is filled on the way."""
    if isinstance(value, Tensor):
        tensors[path] = value.detach().to("cpu", copy=True).contiguous()  # a file refuses tensors that share memory
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
    raise TypeError(f"cannot save {type(value).__name__} at {path or 'the top'}")


def unpack(value: Any, tensors: Mapping[str, Tensor]) -> Any:
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


def save(path: Path, value: Any) -> None:
    """`value` in one safetensors file, its JSON in the header; whole or not at all."""
    tensors: dict[str, Tensor] = {}
    layout = pack(value, tensors)
    torch_files = require("safetensors.torch", extra="train", use="saving a model")
    write_bytes(path, torch_files.save(tensors, metadata={"layout": json.dumps(layout)}))


def load(path: Path) -> Any:
    safetensors = require("safetensors", extra="train", use="loading a model")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            layout = json.loads((file.metadata() or {})["layout"])
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise InputError(f"{path}: not a file that labelkin wrote, or damaged ({error}).") from error
    return unpack(layout, tensors)


def is_packed(path: Path) -> bool:
    """Return whether `save` wrote this file; only its header is read."""
    safetensors = require("safetensors", extra="train", use="loading a model")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return "layout" in (file.metadata() or {})
    except (safetensors.SafetensorError, OSError):
        return False


def state_of(module: torch.nn.Module) -> dict[str, Any]:
    """The module's state, in tensors of its own."""
    return {name: _copied(value) for name, value in module.state_dict().items()}


def _copied(value: Any) -> Any:
    """Copy a value of a state dict. The extra state of a module may be a mapping that holds tensors."""
    return value.clone() if isinstance(value, Tensor) else copy.deepcopy(value)
