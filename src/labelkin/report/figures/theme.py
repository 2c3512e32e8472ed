"""The look that all figures share: a restrained palette that colour-blind readers can tell apart, in light and in dark."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from labelkin._extras import require

go: Any = require("plotly.graph_objects", extra="report", use="figures")
Figure = Any  # plotly.graph_objects.Figure, which comes without type stubs

INK, MUTED, LINE, SURFACE = "#1b2430", "#566272", "#dde3ea", "#ffffff"
ACCENT, WARM = "#1f5fa8", "#b04a00"
SERIES = (ACCENT, "#c2571a", "#00806f", "#9c3f88", "#7d6600", "#3b8ec4", "#8a2f2f", "#5a6f3c")
SCALE = ("#f3f6fa", "#c6daee", "#7caedb", "#2b6fb0", "#0d386b")  # little to much

BRIGHT_SERIES = ("#79b2ff", "#ff9b5c", "#45cdb6", "#e693d3", "#d8c155", "#9fd0f5", "#ff938a", "#b3cc8c")
BRIGHT_SCALE = ("#1b232d", "#1d3f63", "#2a6cab", "#74aee4", "#e2effb")

# Each colour with the one that takes its place on a dark ground.
DARK = {
    INK: "#e8edf3",
    MUTED: "#a5b1bf",
    LINE: "#313c49",
    SURFACE: "#161c24",
    WARM: "#ffab6b",
    **dict(zip(SERIES, BRIGHT_SERIES, strict=True)),
    **dict(zip(SCALE, BRIGHT_SCALE, strict=True)),
}
DASHES = ("solid", "dash", "dot", "dashdot")


def series_color(place: int) -> str:
    return SERIES[place % len(SERIES)]


def series_dash(place: int) -> str:
    """Colours come again after eight; the dash then tells lines apart."""
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
    """A plotly template: `figure.update_layout(template=template())` gives any figure the same look."""
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
    return go.Figure(data=list(traces), layout={"template": template(), **layout})


def dark(figure: Figure) -> Figure:
    """The same figure for a dark ground."""
    return go.Figure(recoloured(figure.to_plotly_json(), DARK))


def recoloured(node: Any, colors: Mapping[str, str], *, is_color: bool = False) -> Any:
    """Plain plotly JSON with colours exchanged, wherever the key says that a value is one; an alpha stays."""
    if isinstance(node, Mapping):
        return {key: recoloured(value, colors, is_color=is_color or "color" in key) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [recoloured(value, colors, is_color=is_color) for value in node]
    if is_color and isinstance(node, str) and node[:7] in colors:
        return colors[node[:7]] + node[7:]
    return node
