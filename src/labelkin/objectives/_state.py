"""The signature of an objective's state: its hyperparameters, class names and tree, saved with its tensors.

A state that is loaded into an objective with other hyperparameters, or on another tree, would give wrong results without
an error. The signature is JSON in a tensor of bytes, so that a state dict contains only tensors and any format can save it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from labelkin._checks import InputError, plain

if TYPE_CHECKING:
    from labelkin.objectives._base import Objective

# Options that are not part of a learned state, or that torch or the objective itself checks by shape.
LEFT_OUT = (
    *("classes", "features", "samples", "taxonomy", "weights"),
    *("class_weight", "class_weight_divisor", "reduction", "ignore_index"),
)
SCALARS = (bool, int, float, str, type(None))


def signature_of(objective: Objective) -> Tensor:
    """Return the signature of an objective, (n,) bytes of JSON.

    Args:
        objective: any objective.

    Returns:
        A uint8 tensor on the CPU that holds the name of the class, scalar hyperparameters, and digests of the class names
        and of the tree.
    """
    text = json.dumps(_described(objective), sort_keys=True)
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def check_signature(objective: Objective, saved: Any) -> None:
    """Refuse a saved state whose signature differs from the objective's.

    Args:
        objective: the objective that is about to load the state.
        saved: the extra state of a state dict: a signature, or a mapping with one under "signature". States of earlier
            versions have none and are accepted.
    """
    if isinstance(saved, Mapping):
        saved = saved.get("signature")
    if not isinstance(saved, Tensor):
        return
    theirs, ours = json.loads(bytes(saved.tolist())), _described(objective)
    kind = ours["objective"]
    if theirs["objective"] != kind:
        raise InputError(f"objective: expected the state of {kind}, got that of {theirs['objective']}.")
    for name, value in ours["options"].items():
        if name in theirs["options"] and theirs["options"][name] != value:
            got = theirs["options"][name]
            raise InputError(
                f"{name}: this {kind} has {value!r}, the saved state is from one with {got!r}; build it with the same options."
            )
    for name, what in (("names", "the class names"), ("tree", "the tree")):
        if ours[name] is not None and theirs[name] is not None and ours[name] != theirs[name]:
            raise InputError(
                f"{'classes' if name == 'names' else 'taxonomy'}: {what} of this {kind} differ from those of the saved state "
                f"(expected digest {ours[name]}, got {theirs[name]}); build it with the same ones in the same order."
            )


def check_before_loading(objective: Objective, state: dict[str, Any], prefix: str, *, own: bool) -> None:
    """Check the signature in a state dict before any tensor is copied; `own` is true if it is the whole extra state.

    A state of an earlier version has no signature; it gets the objective's, so that strict loading misses no key.
    """
    key = f"{prefix}_extra_state"
    if key in state:
        check_signature(objective, state[key])
    elif own:
        state[key] = signature_of(objective)


def _described(objective: Objective) -> dict[str, Any]:
    names = inspect.signature(type(objective)).parameters
    options = {name: plain(getattr(objective, name, ())) for name in names if name not in LEFT_OUT}
    classes, taxonomy = objective.classes, getattr(objective, "taxonomy", None)
    tree = None if taxonomy is None else [list(taxonomy.names), taxonomy.parents.tolist(), taxonomy.leaves.tolist()]
    return {
        "objective": type(objective).__name__,
        "options": {name: value for name, value in options.items() if isinstance(value, SCALARS)},
        "names": None if isinstance(classes, int) else _digest(list(classes)),
        "tree": None if tree is None else _digest(tree),
    }


def _digest(values: Any) -> str:
    return sha256(json.dumps(values).encode()).hexdigest()[:12]


class Signed(nn.Module):
    """The part of `Objective` that stores state and saves it with a signature."""

    def commit(self, state: Mapping[str, Tensor]) -> None:
        """Store the state of a training step (`Loss.state`) in the buffers."""
        with torch.no_grad():
            for name, value in state.items():
                getattr(self, name).copy_(value)

    def get_extra_state(self) -> Any:
        """Return the signature that keeps a state from being loaded into a different objective."""
        return signature_of(self)  # type: ignore[arg-type]

    def set_extra_state(self, state: Any) -> None:
        """Do nothing: the signature is checked before the first tensor is loaded."""

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        own = type(self).get_extra_state is Signed.get_extra_state
        check_before_loading(self, state_dict, prefix, own=own)  # type: ignore[arg-type]
        super()._load_from_state_dict(state_dict, prefix, *args)
