"""Class distances in the layers of a network (NAA, 000 Sec. 3.2), and how closely they match the distances of the targets."""

import logging
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from scipy.stats import kendalltau
from torch import Tensor, nn

from labelkin._arrays import class_positions
from labelkin._checks import InputError, check_choice, check_count, listed
from labelkin.analysis._gathering import (
    GIB,
    Accumulator,
    CorrelationSums,
    Memory,
    StoredSamples,
    check_limit,
    count_samples,
    memory_for,
)
from labelkin.analysis._hooks import flatten_activations, record_layers
from labelkin.functional import FORMS, Form, target_distance
from labelkin.relations import read_numbers

INPUT = "(input)"
LIMIT = 4 * GIB

log = logging.getLogger(__name__)


class Activity(NamedTuple):
    """NAA distances of the classes in each layer, as `class_activity` returns them.

    Example:
        >>> import torch
        >>> from labelkin.analysis import Activity, class_activity
        >>> batches = [(torch.eye(3).repeat(2, 1), torch.arange(3).repeat(2))]
        >>> found = class_activity(torch.nn.Sequential(torch.nn.ReLU()), batches, layers=["0"], classes=3)
        >>> isinstance(found, Activity), found.counts.tolist()
        (True, [2, 2, 2])
    """

    layers: tuple[str, ...]
    distances: Tensor  # (L, K, K) float64 in [0, 1], symmetric, zero diagonal (000 Eq. 7)
    counts: Tensor  # (K,) number of samples of each class
    memory: Memory  # the planned memory


class Approach(NamedTuple):
    """Correlations of each layer's distances with those of the targets, over the pairs of classes.

    They range from -1 to 1, where 1 is the same order.

    Example:
        >>> import torch
        >>> from labelkin.analysis import approach
        >>> targets = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> distances = torch.tensor([[[0.0, 0.1, 1.0], [0.1, 0.0, 0.9], [1.0, 0.9, 0.0]]])
        >>> round(float(approach(distances, targets).kendall[0]), 2)
        1.0
    """

    pearson: Tensor  # (L,) float64
    kendall: Tensor  # (L,) float64, tau-b


def class_activity(
    model: nn.Module,
    batches: Iterable[Sequence[Any]],
    *,
    layers: Sequence[str],
    classes: int,
    with_input: bool = False,
    form: Form = "auto",
    samples: int | None = None,
    limit: int = LIMIT,
) -> Activity:
    """Compute NAA distances of the classes in named layers of a model.

    The model runs in evaluation mode; sums are in float64 regardless of its precision. Rows of weight 0 in a batch of
    `labelkin.data` are padding and are left out. After the first batch, and before anything is stored, the memory needed is
    logged (INFO) and compared with `limit`.

    Args:
        model: Any module.
        batches: Batches that begin with (inputs, targets).
        layers: Names as `model.named_modules()` gives them, in the order of the result, usually by depth. The output
            of a layer is flattened to (n, C*H*W).
        classes: Number of classes.
        with_input: Put the inputs themselves first, as the layer "(input)".
        form: "correlation" streams and holds K x F x F numbers per layer, "gram" holds all activations, "auto" takes for
            each layer the one with fewer multiplications that fits `limit`. The results are the same.
        samples: Number of samples, if the batches have no length; the Gram form needs it.
        limit: Maximum memory in bytes. If more is needed, an `InputError` is raised and nothing is computed.

    Returns:
        The distances of each layer, the number of samples of each class, and the planned memory.

    Example:
        >>> import torch
        >>> from labelkin.analysis import class_activity
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
        >>> batches = [(torch.eye(3), torch.arange(3))]
        >>> class_activity(model, batches, layers=["0", "1"], classes=3).distances.shape
        torch.Size([2, 3, 3])
    """
    check_choice("form", form, FORMS)
    check_count("classes", classes, least=2)
    check_count("limit", limit)
    accumulators: dict[str, Accumulator] = {}
    memory = None
    counts = torch.zeros(classes, dtype=torch.int64)
    with record_layers(model, layers) as run:
        for batch in batches:
            inputs, targets = batch[0], class_positions("targets", batch[1], classes, ndim=1).cpu()
            found = ({INPUT: flatten_activations(INPUT, inputs).cpu()} if with_input else {}) | run(inputs)
            if memory is None:
                expected = count_samples(batches, len(targets), samples)
                memory = memory_for(found, classes=classes, limit=limit, samples=expected, form=form)
                log.info("%s.", memory)
                check_limit(memory, limit)
                accumulators = _accumulators(memory, classes)
            _check_batch(found, memory, len(targets))
            real = _not_padding(batch, len(targets))
            counts += targets[real].bincount(minlength=classes)
            for name, activations in found.items():
                accumulators[name].add(activations[real], targets[real])
    if memory is None:
        raise InputError("batches: expected at least one batch of (inputs, targets), got none.")
    _check_every_class(counts)
    distances = [accumulators.pop(name).distances() for name in memory.layers]
    return Activity(memory.layers, torch.stack(distances), counts, memory)


def activity_memory(
    model: nn.Module,
    inputs: Any,
    *,
    layers: Sequence[str],
    classes: int,
    samples: int | None = None,
    form: Form = "auto",
    limit: int = LIMIT,
) -> Memory:
    """Return the memory that `class_activity` would need.

    Args:
        model: Any module.
        inputs: One batch of inputs; one sample is enough.
        layers: Names of the layers.
        classes: Number of classes.
        samples: Number of samples that will be processed.
        form: "correlation", "gram" or "auto".
        limit: Maximum memory in bytes for "auto".

    Returns:
        The memory, with the form of each layer.

    Example:
        >>> import torch
        >>> from labelkin.analysis import activity_memory
        >>> activity_memory(torch.nn.Sequential(torch.nn.ReLU()), torch.zeros(1, 8), layers=["0"], classes=3).features
        (8,)
    """
    check_choice("form", form, FORMS)
    check_count("classes", classes, least=2)
    with record_layers(model, layers) as run:
        return memory_for(run(inputs), classes=classes, limit=limit, samples=samples, form=form)


def approach(distances: Any, targets: Any) -> Approach:
    """Correlate each layer's distances with those of the targets, `1 - cos^2`.

    Both correlations are over the K(K-1)/2 pairs of classes. Pearson's is 1 if the distances agree up to offset and scale.
    Kendall's tau-b, as in 001's structure correlation, depends only on the order. It stays below 1 if targets have ties that
    the layer does not have (at most 0.71 for two groups of five). If all distances are equal, as for one-hot targets, the
    correlation is NaN, with a warning. The correlation by depth is an addition of this library; 000 shows both matrices
    for the penultimate layer.

    Use probabilities rather than logits as the last layer: a constant added to all logits changes no prediction, but it
    changes NAA distances, because activations are not centered.

    Args:
        distances: Distances of the layers, (L, K, K).
        targets: Targets of the classes, (K, D).

    Returns:
        Pearson's and Kendall's correlation of each layer.

    Example:
        >>> import torch
        >>> from labelkin.analysis import approach
        >>> targets = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> distances = torch.tensor([[[0.0, 0.1, 1.0], [0.1, 0.0, 0.9], [1.0, 0.9, 0.0]]])
        >>> bool(approach(distances, targets).pearson[0] > 0.9)
        True
    """
    given = read_numbers("distances", distances).double()
    asked = target_distance(read_numbers("targets", targets))
    if given.ndim != 3 or given.shape[1:] != asked.shape:
        raise InputError(
            f"distances: expected (L, K, K) for {len(asked)} classes, the number of targets, got shape {tuple(given.shape)}."
        )
    row, column = torch.triu_indices(len(asked), len(asked), offset=1)
    pairs, wanted = given[:, row, column].cpu(), asked[row, column].cpu()
    if _constant(wanted) or any(_constant(layer) for layer in pairs):
        what = "targets" if _constant(wanted) else "distances of a layer"
        warnings.warn(
            f"approach: the {what} are all equally far apart, so the correlation is undefined (NaN).", stacklevel=2
        )
    return Approach(
        torch.stack([_pearson(layer, wanted) for layer in pairs]),
        torch.stack([_kendall(layer, wanted) for layer in pairs]),
    )


def _accumulators(memory: Memory, classes: int) -> dict[str, Accumulator]:
    chosen = zip(memory.layers, memory.features, memory.forms, strict=True)
    return {
        name: StoredSamples(classes) if form == "gram" else CorrelationSums(classes, width)
        for name, width, form in chosen
    }


def _not_padding(batch: Sequence[Any], samples: int) -> Tensor:
    """Return which rows are samples, (n,) bool; the loaders of `labelkin.data` pad the last batch with rows of weight 0."""
    weight = getattr(batch, "weight", None)
    return torch.ones(samples, dtype=torch.bool) if weight is None else weight.cpu() != 0


def _check_batch(found: dict[str, Tensor], memory: Memory, samples: int) -> None:
    for (name, activations), width in zip(found.items(), memory.features, strict=True):
        if activations.shape != (samples, width):
            raise InputError(
                f"layer {name!r}: expected {samples} x {width}, one row per target and the width of the first batch, "
                f"got {len(activations)} x {activations.shape[1]}."
            )
        if not torch.isfinite(activations).all():
            raise InputError(f"layer {name!r}: expected finite activations, got NaN or infinity.")


def _check_every_class(counts: Tensor) -> None:
    missing = (counts == 0).nonzero().flatten().tolist()
    if missing:
        raise InputError(f"targets: no sample of class {listed(missing)}; every class needs at least one.")


def _constant(values: Tensor) -> bool:
    return bool(values.max() - values.min() <= 1e-12)


def _pearson(values: Tensor, wanted: Tensor) -> Tensor:
    if _constant(values) or _constant(wanted):
        return torch.tensor(torch.nan, dtype=torch.float64)
    return torch.corrcoef(torch.stack([values, wanted]))[0, 1]


def _kendall(values: Tensor, wanted: Tensor) -> Tensor:
    if _constant(values) or _constant(wanted):
        return torch.tensor(torch.nan, dtype=torch.float64)
    # rounding would break ties that the targets have
    return torch.tensor(kendalltau(values.numpy().round(12), wanted.numpy().round(12)).statistic, dtype=torch.float64)
