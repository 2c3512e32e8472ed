"""Class by class: label similarity with its dendrogram, and confusions in the order of the tree."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.cluster.hierarchy import leaves_list

from labelkin.analysis import Confusions, linkage_table
from labelkin.report._groups import Groups
from labelkin.report.figures._theme import LINE, MUTED, Figure, go, new_figure, shown_all

Floats = npt.NDArray[np.float64]


def label_similarity(distances: Any, names: Sequence[str]) -> Figure:
    """Heat map of class similarity, `1 - distance / largest distance`, beside its average-linkage dendrogram.

    `distances` (K, K) as `analysis.label_distances` or a layer of `Activity` gives them. 1 is the same place, 0 the
    pair farthest apart; classes are in the dendrogram's order, and the diagonal, always 1, is left out.
    """
    given = torch.as_tensor(distances).double().cpu().numpy()
    table = linkage_table(given)
    order = leaves_list(table)
    similarity = (1 - given / max(float(given.max()), 1e-12))[np.ix_(order, order)].astype(np.float32)
    np.fill_diagonal(similarity, np.nan)
    figure = new_figure(
        go.Heatmap(
            z=similarity,
            hovertemplate="%{y}<br>%{x}<br>similarity %{z:.3f}<extra></extra>",
            colorbar=_BAR | {"title": {"text": "similarity", "side": "right"}},
        ),
        dendrogram_lines(table),
        meta={"square": True},
    )
    _class_axes(figure, shown_all([names[int(k)] for k in order]))
    figure.update_layout(
        xaxis={"domain": [0, 0.84]},
        xaxis2={
            "domain": [0.85, 1],
            "range": [0, 1.03 * float(table[-1, 2])],
            "visible": False,
            "anchor": "y",
            "fixedrange": True,
        },
        margin={"r": 8},
    )
    figure.data[1].update(xaxis="x2")
    return figure


# The scale lies above, where it takes no width from the classes.
_BAR = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "y": 1.01,
    "yanchor": "bottom",
    "len": 0.5,
    "lenmode": "fraction",
    "nticks": 4,
}


def dendrogram_lines(table: Floats) -> Any:
    """The merges of `analysis.linkage_table` as one trace: heights along x, classes along y from 0 on."""
    order = leaves_list(table)
    size = len(order)
    place, height = np.zeros(2 * size - 1), np.zeros(2 * size - 1)
    place[order] = np.arange(size)
    xs: list[float | None] = []
    ys: list[float | None] = []
    for merge, (left, right, at, _) in enumerate(table):
        a, b, new = int(left), int(right), size + merge
        xs += [height[a], at, at, height[b], None]
        ys += [place[a], place[a], place[b], place[b], None]
        place[new], height[new] = (place[a] + place[b]) / 2, at
    return branches(xs, ys)


def branches(xs: Sequence[float | None], ys: Sequence[float | None]) -> Any:
    """The lines of a tree, None between two of them, as one trace."""
    return go.Scatter(
        x=rounded(xs),
        y=rounded(ys),
        mode="lines",
        line={"color": MUTED, "width": 1.2},
        hoverinfo="skip",
        showlegend=False,
    )


def rounded(values: Sequence[float | None]) -> list[float | None]:
    """Four significant digits, which is more than a line on a screen can show."""
    return [None if value is None else float(f"{value:.4g}") for value in values]


def confusion_counts(confusions: Confusions, groups: Groups | None = None) -> Figure:
    """How often a class (row) is taken for another (column), in the order of the tree; lines part the superclasses.

    Right answers lie on the diagonal and are drawn apart from the scale, so that mistakes can be told from none.
    """
    counts = confusions.counts.cpu().numpy()
    totals = counts.sum(1)
    mistakes = counts.astype(np.float32)
    np.fill_diagonal(mistakes, np.nan)
    most = max(1.0, float(np.nanmax(mistakes)))
    size = len(counts)
    diagonal = list(range(size))
    figure = new_figure(
        go.Heatmap(
            z=mistakes,
            zmin=0,
            zmax=most,
            hovertemplate="true: %{y}<br>predicted: %{x}<br>%{z} times<extra></extra>",
            colorbar=_BAR | {"title": {"text": "times", "side": "right"}, "dtick": max(1, round(most / 4))},
        ),
        go.Heatmap(
            x=diagonal,
            y=diagonal,
            z=np.diag(counts).tolist(),
            text=[f"{int(n)} of {int(total)}" for n, total in zip(np.diag(counts), totals, strict=True)],
            hovertemplate="%{y}<br>right %{text}<extra></extra>",
            colorscale=[[0, LINE], [1, LINE]],
            showscale=False,
        ),
        meta={"square": True},
    )
    _class_axes(figure, shown_all(confusions.names))
    figure.update_xaxes(title_text="predicted")
    figure.update_yaxes(title_text="true")
    if groups is not None:
        figure.update_layout(shapes=_borders([groups.of_class[k] for k in confusions.order.tolist()]))
    return figure


def _class_axes(figure: Figure, labels: Sequence[str]) -> None:
    """A label for every class; the first row on top."""
    size = len(labels)
    font = {"size": 12 if size <= 20 else 10 if size <= 45 else 8}
    ticks = {
        "tickmode": "array",
        "tickvals": list(range(size)),
        "ticktext": labels,
        "tickfont": font,
        "showgrid": False,
    }
    figure.update_xaxes(**ticks, tickangle=-90 if max(map(len, labels)) > 3 else 0, range=[-0.5, size - 0.5])
    figure.update_yaxes(**ticks, range=[size - 0.5, -0.5])
    figure.update_layout(height=min(1180, max(440, 11 * size + 120)))


def _borders(groups: Sequence[int]) -> list[dict[str, Any]]:
    """Lines where a superclass ends and the next one begins."""
    cuts = [i - 0.5 for i in range(1, len(groups)) if groups[i] != groups[i - 1]]
    line = {"color": MUTED, "width": 0.7}
    across = [{"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": cut, "x1": cut, "line": line} for cut in cuts]
    down = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": cut, "y1": cut, "line": line} for cut in cuts]
    return across + down
