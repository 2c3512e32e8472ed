"""Figures of a network's activations: features in two dimensions, and class distances by layer."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from labelkin.analysis import Activity, Embedded, Points
from labelkin.report._groups import Groups
from labelkin.report.figures._theme import (
    ACCENT,
    INK,
    SERIES,
    WARM,
    Figure,
    go,
    name_positions,
    new_figure,
    series_color,
    shown,
    shown_all,
)

SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x", "star", "hexagon", "triangle-down", "pentagon")
MOST_NAMED = 24  # with more classes, names are not written into the figure


def projection(
    points: Points | Embedded, targets: Tensor, names: Sequence[str], *, groups: Groups | None = None
) -> Figure:
    """Draw samples in two dimensions, colored by class or superclass.

    Args:
        points: Positions of the samples, from `analysis.mds` or `analysis.tsne`.
        targets: (n,) classes of the samples.
        names: Class names.
        groups: Superclasses to color by; by default the classes.

    Returns:
        The figure.

    Example:
        >>> from labelkin.analysis import mds
        >>> from labelkin.report import figures
        >>> points = mds(torch.cdist(torch.eye(3), torch.eye(3)))
        >>> figure = figures.projection(points, torch.tensor([0, 1, 1]), ["cat", "dog"])
        >>> [trace.name for trace in figure.data if trace.mode == "markers"]
        ['cat', 'dog']
    """
    of_class = range(len(names)) if groups is None else groups.of_class
    raw = names if groups is None else groups.names
    titles = shown_all(raw, 32)
    own = torch.tensor([of_class[k] for k in targets.tolist()])
    figure = new_figure(height=460, showlegend=len(titles) <= MOST_NAMED, hovermode="closest")
    centers = []
    for place, title in enumerate(titles):
        chosen = own == place
        if not chosen.any():
            continue
        here = points.points[chosen]
        centers.append((raw[place], *here.median(0).values.tolist()))
        figure.add_trace(_cloud(place, title, here, [names[k] for k in targets[chosen].tolist()]))
    if len(centers) <= MOST_NAMED:
        figure.add_trace(_titles(centers))
    plain = {"showticklabels": False, "showgrid": False, "title_text": ""}
    figure.update_xaxes(**plain)
    figure.update_yaxes(**plain, scaleanchor="x")
    return figure


def _cloud(place: int, title: str, points: Tensor, names: Sequence[str]) -> Any:
    known: dict[str, str] = {name: shown(name, 40) for name in set(names)}
    return go.Scatter(
        x=_short(points[:, 0]),
        y=_short(points[:, 1]),
        mode="markers",
        name=title,
        marker={
            "color": f"{series_color(place)}b0",
            "size": 6,
            "symbol": SYMBOLS[place // len(SERIES) % len(SYMBOLS)],
        },
        text=[known[name] for name in names] if len(known) > 1 else next(iter(known.values())),
        hovertemplate="%{text}<extra></extra>",
    )


def _short(values: Tensor) -> Any:
    return values.float().numpy()


def _titles(centers: Sequence[tuple[str, float, float]]) -> Any:
    """Return a trace with names in the middle of their clouds; names that would overlap are left out."""
    names = [shown(title, 12) for title, _, _ in centers]
    positions = name_positions([(x, y) for _, x, y in centers], names, sides=("top center", "bottom center"))
    kept = [i for i, position in enumerate(positions) if position is not None]
    return go.Scatter(
        x=[round(centers[i][1], 4) for i in kept],
        y=[round(centers[i][2], 4) for i in kept],
        text=[f"<b>{names[i]}</b>" for i in kept],
        textposition=[positions[i] for i in kept],
        mode="text",
        textfont={"size": 13, "color": INK},
        hoverinfo="skip",
        showlegend=False,
    )


def activity_by_layer(activity: Activity, groups: Groups | None = None) -> Figure:
    """Draw the mean NAA distance of pairs of classes in each layer.

    Distances are between 0 and 1. If similar classes are closer to each other than other classes, the two lines diverge.

    Args:
        activity: Class distances by layer, from `analysis.class_activity`.
        groups: Superclasses; with them, pairs within and across superclasses have separate lines.

    Returns:
        The figure.

    Example:
        >>> from labelkin.analysis import class_activity
        >>> from labelkin.report import figures
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
        >>> batches = [(torch.randn(6, 4), torch.tensor([0, 0, 1, 1, 2, 2]))]
        >>> activity = class_activity(model, batches, layers=["0", "1"], classes=3)
        >>> figures.activity_by_layer(activity).data[0].name
        'all pairs of classes'
    """
    size = activity.distances.shape[1]
    row, column = torch.triu_indices(size, size, offset=1)
    pairs = activity.distances[:, row, column]
    figure = new_figure(height=360, hovermode="x unified", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    for title, color, chosen in kinds_of_pairs(groups, row, column):
        if chosen.any():
            figure.add_scatter(
                x=[shown(name, 18) for name in activity.layers],
                y=[round(value, 4) for value in pairs[:, chosen].mean(1).tolist()],
                mode="lines+markers",
                name=title,
                line={"color": color, "width": 2.5},
                marker={"size": 8},
            )
    figure.update_xaxes(title_text="layer, from input to output", type="category")
    figure.update_yaxes(title_text="mean NAA distance", rangemode="tozero")
    return figure


def kinds_of_pairs(groups: Groups | None, row: Tensor, column: Tensor) -> list[tuple[str, str, Tensor]]:
    """Return the kinds of pairs of classes: within and across superclasses, or all pairs.

    Args:
        groups: Superclasses, or None.
        row: (P,) first class of each pair.
        column: (P,) second class of each pair.

    Returns:
        For each kind its title, its color and a mask (P,) of its pairs.

    Example:
        >>> from labelkin.report import figures
        >>> [(title, mask.tolist()) for title, _, mask in figures.kinds_of_pairs(None, torch.tensor([0]), torch.tensor([1]))]
        [('all pairs of classes', [True])]
    """
    everything = torch.ones(len(row), dtype=torch.bool)
    if groups is None:
        return [("all pairs of classes", ACCENT, everything)]
    of_class = torch.tensor(groups.of_class)
    same = of_class[row] == of_class[column]
    return [("same superclass", ACCENT, same), ("different superclasses", WARM, ~same)]
