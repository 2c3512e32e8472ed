"""Figures of a learned tree, alone and beside the taxonomy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import leaves_list

from labelkin.report._groups import Groups
from labelkin.report.figures._grids import branches, dendrogram_lines, rounded
from labelkin.report.figures._theme import MUTED, Figure, go, new_figure, series_color, shown
from labelkin.structure import Taxonomy

NAME = 14  # characters of a class name
TREE, GAP, WIDTH_OF_LETTER = 1.0, 0.75, 0.065  # widths of a tree, of the lines between the names, and of a letter


def tree_comparison(
    taxonomy: Taxonomy, learned: npt.NDArray[np.float64], names: Sequence[str], groups: Groups | None = None
) -> Figure:
    """Draw the taxonomy on the left and the learned tree on the right, with a line between equal classes.

    The fewer lines cross, the better the trees agree. Colors show the superclasses.

    Args:
        taxonomy: The taxonomy.
        learned: The learned tree, from `analysis.linkage_table`.
        names: Class names.
        groups: Superclasses.

    Returns:
        The figure.

    Example:
        >>> from labelkin import Taxonomy
        >>> from labelkin.analysis import linkage_table
        >>> from labelkin.report import figures
        >>> tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "farm": ["cow"]})
        >>> learned = linkage_table([[0, 1, 4], [1, 0, 4], [4, 4, 0]])
        >>> [note.text for note in figures.tree_comparison(tree, learned, tree.classes).layout.annotations]
        ['taxonomy', 'learned']
    """
    place_right = {int(k): place for place, k in enumerate(leaves_list(learned))}
    place_left = {k: place for place, k in enumerate(_untangled(taxonomy, place_right))}
    labels = [shown(name, NAME) for name in names]
    width = 0.12 + WIDTH_OF_LETTER * min(NAME, max(map(len, names)))
    begin = TREE + width  # of the lines between the trees; the learned tree begins at `turn`
    end = begin + GAP
    turn = end + width
    figure = new_figure(
        _taxonomy_lines(taxonomy, place_left),
        _learned_lines(learned, turn),
        *_links(place_left, place_right, groups, begin, end),
        _names(names, labels, place_left, TREE + 0.04, "middle right"),
        _names(names, labels, place_right, turn - 0.04, "middle left"),
        height=_height(len(names)),
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        showlegend=False,
        meta={"least_width": 600},
        annotations=[_heading(0, "left", "taxonomy"), _heading(turn + TREE, "right", "learned")],
    )
    figure.update_xaxes(visible=False, range=[-0.02, turn + TREE + 0.02])
    figure.update_yaxes(visible=False, range=[len(names) - 0.5, -0.5])
    return figure


def learned_tree(learned: npt.NDArray[np.float64], names: Sequence[str]) -> Figure:
    """Draw a learned tree with the classes on its left; the further right two classes meet, the less they are confused.

    Args:
        learned: The learned tree, from `analysis.linkage_table`.
        names: Class names.

    Returns:
        The figure.

    Example:
        >>> from labelkin.analysis import linkage_table
        >>> from labelkin.report import figures
        >>> learned = linkage_table([[0, 1, 4], [1, 0, 4], [4, 4, 0]])
        >>> figures.learned_tree(learned, ["cat", "dog", "cow"]).data[1].text
        ('cow', 'dog', 'cat')
    """
    places = {int(k): place for place, k in enumerate(leaves_list(learned))}
    width = 0.12 + WIDTH_OF_LETTER * min(NAME, max(map(len, names)))
    figure = new_figure(
        _learned_lines(learned, width),
        _names(names, [shown(name, NAME) for name in names], places, width - 0.04, "middle left"),
        height=_height(len(names)),
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        showlegend=False,
    )
    figure.update_xaxes(visible=False, range=[-0.02, width + TREE + 0.02])
    figure.update_yaxes(visible=False, range=[len(names) - 0.5, -0.5])
    return figure


def _height(classes: int) -> int:
    return min(1500, max(420, 15 * classes + 60))


def _learned_lines(learned: npt.NDArray[np.float64], turn: float) -> Any:
    top = float(learned[:, 2].max()) or 1.0
    tree = dendrogram_lines(learned)
    return tree.update(x=rounded([None if x is None else turn + TREE * x / top for x in tree.x]))


def _untangled(taxonomy: Taxonomy, places: dict[int, int]) -> list[int]:
    """Return the classes from top to bottom, ordered so that few lines cross.

    The order of children in a taxonomy has no meaning, so children are sorted by the mean position of their classes in the
    other tree.
    """
    sums, counts = np.zeros(len(taxonomy)), np.zeros(len(taxonomy))
    for k, place in places.items():
        above = taxonomy.ancestors(int(taxonomy.leaves[k]))
        sums[above] += place
        counts[above] += 1
    class_of = {int(leaf): k for k, leaf in enumerate(taxonomy.leaves)}
    ordered, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        if node in class_of:
            ordered.append(class_of[node])
        children = taxonomy.children[node].tolist()
        waiting.extend(sorted(children, key=lambda child: -sums[child] / counts[child]))
    return ordered


def _taxonomy_lines(taxonomy: Taxonomy, place_of_class: dict[int, int]) -> Any:
    place = np.zeros(len(taxonomy))
    for k, at in place_of_class.items():
        place[taxonomy.leaves[k]] = at
    for node in range(len(taxonomy) - 1, -1, -1):
        if len(taxonomy.children[node]):
            place[node] = place[taxonomy.children[node]].mean()
    across = 1 - taxonomy.height / taxonomy.height[0]
    xs: list[float | None] = []
    ys: list[float | None] = []
    for node in range(1, len(taxonomy)):
        above = taxonomy.parents[node]
        xs += [across[above], across[above], across[node], None]
        ys += [place[above], place[node], place[node], None]
    return branches(xs, ys)


def _links(left: dict[int, int], right: dict[int, int], groups: Groups | None, begin: float, end: float) -> list[Any]:
    of_class = [0] * len(left) if groups is None else groups.of_class
    traces = []
    for group in sorted(set(of_class)):
        own = [k for k in left if of_class[k] == group]
        traces.append(
            go.Scatter(
                x=[x for _ in own for x in (begin, end, None)],
                y=[y for k in own for y in (left[k], right[k], None)],
                mode="lines",
                line={"color": series_color(group), "width": 1.4},
                hoverinfo="skip",
            )
        )
    return traces


def _names(names: Sequence[str], labels: Sequence[str], places: dict[int, int], x: float, position: str) -> Any:
    return go.Scatter(
        x=[x] * len(places),
        y=list(places.values()),
        text=[labels[k] for k in places],
        customdata=[shown(names[k], 60) for k in places],
        mode="text",
        textposition=position,
        textfont={"size": 12 if len(places) <= 45 else 10},
        hovertemplate="%{customdata}<extra></extra>",
        cliponaxis=False,
    )


def _heading(x: float, side: str, text: str) -> dict[str, Any]:
    return {
        "x": x,
        "y": 1,
        "yref": "paper",
        "xanchor": side,
        "yanchor": "bottom",
        "text": text,
        "showarrow": False,
        "font": {"color": MUTED, "size": 12},
    }
