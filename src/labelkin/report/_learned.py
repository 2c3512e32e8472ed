"""What a model learned about its classes, and the panels that show it."""

from collections.abc import Sequence
from math import isnan
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from labelkin import metrics
from labelkin._checks import InputError
from labelkin.analysis import (
    Activity,
    Embedded,
    Nearest,
    Points,
    activity_memory,
    class_activity,
    label_distances,
    linkage_table,
    mds,
    nearest,
    tsne,
)
from labelkin.metrics import StructureCorrelation
from labelkin.report import figures
from labelkin.report._groups import Groups
from labelkin.report._page_model import NARROW, Listing, Panel, Table
from labelkin.structure import Taxonomy

Projection = Literal["mds", "tsne"]
BATCH = 250
MOST_LAYERS = 6
LAYER_MEMORY = 2**29  # bytes that the NAA of one layer may take
NEIGHBOURS = 5
PASSED_OVER = (nn.Conv2d, nn.Linear, nn.BatchNorm1d, nn.BatchNorm2d, nn.Flatten, nn.Dropout, nn.Identity)


class Kinship(NamedTuple):
    """How far apart a model holds its classes."""

    source: str  # where the distances come from, in words
    distances: Tensor  # (K, K)
    nearest: Nearest
    structure: StructureCorrelation | None  # with the tree; None below three classes


class Features(NamedTuple):
    points: Points | Embedded
    targets: Tensor
    activity: Activity


def kinship_of(vectors: Tensor, taxonomy: Taxonomy, source: str = "its label vectors") -> Kinship | None:
    """From label vectors (K, D), by Euclidean distance; None where all lie equally far apart, as one-hot ones do."""
    distances = label_distances(vectors)
    apart = distances[~torch.eye(len(distances), dtype=torch.bool)]
    if float(apart.max() - apart.min()) <= 1e-9 * float(apart.max()):
        return None
    near = nearest(vectors, taxonomy.classes, min(NEIGHBOURS, len(distances) - 1), rule="euclidean")
    structure = None
    if len(distances) > 2:
        structure = metrics.structure_correlation(vectors, taxonomy.distance("height"), given="vectors")
    return Kinship(source, distances, near, structure)


def class_means(scores: Tensor, target: Tensor) -> Tensor | None:
    """(K, K) the mean scores of each class's samples; None where a class has none."""
    counts = torch.bincount(target, minlength=scores.shape[1])
    if not bool(counts.all()):
        return None
    return torch.zeros(scores.shape[1], scores.shape[1], dtype=torch.float64).index_add_(
        0, target, scores.double()
    ) / counts.unsqueeze(1)


def features_of(
    model: nn.Module, inputs: Tensor, targets: Tensor, classes: int, *, how: Projection = "mds"
) -> Features:
    """From a `labelkin.training.Model` and normalised inputs, a few of every class."""
    layers = _layers(model, inputs, classes)
    batches = list(zip(torch.split(inputs, BATCH), torch.split(targets, BATCH), strict=True))
    activity = class_activity(model, batches, layers=layers, classes=classes, samples=len(inputs))
    activity = activity._replace(layers=tuple(map(_short, activity.layers)))
    model.eval()
    with torch.no_grad():
        features = torch.cat([model.get_submodule("backbone")(part).flatten(1).double() for part, _ in batches])
    if how == "tsne":
        return Features(tsne(features, perplexity=min(30.0, (len(features) - 1) / 3)), targets, activity)
    between = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    return Features(mds(between), targets, activity)


def _layers(model: nn.Module, inputs: Tensor, classes: int) -> list[str]:
    """Some blocks of the backbone spread over its depth, the backbone itself last; wide ones are passed over."""
    backbone = model.get_submodule("backbone")
    found = [name for name, module in _blocks(backbone, "backbone") if not isinstance(module, PASSED_OVER)]
    fitting = [name for name in found[:-1] if _fits(model, name, inputs, classes)]
    most = MOST_LAYERS - 1
    chosen = [fitting[i * len(fitting) // most] for i in range(most)] if len(fitting) > most else fitting
    return [*chosen, "backbone"]


def _short(name: str) -> str:
    """`backbone.layers.stage1.0` as `stage1.0`; what the backbone hands on are the features."""
    return "features" if name == "backbone" else name.removeprefix("backbone.").removeprefix("layers.")


def _blocks(module: nn.Module, name: str) -> list[tuple[str, nn.Module]]:
    """What a net does one after the other: sequences opened, blocks left whole."""
    children = list(module.named_children())
    opened = name == "backbone" or isinstance(module, nn.Sequential)
    if not children or not opened:
        return [(name, module)]
    return [block for child, part in children for block in _blocks(part, f"{name}.{child}")]


def _fits(model: nn.Module, name: str, inputs: Tensor, classes: int) -> bool:
    try:
        need = activity_memory(model, inputs[:1], layers=[name], classes=classes, samples=len(inputs))
    except InputError:  # a layer that does not run once, or returns no activations
        return False
    return need.bytes <= LAYER_MEMORY


def spread_over_classes(targets: Tensor, most: int) -> Tensor:
    """Positions of at most `most` samples, equally many of each class, the first of each."""
    classes = int(targets.max()) + 1
    each = max(2, most // classes)
    rows: Sequence[Tensor] = [(targets == k).nonzero().flatten()[:each] for k in range(classes)]
    return torch.cat(list(rows)).sort().values


def kinship_panels(kinship: Kinship | None, taxonomy: Taxonomy, groups: Groups | None, why: str) -> list[Panel]:
    similar, trees = "Which classes it takes for kin", "The taxonomy beside the tree it learned"
    if kinship is None:
        return [Panel("similarity", similar, "", missing=why), Panel("trees", trees, "", missing=why)]
    names, table = taxonomy.classes, linkage_table(kinship.distances)
    largest = float(kinship.distances.max())
    similarity = [tuple(round(1 - d / largest, 2) for d in row) for row in kinship.distances.tolist()]
    agreement = "undefined"
    if kinship.structure is not None and not isnan(kinship.structure.mean):
        agreement = f"{kinship.structure.mean:+.2f}".replace("-", "−")
    return [
        Panel(
            "similarity",
            similar,
            f"Similarity of {kinship.source}, in the order of the dendrogram: 1 is the same place, 0 the pair farthest apart.",
            {"": figures.label_similarity(kinship.distances, names)},
            Table(("class", *names), [(name, *row) for name, row in zip(names, similarity, strict=True)]),
            wide=len(names) > NARROW,
        ),
        Panel(
            "trees",
            trees,
            f"Their correlation is {agreement} (Kendall’s tau-b over each class’s distances; 1 is the same order, 0 none). The "
            "fewer lines cross, the better they agree.",
            {"": figures.tree_comparison(taxonomy, table, names, groups)},
            _tree_table(kinship, taxonomy, groups),
            wide=len(names) > NARROW,
        ),
    ]


def _tree_table(kinship: Kinship, taxonomy: Taxonomy, groups: Groups | None) -> Table:
    far = taxonomy.distance("height")
    rows = []
    for k, name in enumerate(taxonomy.classes):
        group = "–" if groups is None else groups.names[groups.of_class[k]]
        other = int(kinship.nearest.positions[k, 0])
        tau = float("nan") if kinship.structure is None else float(kinship.structure.values[k])
        rows.append((name, group, taxonomy.classes[other], int(far[k, other]), None if isnan(tau) else round(tau, 3)))
    return Table(("class", "superclass", "nearest learned", "its tree distance", "correlation"), rows)


def nearest_listing(kinship: Kinship) -> Listing:
    near = kinship.nearest
    columns = ("class", *(f"{i + 1}." for i in range(near.positions.shape[1])))
    rows = [(name, *others) for name, others in zip(near.names, near.neighbours, strict=True)]
    return Listing("Nearest labels", f"The nearest first, by {kinship.source}.", Table(columns, rows))


def feature_panels(features: Features | None, taxonomy: Taxonomy, groups: Groups | None, why: str) -> list[Panel]:
    plane, depth = "Its last features, in the plane", "Class distances from layer to layer"
    if features is None:
        return [Panel("projection", plane, "", missing=why), Panel("layers", depth, "", missing=why)]
    names = taxonomy.classes
    views = {"class": figures.projection(features.points, features.targets, names)}
    if groups is not None:
        views["superclass"] = figures.projection(features.points, features.targets, names, groups=groups)
    method = "Classical scaling (MDS)" if hasattr(features.points, "explained") else "t-SNE"
    activity = features.activity
    return [
        Panel(
            "projection",
            plane,
            f"{method} of the penultimate layer for {len(features.targets):,} test samples; near means alike.",
            views,
            _centres(features, names),
            views="Colour by",
        ),
        Panel(
            "layers",
            depth,
            "Mean NAA distance of pairs of classes: 0 means that a layer responds alike to both, 1 that it shares nothing.",
            {"": figures.activity_by_layer(activity, groups)},
            _layer_table(features, groups),
        ),
    ]


def _centres(features: Features, names: Sequence[str]) -> Table:
    rows = []
    for k, name in enumerate(names):
        own = features.points.points[features.targets == k]
        if len(own):
            x, y = own.mean(0).tolist()
            spread = float((own - own.mean(0)).square().sum(1).mean().sqrt())
            rows.append((name, len(own), round(x, 3), round(y, 3), round(spread, 3)))
    return Table(("class", "samples", "mean x", "mean y", "spread"), rows)


def _layer_table(features: Features, groups: Groups | None) -> Table:
    distances = features.activity.distances
    row, column = torch.triu_indices(distances.shape[1], distances.shape[2], offset=1)
    pairs = distances[:, row, column]
    kinds = figures.kinds_of_pairs(groups, row, column)
    columns = [title for title, _, chosen in kinds if chosen.any()]
    means = [pairs[:, chosen].mean(1).tolist() for _, _, chosen in kinds if chosen.any()]
    rows = zip(features.activity.layers, *means, strict=True)
    return Table(("layer", *columns), [(name, *(round(v, 4) for v in values)) for name, *values in rows])
