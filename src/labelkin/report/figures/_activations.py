"""What the network makes of its inputs: its last features in the plane, and class distances from layer to layer."""

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
MOST_NAMED = 24  # names written into the figure


def projection(
    points: Points | Embedded, targets: Tensor, names: Sequence[str], *, groups: Groups | None = None
) -> Figure:
    """Samples in the plane (`analysis.mds` or `analysis.tsne`), coloured by class or, with `groups`, by superclass."""
    of_class = range(len(names)) if groups is None else groups.of_class
    raw = names if groups is None else groups.names
    titles = shown_all(raw, 32)
    own = torch.tensor([of_class[k] for k in targets.tolist()])
    figure = new_figure(height=460, showlegend=len(titles) <= MOST_NAMED, hovermode="closest")
    centres = []
    for place, title in enumerate(titles):
        chosen = own == place
        if not chosen.any():
            continue
        here = points.points[chosen]
        centres.append((raw[place], *here.median(0).values.tolist()))
        figure.add_trace(_cloud(place, title, here, [names[k] for k in targets[chosen].tolist()]))
    if len(centres) <= MOST_NAMED:
        figure.add_trace(_titles(centres))
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


def _titles(centres: Sequence[tuple[str, float, float]]) -> Any:
    """Names in the middle of their clouds, those that do not lie on each other."""
    names = [shown(title, 12) for title, _, _ in centres]
    positions = name_positions([(x, y) for _, x, y in centres], names, sides=("top center", "bottom center"))
    kept = [i for i, position in enumerate(positions) if position is not None]
    return go.Scatter(
        x=[round(centres[i][1], 4) for i in kept],
        y=[round(centres[i][2], 4) for i in kept],
        text=[f"<b>{names[i]}</b>" for i in kept],
        textposition=[positions[i] for i in kept],
        mode="text",
        textfont={"size": 13, "color": INK},
        hoverinfo="skip",
        showlegend=False,
    )


def activity_by_layer(activity: Activity, groups: Groups | None = None) -> Figure:
    """Mean NAA distance of the classes in each layer: of all pairs, or of pairs within and across superclasses.

    0 to 1. Where kin lie nearer to each other than strangers do, the lines part.
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
    """Pairs of classes within and across superclasses, or all of them: a title, a colour, and which pairs."""
    everything = torch.ones(len(row), dtype=torch.bool)
    if groups is None:
        return [("all pairs of classes", ACCENT, everything)]
    of_class = torch.tensor(groups.of_class)
    same = of_class[row] == of_class[column]
    return [("same superclass", ACCENT, same), ("different superclasses", WARM, ~same)]
