"""Check the arguments of a loss and flatten them to one leading axis.

Shapes and dtypes are always checked. Values are checked only in eager code on the CPU: on an accelerator the check would
wait for the device, and neither compiled code nor `torch.func.vmap` can branch on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from labelkin._arrays import check_class_positions, check_probs, class_positions, reads_values
from labelkin._checks import InputError, counted
from labelkin.objectives._batch import Batch
from labelkin.relations import check_not_negative, read_numbers

if TYPE_CHECKING:
    from labelkin.objectives._base import Objective

LARGEST_TABLE = 2**26  # entries: 256 MiB of float32


def flatten(
    objective: Objective,
    outputs: Any,
    target: Tensor,
    *,
    node: Tensor | None = None,
    weight: Tensor | None = None,
    index: Tensor | None = None,
) -> tuple[Any, Batch]:
    """Return outputs (n, width) and the batch for `compute`, from outputs (..., width) and targets (...,).

    Outputs in half precision become float32, and outputs of padding become 0.
    """
    parts = heads(objective, outputs)
    lead = _leading_shape(parts, objective.width)
    flat = [widened(part).reshape(-1, part.shape[-1]) for part in parts]
    batch, padded = _flat_batch(objective, flat[0], lead, target, node=node, weight=weight, index=index)
    flat = [without_padding(part, batch.weight) for part in flat] if padded else flat
    return (flat[0] if objective.outputs_type is None else objective.outputs_type(*flat)), batch


def flatten_features(
    objective: Objective, features: Tensor, target: Tensor, **batch: Tensor | None
) -> tuple[Tensor, Batch]:
    """Return features (n, F) and the batch, from features (..., F) whose outputs are computed later."""
    lead = _leading_shape((features,), objective.features, "features")
    flat = features.reshape(-1, features.shape[-1])
    found, padded = _flat_batch(objective, widened(flat[:, :1]), lead, target, **batch)
    return (without_padding(flat, found.weight) if padded else flat), found


def _flat_batch(
    objective: Objective,
    like: Tensor,
    lead: torch.Size,
    target: Tensor,
    *,
    node: Tensor | None = None,
    weight: Tensor | None = None,
    index: Tensor | None = None,
) -> tuple[Batch, bool]:
    """Return the batch, and whether outputs must be masked.

    Without `weight` they are not masked on an accelerator or in compiled code, where it is not known whether any target
    is ignored: masking all outputs in every step would be slow. Ignored samples have weight 0 all the same.
    """
    weights = _checked_weight(weight, lead, like)
    nodes = None if node is None else _checked_node(objective, node, lead, None if weight is None else weights)
    positions = None if index is None else _integers("index", index, lead).reshape(-1)
    if isinstance(target, Tensor) and target.is_floating_point():
        soft = _checked_soft_target(objective, target, lead, node, like.dtype)
        return Batch(soft, weights, nodes, positions), weight is not None
    _check_channels_last(objective, target, lead)
    target = _integers("target", target, lead).reshape(-1)
    ignored = target == objective.ignore_index
    if nodes is not None:
        ignored = ignored & (nodes < 0)  # where the node is known, the target does not matter
    weights = weights.masked_fill(ignored, 0)
    padded = weight is not None or (reads_values(ignored) and bool(ignored.any()))
    return Batch(_checked_target(objective, target, weights, nodes), weights, nodes, positions), padded


def without_padding(rows: Tensor, weight: Tensor) -> Tensor:
    """Set rows of weight 0 to 0, so that values of padding, such as NaN, affect neither the loss nor the gradients."""
    padding = weight == 0
    if reads_values(padding) and not padding.any():
        return rows
    return rows.masked_fill(padding.unsqueeze(-1), 0)


def heads(objective: Objective, outputs: Any) -> tuple[Tensor, ...]:
    """Return the outputs of each head of the objective."""
    if objective.outputs_type is None:
        if not isinstance(outputs, Tensor):
            raise InputError(f"outputs: expected a tensor (..., {objective.width}), got {type(outputs).__name__}.")
        return (outputs,)
    names = objective.outputs_type._fields  # type: ignore[attr-defined]
    if not isinstance(outputs, tuple) or len(outputs) != len(names):
        raise InputError(f"outputs: expected a pair ({', '.join(names)}) of tensors, got {type(outputs).__name__}.")
    return outputs


def single(objective: Objective, outputs: Any) -> Tensor:
    """Return the outputs of the first head, which makes the predictions; half precision becomes float32."""
    first = heads(objective, outputs)[0]
    if not isinstance(first, Tensor) or not first.is_floating_point():
        kind = first.dtype if isinstance(first, Tensor) else type(first).__name__
        raise InputError(f"outputs: expected floating-point tensors, got {kind}.")
    if first.shape[-1] != objective.width:
        raise InputError(f"outputs: expected shape (..., {objective.width}), got {tuple(first.shape)}.")
    return widened(first)


def class_weights(values: Any, classes: int) -> Tensor:
    """Return class weights as a tensor (K,)."""
    weights = read_numbers("class_weight", values).to(torch.get_default_dtype())
    if weights.shape != (classes,):
        raise InputError(
            f"class_weight: expected {counted(classes, 'number')}, one per class, got shape {tuple(weights.shape)}."
        )
    check_not_negative("class_weight", weights)
    return weights


def label_rows(objective: Objective, classes: Sequence[int] | Tensor | None, *, width: int) -> Tensor:
    """Return the class positions for `label_vectors`; None means all, unless a table of that `width` is very large."""
    device = next((t.device for t in (*objective.parameters(), *objective.buffers())), None)
    count = objective.num_classes
    if classes is not None:
        return class_positions("classes", classes, count).to(device)
    if count * width > LARGEST_TABLE:
        raise InputError(
            f"label_vectors: all {counted(count, 'row')} of {counted(width, 'number')} would take too much "
            f"memory; request rows, as in "
            "label_vectors([0, 1, 2])."
        )
    return torch.arange(count, device=device)


def _leading_shape(parts: tuple[Tensor, ...], width: int | None, argument: str = "outputs") -> torch.Size:
    for part in parts:
        if not isinstance(part, Tensor) or not part.is_floating_point():
            kind = part.dtype if isinstance(part, Tensor) else type(part).__name__
            raise InputError(f"{argument}: expected floating-point tensors, got {kind}.")
        if part.dim() < 2 or part.shape[-1] != width or part.shape[:-1] != parts[0].shape[:-1]:
            if argument == "outputs" and part.dim() > 2 and part.shape[1] == width != part.shape[-1]:
                raise InputError(_channels_first(part.shape))
            raise InputError(
                f"{argument}: expected shape (..., {width}) with at least one leading axis, got {tuple(part.shape)}."
            )
    if parts[0].numel() == 0:
        raise InputError(
            f"{argument}: expected at least one sample, got an empty batch of shape {tuple(parts[0].shape)}."
        )
    return parts[0].shape[:-1]


def _channels_first(shape: torch.Size) -> str:
    """Return the error message for outputs whose classes are on axis 1."""
    order = ", ".join(map(str, (0, *range(2, len(shape)), 1)))
    return (
        f"outputs: expected the classes on the last axis, shape (..., {shape[1]}), got {tuple(shape)} with the classes on "
        f"axis 1; use outputs.permute({order})."
    )


def _check_channels_last(objective: Objective, target: Any, lead: torch.Size) -> None:
    """Refuse (B, K, H, W) outputs whose width happens to be the number of classes too."""
    shape = torch.Size((*lead, objective.width))
    if not isinstance(target, Tensor) or len(shape) < 3 or target.shape == lead:
        return
    if shape[1] == objective.width and target.shape == (shape[0], *shape[2:]):
        raise InputError(_channels_first(shape))


def _checked_target(objective: Objective, target: Tensor, weight: Tensor, node: Tensor | None) -> Tensor:
    unused = weight == 0  # padding, ignored samples and samples with a known node may hold anything
    if node is not None:
        unused = unused | (node >= 0)
    target = torch.where(unused, torch.zeros_like(target), target)
    check_class_positions("target", target, objective.num_classes, read_values=reads_values(target))
    return target


def _checked_soft_target(
    objective: Objective, target: Tensor, lead: torch.Size, node: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """Return class probabilities (n, K) in the precision of the outputs, times the class weights if there are any."""
    name = type(objective).__name__
    if not objective.linear_in_target:
        raise InputError(
            f"target: {name} is not linear in the target, so it does not accept class probabilities; "
            "give class positions (integers)."
        )
    if node is not None:
        raise InputError("node: does not apply to targets of class probabilities; give class positions.")
    if target.shape != (*lead, objective.num_classes):
        raise InputError(
            f"target: expected class probabilities of shape {(*lead, objective.num_classes)}, got {tuple(target.shape)}."
        )
    if reads_values(target):
        check_probs("target", target)
    target, weight = target.reshape(-1, objective.num_classes).to(dtype), objective.class_weight
    return target if weight is None else target * weight.to(dtype)


def _checked_weight(weight: Tensor | None, lead: torch.Size, outputs: Tensor) -> Tensor:
    if weight is None:
        return outputs.new_ones(outputs.shape[0])
    if not isinstance(weight, Tensor) or weight.shape != lead:
        got = tuple(weight.shape) if isinstance(weight, Tensor) else type(weight).__name__
        raise InputError(f"weight: expected one number per sample, shape {tuple(lead)}, got {got}.")
    weight = weight.reshape(-1).to(outputs.dtype)
    if reads_values(weight) and not bool((torch.isfinite(weight) & (weight >= 0)).all()):
        raise InputError("weight: expected finite numbers of at least 0.")
    return weight


def _checked_node(objective: Objective, node: Tensor, lead: torch.Size, weight: Tensor | None) -> Tensor:
    if not objective.takes_nodes:
        raise InputError(
            f"node: does not apply to {type(objective).__name__}, which learns from classes alone; "
            "use a tree objective such as ConditionalSoftmax."
        )
    node = _integers("node", node, lead).reshape(-1)
    if weight is not None:
        node = node.masked_fill(weight == 0, -1)  # padding may hold anything
    nodes = len(objective.taxonomy)  # type: ignore[arg-type]
    if reads_values(node) and (int(node.min()) < -1 or int(node.max()) >= nodes):
        raise InputError(f"node: expected node indices from 0 to {nodes - 1}, or -1 where the class is known.")
    return node


def _integers(argument: str, values: Tensor, lead: torch.Size) -> Tensor:
    if not isinstance(values, Tensor):
        raise InputError(f"{argument}: expected a tensor, got {type(values).__name__}.")
    if values.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        raise InputError(f"{argument}: expected whole numbers, got {values.dtype}.")
    if values.shape != lead:
        raise InputError(f"{argument}: expected shape {tuple(lead)}, one per sample, got {tuple(values.shape)}.")
    return values.to(torch.int64)


def widened(values: Tensor) -> Tensor:
    """Return values of half precision as float32, and others unchanged."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
