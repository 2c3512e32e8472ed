"""How far apart a network holds the classes, layer by layer (NAA, 000 Sec. 3.2), and how near that is to its targets."""

import logging
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from scipy.stats import kendalltau
from torch import Tensor, nn

from labelkin._arrays import class_positions
from labelkin._checks import InputError, check_choice, check_count, listed
from labelkin.analysis.accumulate import Correlations, Gathering, Samples
from labelkin.analysis.hooks import flat, watched
from labelkin.analysis.memory import GIB, Memory, check_limit, count_samples, memory_for
from labelkin.functional.naa import FORMS, Form, target_distance
from labelkin.relations.matrices import read_numbers

INPUT = "(input)"
LIMIT = 4 * GIB

log = logging.getLogger(__name__)


class Activity(NamedTuple):
    """NAA distances of the classes in each layer."""

    layers: tuple[str, ...]
    distances: Tensor  # (L, K, K) float64 in [0, 1], symmetric, zero diagonal (000 Eq. 7)
    counts: Tensor  # (K,) samples of each class
    memory: Memory  # what was planned


class Approach(NamedTuple):
    """Correlations of each layer's distances with the targets', over the pairs of classes: -1 to 1, 1 is the same order."""

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
    """NAA distances of the classes in named layers of any model, over batches that begin with (inputs, targets).

    `layers` are names as `model.named_modules()` gives them, in the order wanted, best by depth; a layer's output is
    flattened to (n, C*H*W). `with_input=True` puts the inputs themselves first, as the layer "(input)". The model runs
    in evaluation mode; sums are in float64 whatever the model's precision. Rows of weight 0 in a batch of
    `labelkin.data` are padding and left out.

    `form="correlation"` streams and holds K x F x F numbers a layer, `"gram"` holds all activations, `"auto"` takes
    for each layer the one with fewer multiplications that fits `limit`; results are the same. After the first batch,
    and before anything is held, the memory needed is logged (INFO) and compared with `limit`, in bytes: above it
    nothing is done. `samples` is how many will come, where the batches have no length; the Gram form needs to know.
    """
    check_choice("form", form, FORMS)
    check_count("classes", classes, least=2)
    check_count("limit", limit)
    gathered: dict[str, Gathering] = {}
    memory = None
    counts = torch.zeros(classes, dtype=torch.int64)
    with watched(model, layers) as run:
        for batch in batches:
            inputs, targets = batch[0], class_positions("targets", batch[1], classes, ndim=1).cpu()
            found = ({INPUT: flat(INPUT, inputs).cpu()} if with_input else {}) | run(inputs)
            if memory is None:
                expected = count_samples(batches, len(targets), samples)
                memory = memory_for(found, classes=classes, limit=limit, samples=expected, form=form)
                log.info("%s.", memory)
                check_limit(memory, limit)
                gathered = _gatherings(memory, classes)
            _check_batch(found, memory, len(targets))
            real = _not_padding(batch, len(targets))
            counts += targets[real].bincount(minlength=classes)
            for name, activations in found.items():
                gathered[name].add(activations[real], targets[real])
    if memory is None:
        raise InputError("batches: expected at least one batch of (inputs, targets), got none.")
    _check_every_class(counts)
    distances = [gathered.pop(name).distances() for name in memory.layers]
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
    """The memory that `class_activity` would need, from one batch of inputs (one sample is enough)."""
    check_choice("form", form, FORMS)
    check_count("classes", classes, least=2)
    with watched(model, layers) as run:
        return memory_for(run(inputs), classes=classes, limit=limit, samples=samples, form=form)


def approach(distances: Any, targets: Any) -> Approach:
    """How near each layer's distances (L, K, K) are to the geometry asked for, `1 - cos^2` of the targets (K, D).

    Over the K(K-1)/2 pairs of classes. Pearson asks for the same distances up to place and scale; Kendall's tau-b, as
    in 001's structure correlation, only for the same order, but stays below 1 where targets tie and the layer does not
    (.71 at most for two groups of five). Undefined where all distances are equal, as one-hot targets' are: NaN, with a
    warning. Correlation by depth is ours; 000 shows both matrices for the penultimate layer.

    Give probabilities rather than logits as the last layer: a number added to all logits changes no prediction, but
    NAA, which does not centre, sees it as the direction that all classes share.
    """
    given = read_numbers("distances", distances).double()
    asked = target_distance(read_numbers("targets", targets))
    if given.ndim != 3 or given.shape[1:] != asked.shape:
        raise InputError(
            f"distances: expected (L, K, K) for {len(asked)} classes, as the targets have, got shape {tuple(given.shape)}."
        )
    row, column = torch.triu_indices(len(asked), len(asked), offset=1)
    pairs, wanted = given[:, row, column].cpu(), asked[row, column].cpu()
    if _constant(wanted) or any(_constant(layer) for layer in pairs):
        what = "targets" if _constant(wanted) else "distances of a layer"
        warnings.warn(
            f"approach: the {what} are all equally far apart, so a correlation is undefined (NaN).", stacklevel=2
        )
    return Approach(
        torch.stack([_pearson(layer, wanted) for layer in pairs]),
        torch.stack([_kendall(layer, wanted) for layer in pairs]),
    )


def _gatherings(memory: Memory, classes: int) -> dict[str, Gathering]:
    chosen = zip(memory.layers, memory.features, memory.forms, strict=True)
    return {name: Samples(classes) if form == "gram" else Correlations(classes, width) for name, width, form in chosen}


def _not_padding(batch: Sequence[Any], samples: int) -> Tensor:
    """(n,) bool: the rows that count; the loaders of `labelkin.data` fill a last batch with rows of weight 0."""
    weight = getattr(batch, "weight", None)
    return torch.ones(samples, dtype=torch.bool) if weight is None else weight.cpu() != 0


def _check_batch(found: dict[str, Tensor], memory: Memory, samples: int) -> None:
    for (name, activations), width in zip(found.items(), memory.features, strict=True):
        if activations.shape != (samples, width):
            raise InputError(
                f"layer {name!r}: expected {samples} x {width}, a row for each target and as wide as the first batch, "
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
