"""Class similarity and features of a model, and the panels that show them."""

from collections.abc import Sequence
from math import isnan
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from labelkin import metrics
from labelkin._checks import InputError, counted
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
LAYER_MEMORY = 2**29  # bytes; layers whose NAA needs more are skipped
NEIGHBORS = 5
SKIPPED_LAYERS = (nn.Conv2d, nn.Linear, nn.BatchNorm1d, nn.BatchNorm2d, nn.Flatten, nn.Dropout, nn.Identity)


class ClassSimilarity(NamedTuple):
    """Distances between the classes of a model.

    Attributes:
        source: What the distances are computed from, such as "the label vectors".
        distances: (K, K) distances.
        nearest: The nearest classes of each class.
        structure: Correlation with the distances in the tree; None with fewer than three classes.
    """

    source: str
    distances: Tensor
    nearest: Nearest
    structure: StructureCorrelation | None


class Features(NamedTuple):
    """Features of test samples in two dimensions, their classes, and the class activity of some layers."""

    points: Points | Embedded
    targets: Tensor
    activity: Activity


def class_similarity(vectors: Tensor, taxonomy: Taxonomy, source: str = "the label vectors") -> ClassSimilarity | None:
    """Return the Euclidean distances of label vectors (K, D); None if all are equal, as for one-hot vectors."""
    distances = label_distances(vectors)
    off_diagonal = distances[~torch.eye(len(distances), dtype=torch.bool)]
    if float(off_diagonal.max() - off_diagonal.min()) <= 1e-9 * float(off_diagonal.max()):
        return None
    near = nearest(vectors, taxonomy.classes, min(NEIGHBORS, len(distances) - 1), rule="euclidean")
    structure = None
    if len(distances) > 2:
        structure = metrics.structure_correlation(vectors, taxonomy.distance("height"), given="vectors")
    return ClassSimilarity(source, distances, near, structure)


def follows_tree(similarity: ClassSimilarity, taxonomy: Taxonomy) -> bool:
    """Return whether the distances are those of the tree: the root of the number of edges, or in the order of the heights."""
    found = similarity.distances.double()
    edges = torch.from_numpy(taxonomy.distance("edges")).double().sqrt()
    if torch.allclose(found / found.max(), edges / edges.max(), atol=1e-5):
        return True
    values = torch.tensor([]) if similarity.structure is None else similarity.structure.values
    known = values[~values.isnan()]
    return len(known) > 0 and bool((known > 1 - 1e-6).all())


def class_means(scores: Tensor, target: Tensor) -> Tensor | None:
    """Return the mean scores (K, K) of each class's samples; None if a class has no samples."""
    counts = torch.bincount(target, minlength=scores.shape[1])
    if not bool(counts.all()):
        return None
    return torch.zeros(scores.shape[1], scores.shape[1], dtype=torch.float64).index_add_(
        0, target, scores.double()
    ) / counts.unsqueeze(1)


def features_of(
    model: nn.Module, inputs: Tensor, targets: Tensor, classes: int, *, projection: Projection = "mds"
) -> Features:
    """Return the features of a `labelkin.Model` for normalized inputs, a few of each class."""
    layers = _layers(model, inputs, classes)
    batches = list(zip(torch.split(inputs, BATCH), torch.split(targets, BATCH), strict=True))
    activity = class_activity(model, batches, layers=layers, classes=classes, samples=len(inputs))
    activity = activity._replace(layers=tuple(map(_short, activity.layers)))
    model.eval()
    with torch.no_grad():
        features = torch.cat([model.get_submodule("backbone")(part).flatten(1).double() for part, _ in batches])
    if projection == "tsne":
        return Features(tsne(features, perplexity=min(30.0, (len(features) - 1) / 3)), targets, activity)
    between = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    return Features(mds(between), targets, activity)


def _layers(model: nn.Module, inputs: Tensor, classes: int) -> list[str]:
    """Return the names of some blocks spread over the backbone's depth, and last the backbone; large blocks are skipped."""
    backbone = model.get_submodule("backbone")
    blocks = [name for name, module in _blocks(backbone, "backbone") if not isinstance(module, SKIPPED_LAYERS)]
    fitting = [name for name in blocks[:-1] if _fits(model, name, inputs, classes)]
    most = MOST_LAYERS - 1
    chosen = [fitting[i * len(fitting) // most] for i in range(most)] if len(fitting) > most else fitting
    return [*chosen, "backbone"]


def _short(name: str) -> str:
    """Return a short name of a layer: `stage1.0` for `backbone.layers.stage1.0`, "features" for the backbone."""
    return "features" if name == "backbone" else name.removeprefix("backbone.").removeprefix("layers.")


def _blocks(module: nn.Module, name: str) -> list[tuple[str, nn.Module]]:
    """Return the blocks of a network in order; a sequence is replaced by its parts."""
    children = list(module.named_children())
    opened = name == "backbone" or isinstance(module, nn.Sequential)
    if not children or not opened:
        return [(name, module)]
    return [block for child, part in children for block in _blocks(part, f"{name}.{child}")]


def _fits(model: nn.Module, name: str, inputs: Tensor, classes: int) -> bool:
    try:
        need = activity_memory(model, inputs[:1], layers=[name], classes=classes, samples=len(inputs))
    except InputError:  # the layer runs several times, or returns no tensor
        return False
    return need.bytes <= LAYER_MEMORY


def spread_over_classes(targets: Tensor, most: int) -> Tensor:
    """Return positions of about `most` samples: the first ones of each class, equally many per class."""
    classes = int(targets.max()) + 1
    each = max(2, most // classes)
    rows: Sequence[Tensor] = [(targets == k).nonzero().flatten()[:each] for k in range(classes)]
    return torch.cat(list(rows)).sort().values


def similarity_panels(
    similarity: ClassSimilarity | None, taxonomy: Taxonomy, groups: Groups | None, why: str
) -> list[Panel]:
    """Return the panels on class similarity; without it, they show the reason `why`."""
    similar, trees = "Class similarity", "Taxonomy and learned tree"
    if similarity is None:
        return [Panel("similarity", similar, "", missing=why), Panel("trees", trees, "", missing=why)]
    names, table = taxonomy.classes, linkage_table(similarity.distances)
    largest = float(similarity.distances.max())
    values = [tuple(round(1 - d / largest, 2) for d in row) for row in similarity.distances.tolist()]
    agreement = "undefined"
    if similarity.structure is not None and not isnan(similarity.structure.mean):
        agreement = f"{similarity.structure.mean:+.2f}".replace("-", "−")
    return [
        Panel(
            "similarity",
            similar,
            f"Similarity of {similarity.source}, in the order of the dendrogram: 1 means equal, 0 is the most distant pair.",
            {"": figures.label_similarity(similarity.distances, names)},
            Table(("class", *names), [(name, *row) for name, row in zip(names, values, strict=True)]),
            wide=len(names) > NARROW,
        ),
        Panel(
            "trees",
            trees,
            f"The correlation of their distances is {agreement} (mean Kendall’s tau-b; 1: same order, 0: none). "
            "The fewer lines cross, the better the trees agree.",
            {"": figures.tree_comparison(taxonomy, table, names, groups)},
            _tree_table(similarity, taxonomy, groups),
            wide=len(names) > NARROW,
        ),
    ]


def _tree_table(similarity: ClassSimilarity, taxonomy: Taxonomy, groups: Groups | None) -> Table:
    tree_distances = taxonomy.distance("height")
    rows = []
    for k, name in enumerate(taxonomy.classes):
        group = "–" if groups is None else groups.names[groups.of_class[k]]
        other = int(similarity.nearest.positions[k, 0])
        tau = float("nan") if similarity.structure is None else float(similarity.structure.values[k])
        rows.append(
            (name, group, taxonomy.classes[other], int(tree_distances[k, other]), None if isnan(tau) else round(tau, 3))
        )
    return Table(("class", "superclass", "nearest class", "tree distance", "correlation"), rows)


def nearest_listing(similarity: ClassSimilarity) -> Listing:
    """Return the table of each class's nearest classes."""
    near = similarity.nearest
    columns = ("class", *(f"{i + 1}." for i in range(near.positions.shape[1])))
    rows = [(name, *others) for name, others in zip(near.names, near.neighbours, strict=True)]
    return Listing(
        "Nearest classes", f"The nearest class first, by distance of {similarity.source}.", Table(columns, rows)
    )


def feature_panels(features: Features | None, taxonomy: Taxonomy, groups: Groups | None, why: str) -> list[Panel]:
    """Return the panels on features; without features, they show the reason `why`."""
    plane, depth = "Features of the last layer", "Class distances by layer"
    if features is None:
        return [Panel("projection", plane, "", missing=why), Panel("layers", depth, "", missing=why)]
    names = taxonomy.classes
    views = {"class": figures.projection(features.points, features.targets, names)}
    if groups is not None:
        views["superclass"] = figures.projection(features.points, features.targets, names, groups=groups)
    method = "Classical scaling (MDS)" if hasattr(features.points, "explained") else "t-SNE"
    activity = features.activity
    panels = [
        Panel(
            "projection",
            plane,
            f"{method} of the features of {counted(len(features.targets), 'test sample')}; nearby samples have "
            f"similar features.",
            views,
            _centers(features, names),
            views="Color by",
        )
    ]
    if len(activity.layers) > 1:  # a single layer has no course to show
        panels.append(
            Panel(
                "layers",
                depth,
                "Mean NAA distance of pairs of classes: 0 if a layer responds to both classes equally, 1 if nothing is shared.",
                {"": figures.activity_by_layer(activity, groups)},
                _layer_table(features, groups),
            )
        )
    return panels


def _centers(features: Features, names: Sequence[str]) -> Table:
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
