"""Panels on what a model learned."""

from collections.abc import Sequence
from math import isnan

import torch

from labelkin.analysis import linkage_table
from labelkin.report import figures
from labelkin.report.groups import Groups
from labelkin.report.learned import Features, Kinship
from labelkin.report.parts import NARROW, Listing, Panel, Table
from labelkin.structure import Taxonomy


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
