"""The hierarchically ordered preference score (HOPS, Sani & Anand, 2026): whether classes are ranked as the tree ranks them."""

import torch
from torch import Tensor

from labelkin._arrays import ranked
from labelkin._checks import InputError, check_choice, check_count
from labelkin.metrics._basic import mean_of
from labelkin.metrics._result import Metric
from labelkin.metrics._validation import check_scores
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

CHUNK = 2**22  # entries of the tables of samples by classes that are held together


def hops(
    scores: Tensor, target: Tensor, taxonomy: Taxonomy, *, k: int | None = None, distance: DistanceKind = "height"
) -> Metric:
    """Return the hierarchically ordered preference score (HOPS@k): 0 to 1, higher is better.

    Each class has a rank for a sample: 0 for the true class, 1 for the classes nearest to it in the tree, 2 for the next
    nearest, and so on. With `e_i` the rank that the class in place i should have, `o_i` the rank of the class that the scores
    put there and `r_i` that of the reversed order, the score is `1 - sum_i w_i |e_i - o_i| / sum_i w_i |e_i - r_i|`, at least
    0. The weight of rank r begins at `2^-r` and falls linearly to that of the next rank over the classes of the rank. Unlike
    the average distance of the best k classes, it depends on their order.

    Args:
        scores: (n, K) scores of the classes. Among equal scores the lowest class position comes first.
        target: (n,) true class positions.
        taxonomy: The tree of the classes.
        k: The number of places that count, at most K; None counts all. HOPS@1 is the accuracy. The reversed order is then that
            of the best k classes, so that a worse choice of classes has a score of 0.
        distance: The kind of distance; see `Taxonomy.distance`.

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]})
        >>> target = torch.tensor([0, 0])
        >>> metrics.hops(torch.tensor([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]]), target, tree).values
        tensor([1., 0.], dtype=torch.float64)
    """
    classes = len(taxonomy.leaves)
    check_choice("distance", distance, DISTANCES)
    check_scores("scores", scores, target, classes)
    if k is not None:
        check_count("k", k)
        if k > classes:
            raise InputError(f"k: expected at most the number of classes, {classes}, got {k}.")
    places = classes if k is None else k
    order = ranked(scores, classes).cpu()
    size = max(1, CHUNK // classes)
    chunks = zip(torch.split(order, size), torch.split(target.cpu(), size), strict=True)
    values = [_values(best, true, taxonomy, places, distance) for best, true in chunks]
    return mean_of("hops", torch.cat(values) if values else torch.zeros(0, dtype=torch.float64))


def _values(order: Tensor, target: Tensor, taxonomy: Taxonomy, places: int, distance: DistanceKind) -> Tensor:
    """Return the scores (n,) of samples whose classes are ordered from the best to the worst."""
    if places == 1:
        return (order[:, 0] == target).double()
    true, back = torch.unique(target, return_inverse=True)
    apart = torch.from_numpy(taxonomy.distance(distance, true.numpy()[:, None], range(len(taxonomy.leaves))))
    ranks = _ranks(apart)
    expected = ranks.sort(-1).values
    weights = _weights(expected)[:, :places]
    expected = expected[:, :places]
    worst = (weights * (expected - expected.flip(-1)).abs()).sum(-1)
    obtained = ranks[back].gather(-1, order[:, :places])
    found = (weights[back] * (expected[back] - obtained).abs()).sum(-1)
    return (1 - found / worst[back]).clamp_min(0)


def _ranks(distances: Tensor) -> Tensor:
    """Return the rank (m, K) of each distance among the distinct distances of its row, from 0."""
    values, order = distances.sort(-1)
    steps = (values.diff(dim=-1) > 0).double().cumsum(-1)
    return torch.zeros_like(distances).scatter(-1, order, torch.nn.functional.pad(steps, (1, 0)))


def _weights(expected: Tensor) -> Tensor:
    """Return (m, K) weights for sorted ranks: from `2^-r` down to the weight of the next rank, and to 0 at the last one."""
    classes, last = expected.shape[-1], expected[:, -1:]
    counts = torch.zeros_like(expected).scatter_add(-1, expected.long(), torch.ones_like(expected))
    first = counts.cumsum(-1) - counts  # the place where each rank begins
    own = expected.long()
    along = (torch.arange(classes) - first.gather(-1, own)) / counts.gather(-1, own)
    start = torch.exp2(-expected)
    end = torch.where(expected == last, 0.0, start / 2)
    return start + along * (end - start)
