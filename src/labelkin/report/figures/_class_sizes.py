"""The cost of decisions by class size."""

from collections.abc import Mapping, Sequence
from typing import Any

from labelkin.report.figures._theme import INK, LEGEND_ABOVE, new_figure, series_color, series_dash, shown

NAME = 28


def cost_by_class_size(
    groups: Sequence[str], costs: Mapping[str, Sequence[float]], *, reference: str | None = None
) -> Any:
    """Draw the mean cost of decisions on classes of different sizes, one line per objective.

    Args:
        groups: Names of the groups of classes, from rare to frequent.
        costs: The mean cost on each group, by objective.
        reference: The objective that is drawn in the color of the text, as in the other figures.

    Returns:
        The figure.

    Example:
        >>> from labelkin.report import figures
        >>> figure = figures.cost_by_class_size(["5 to 20 samples", "300 samples"], {"one-hot": [1.8, 0.4], "kin": [1.5, 0.4]})
        >>> [trace.name for trace in figure.data]
        ['one-hot', 'kin']
    """
    figure = new_figure(height=420, showlegend=True, legend=LEGEND_ABOVE)
    for place, (label, values) in enumerate(costs.items()):
        color, name = INK if label == reference else series_color(place), shown(label, NAME)
        figure.add_scatter(
            x=list(groups),
            y=list(values),
            mode="lines+markers",
            line={"color": color, "width": 1.5, "dash": series_dash(place)},
            marker={"color": color, "size": 9},
            name=name,
            hovertemplate=f"<b>{name}</b><br>%{{x}}<br>cost %{{y:.3f}}<extra></extra>",
        )
    figure.update_xaxes(title_text="training samples of the true class", type="category")
    figure.update_yaxes(title_text="mean cost (lower is better)", rangemode="tozero")
    return figure
