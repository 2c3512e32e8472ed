"""Class-by-class figures: similarity with its dendrogram, and confusions in the order of the tree."""

from collections.abc import Sequence
from math import ceil
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
    """Draw a heat map of class similarity beside its average-linkage dendrogram.

    The similarity is `1 - distance / largest distance`. Classes are in the order of the dendrogram; the diagonal is left out.

    Args:
        distances: (K, K) distances, from `analysis.label_distances` or a layer of `analysis.class_activity`.
        names: Class names.

    Returns:
        The figure.

    Example:
        >>> from labelkin.report import figures
        >>> figure = figures.label_similarity([[0, 1, 4], [1, 0, 4], [4, 4, 0]], ["cat", "dog", "car"])
        >>> sorted(figure.layout.xaxis.ticktext)
        ['car', 'cat', 'dog']
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


# The color bar is above the figure, so that it does not take width from the classes.
_BAR = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "y": 1.01,
    "yanchor": "bottom",
    "len": 0.5,
    "lenmode": "fraction",
    "nticks": 4,
    "tickangle": 0,
}


def dendrogram_lines(table: Floats) -> Any:
    """Return the merges of `analysis.linkage_table` as one trace: heights on the x axis, classes on the y axis."""
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
    """Return the lines of a tree as one trace; None separates two lines."""
    return go.Scatter(
        x=rounded(xs),
        y=rounded(ys),
        mode="lines",
        line={"color": MUTED, "width": 1.2},
        hoverinfo="skip",
        showlegend=False,
    )


def rounded(values: Sequence[float | None]) -> list[float | None]:
    """Return the values with four significant digits, which is more than a screen can show."""
    return [None if value is None else float(f"{value:.4g}") for value in values]


def confusion_counts(confusions: Confusions, groups: Groups | None = None) -> Figure:
    """Draw the confusion matrix (rows: true classes, columns: predictions) in the order of the tree.

    Correct answers on the diagonal are drawn in gray, outside the color scale, so that few mistakes remain visible.

    Args:
        confusions: Counts from `analysis.confusion_matrix`.
        groups: Superclasses, which are separated by lines.

    Returns:
        The figure.

    Example:
        >>> from labelkin import Taxonomy
        >>> from labelkin.analysis import confusion_matrix
        >>> from labelkin.report import figures
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]})
        >>> counts = confusion_matrix(torch.tensor([0, 0, 2, 3]), torch.tensor([0, 1, 2, 3]), taxonomy=tree)
        >>> float(figures.confusion_counts(counts).data[0].z[1][0])
        1.0
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
            hovertemplate="true: %{y}<br>predicted: %{x}<br>count %{z}<extra></extra>",
            colorbar=_BAR | {"title": {"text": "count", "side": "right"}, "dtick": max(1, ceil(most / 3))},
        ),
        go.Heatmap(
            x=diagonal,
            y=diagonal,
            z=np.diag(counts).tolist(),
            text=[f"{int(n)} of {int(total)}" for n, total in zip(np.diag(counts), totals, strict=True)],
            hovertemplate="%{y}<br>correct: %{text}<extra></extra>",
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
    """Label every class on both axes, with the first row at the top."""
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
    """Return lines between neighboring superclasses."""
    cuts = [i - 0.5 for i in range(1, len(groups)) if groups[i] != groups[i - 1]]
    line = {"color": MUTED, "width": 0.7}
    across = [{"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": cut, "x1": cut, "line": line} for cut in cuts]
    down = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": cut, "y1": cut, "line": line} for cut in cuts]
    return across + down
