"""Style of all figures: palette, fonts, escaped names and label placement."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from labelkin._extras import require

LIMIT = 22  # characters of a name at an axis
ISOLATE, POP = "\u2068", "\u2069"


def shown(text: str, limit: int = LIMIT) -> str:
    """Return text as one escaped line of at most `limit` characters; long text is cut in the middle.

    Text that is not ASCII is enclosed in Unicode isolates, so that its writing direction does not affect its surroundings.
    """
    line = " ".join(text.split())
    if len(line) > limit:
        tail = (limit - 1) // 2
        line = f"{line[: limit - 1 - tail]}…{line[-tail:]}"
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped if text.isascii() else f"{ISOLATE}{escaped}{POP}"


def shown_all(names: Sequence[str], limit: int = LIMIT) -> list[str]:
    """Return shortened names that are distinct: names that became equal get their position, counted from 1."""
    cut = [shown(name, limit) for name in names]
    return [f"{text} ({place})" if cut.count(text) > 1 else text for place, text in enumerate(cut, start=1)]


# Sizes in a small figure, as shares of the extent of its points; a third of the width is left free for names.
LETTER, LINE_HEIGHT = 0.036, 0.05
DOT = (0.04, 0.025)  # half the width and height of a point
NAME_DISTANCE = (0.05, 0.03)  # from the middle of a point to its name
SIDES = (
    "top center",
    "bottom center",
    "middle right",
    "middle left",
    "top right",
    "top left",
    "bottom right",
    "bottom left",
)


class _Box(NamedTuple):
    left: float
    right: float
    low: float
    high: float

    def overlaps(self, other: "_Box") -> bool:
        return self.left < other.right and other.left < self.right and self.low < other.high and other.low < self.high


def name_positions(
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    *,
    others: Sequence[tuple[float, float]] = (),
    extent: Sequence[tuple[float, float]] = (),
    sides: Sequence[str] = SIDES,
) -> list[str | None]:
    """Return a plotly `textposition` for the name of each point such that names and points do not overlap.

    Args:
        points: Positions; larger y is further up. Earlier points choose first, unless more names fit in another order.
        names: The name of each point.
        others: Positions of points without a name.
        extent: Further positions within the range of the axes.
        sides: The positions to try, in this order.

    Returns:
        One position per point; None if its name does not fit.
    """
    known = len(points) + len(others)
    everything = [*points, *others, *extent]
    xs, ys = (_shares(list(along))[:known] for along in zip(*everything, strict=True)) if everything else ([], [])
    dots = [_Box(x - DOT[0], x + DOT[0], y - DOT[1], y + DOT[1]) for x, y in zip(xs, ys, strict=True)]
    around = [_candidates(x, y, LETTER * len(name)) for x, y, name in zip(xs, ys, names, strict=False)]
    places = range(len(around))
    best: list[str | None] = [None] * len(around)
    for start in places:  # other points choose first if a name has no room
        chosen = _placed([*places[start:], *places[:start]], around, dots, sides)
        if start == 0 or chosen.count(None) < best.count(None):
            best = chosen
        if None not in best:
            break
    return best


def _placed(
    order: Sequence[int], around: Sequence[Mapping[str, _Box]], dots: Sequence[_Box], sides: Sequence[str]
) -> list[str | None]:
    """Return the first free position of each name, if points choose in this order."""
    chosen: list[str | None] = [None] * len(around)
    taken: list[_Box] = []
    for place in order:
        rest = [*dots[:place], *dots[place + 1 :], *taken]
        for side in sides:
            box = around[place][side]
            if box.left >= -0.3 and box.right <= 1.3 and not any(box.overlaps(other) for other in rest):
                taken.append(box)
                chosen[place] = side
                break
    return chosen


def _candidates(x: float, y: float, width: float) -> dict[str, _Box]:
    half = width / 2
    above = (y + NAME_DISTANCE[1], y + NAME_DISTANCE[1] + LINE_HEIGHT)
    below = (y - NAME_DISTANCE[1] - LINE_HEIGHT, y - NAME_DISTANCE[1])
    return {
        "top center": _Box(x - half, x + half, *above),
        "bottom center": _Box(x - half, x + half, *below),
        "top right": _Box(x, x + width, *above),
        "top left": _Box(x - width, x, *above),
        "bottom right": _Box(x, x + width, *below),
        "bottom left": _Box(x - width, x, *below),
        "middle right": _Box(
            x + NAME_DISTANCE[0], x + NAME_DISTANCE[0] + width, y - LINE_HEIGHT / 2, y + LINE_HEIGHT / 2
        ),
        "middle left": _Box(
            x - NAME_DISTANCE[0] - width, x - NAME_DISTANCE[0], y - LINE_HEIGHT / 2, y + LINE_HEIGHT / 2
        ),
    }


def _shares(values: Sequence[float]) -> list[float]:
    """Return the values scaled to the range from 0 to 1."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return [(value - low) / ((high - low) or 1.0) for value in values]


go: Any = require("plotly.graph_objects", extra="report", use="the report")
Figure = Any  # plotly.graph_objects.Figure, which comes without type stubs

INK, MUTED, LINE, SURFACE = "#1b2430", "#566272", "#dde3ea", "#ffffff"
ACCENT, WARM = "#1f5fa8", "#b04a00"
SERIES = (ACCENT, "#c2571a", "#00806f", "#9c3f88", "#7d6600", "#3b8ec4", "#8a2f2f", "#5a6f3c")
SCALE = ("#f3f6fa", "#c6daee", "#7caedb", "#2b6fb0", "#0d386b")  # low to high

BRIGHT_SERIES = ("#79b2ff", "#ff9b5c", "#45cdb6", "#e693d3", "#d8c155", "#9fd0f5", "#ff938a", "#b3cc8c")
BRIGHT_SCALE = ("#1b232d", "#1d3f63", "#2a6cab", "#74aee4", "#e2effb")

# The color that replaces each color on a dark background.
DARK = {
    INK: "#e8edf3",
    MUTED: "#a5b1bf",
    LINE: "#313c49",
    SURFACE: "#161c24",
    WARM: "#ffab6b",
    **dict(zip(SERIES, BRIGHT_SERIES, strict=True)),
    **dict(zip(SCALE, BRIGHT_SCALE, strict=True)),
}
LEGEND_ABOVE = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
DASHES = ("solid", "dash", "dot", "dashdot")


def series_color(place: int) -> str:
    """Return the color of a series."""
    return SERIES[place % len(SERIES)]


def series_dash(place: int) -> str:
    """Return the dash of a series; it changes after eight series, where colors repeat."""
    return DASHES[place // len(SERIES) % len(DASHES)]


def _axis() -> dict[str, Any]:
    return {
        "gridcolor": LINE,
        "linecolor": LINE,
        "zeroline": False,
        "ticks": "",
        "ticklabelstandoff": 5,
        "automargin": True,
        "title": {"standoff": 12},
    }


@cache
def template() -> Any:
    """Return the plotly template of all figures.

    Returns:
        A template for `figure.update_layout(template=...)`.

    Example:
        >>> from labelkin.report import figures
        >>> figures.template().layout.font.size
        13
    """
    steps = [[i / (len(SCALE) - 1), color] for i, color in enumerate(SCALE)]
    bar = {"thickness": 10, "outlinewidth": 0, "tickcolor": LINE}
    return go.layout.Template(
        layout={
            "font": {"family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", "size": 13, "color": INK},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(SERIES),
            "margin": {"l": 56, "r": 16, "t": 16, "b": 48},
            "xaxis": _axis(),
            "yaxis": _axis(),
            "hoverlabel": {
                "bgcolor": SURFACE,
                "bordercolor": MUTED,
                "font": {"color": INK, "size": 13},
                "align": "left",
            },
            "legend": {"itemsizing": "constant"},
        },
        data={"heatmap": [{"colorscale": steps, "colorbar": bar}]},
    )


def new_figure(*traces: Any, **layout: Any) -> Figure:
    """Return a figure with the template."""
    return go.Figure(data=list(traces), layout={"template": template(), **layout})


def dark(figure: Figure) -> Figure:
    """Return a copy of a figure for a dark background.

    Args:
        figure: A figure of this package.

    Returns:
        The figure with other colors.

    Example:
        >>> from labelkin.report import figures
        >>> from labelkin.report.figures._learning import Curve
        >>> light = figures.learning_curves([Curve("one-hot", (1, 2), (0.8, 0.9), (0.01, 0.02), None)])
        >>> figures.dark(light).data[1].line.color != light.data[1].line.color
        True
    """
    return go.Figure(recolored(figure.to_plotly_json(), DARK))


def recolored(node: Any, colors: Mapping[str, str], *, is_color: bool = False) -> Any:
    """Return plotly JSON with replaced colors; values are colors if their key contains "color". Alpha values are kept."""
    if isinstance(node, Mapping):
        return {key: recolored(value, colors, is_color=is_color or "color" in key) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [recolored(value, colors, is_color=is_color) for value in node]
    if is_color and isinstance(node, str) and node[:7] in colors:
        return colors[node[:7]] + node[7:]
    return node
