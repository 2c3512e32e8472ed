"""Figures of the cost of decisions, also by class size, and of the share of wrong answers."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from labelkin._checks import counted
from labelkin.audit import Crm, Difference, LevelRisk
from labelkin.report.figures._theme import (
    ACCENT,
    INK,
    LEGEND_ABOVE,
    MUTED,
    Figure,
    new_figure,
    series_color,
    series_dash,
    shown,
)

NAME = 28


def cost_change(found: Sequence[Crm]) -> Figure:
    """Draw the mean cost of the most probable class (open) and of the class of least expected cost (filled).

    The bar at the filled point is the 95 % interval of the change, paired over samples.

    Args:
        found: Effects of least-cost decisions by the same costs, from `Audit.crm`.

    Returns:
        The figure.

    Example:
        >>> from labelkin.audit import audit
        >>> from labelkin.report import figures
        >>> found = audit({"target": [0, 1], "probs": [[0.9, 0.1], [0.6, 0.4]]}, costs=[[0, 1], [9, 0]])
        >>> figures.cost_change(found.crm).layout.xaxis.title.text
        'mean cost of a decision'
    """
    changes = [_change(part) for part in found]
    names = [_name(part) for part in found]
    figure = new_figure(height=150 + 70 * len(found), showlegend=True)
    for name, change in zip(names, changes, strict=True):
        figure.add_scatter(
            x=[change.before, change.after],
            y=[name, name],
            mode="lines",
            line={"color": MUTED, "width": 1.5},
            hoverinfo="skip",
            showlegend=False,
        )
    figure.add_scatter(
        x=[change.before for change in changes],
        y=names,
        mode="markers",
        name="most probable class",
        marker={"color": MUTED, "size": 12, "symbol": "circle-open", "line": {"width": 2}},
        hovertemplate="most probable class: %{x:.4f}<extra></extra>",
    )
    figure.add_scatter(
        x=[change.after for change in changes],
        y=names,
        error_x={
            "symmetric": False,
            "array": [0 if isnan(change.high) else change.high - change.change for change in changes],
            "arrayminus": [0 if isnan(change.low) else change.change - change.low for change in changes],
            "color": ACCENT,
            "thickness": 1.5,
            "width": 5,
        },
        mode="markers",
        name="least expected cost",
        marker={"color": ACCENT, "size": 12},
        customdata=[[change.change, change.low, change.high] for change in changes],
        hovertemplate=(
            "least expected cost: %{x:.4f}<br>change %{customdata[0]:+.4f}, 95 % interval %{customdata[1]:+.4f} to "
            "%{customdata[2]:+.4f}<extra></extra>"
        ),
    )
    title = "mean cost of a decision" if found[0].costs == "costs" else "mean tree distance of a decision"
    figure.update_xaxes(title_text=title, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_layout(legend=LEGEND_ABOVE)
    return figure


def _change(part: Crm) -> Difference:
    change = part.cost if part.costs == "costs" else part.distance_at_1
    assert change is not None
    return change


def _name(part: Crm) -> str:
    scaled = "unscaled" if part.temperature == 1 else f"temperature {part.temperature:.2f}"
    return f"{scaled}<br>{counted(part.samples, 'sample')}"


def risk_coverage(levels: Sequence[LevelRisk]) -> Figure:
    """Draw the share of wrong answers against the share of samples that are answered, for levels of a tree.

    Args:
        levels: Risk and coverage of the levels, from `Fallback.levels`.

    Returns:
        The figure.

    Example:
        >>> from labelkin.audit import audit
        >>> from labelkin.report import figures
        >>> scores = {"target": [0, 1] * 15 + [1, 0] * 5, "logits": [[9.0, 0.0], [0.0, 9.0]] * 20}
        >>> [line.name for line in figures.risk_coverage(audit(scores).fallback.levels).data]
        ['2 classes']
    """
    figure = new_figure(height=400, showlegend=True, legend=LEGEND_ABOVE)
    for place, level in enumerate(levels):
        figure.add_scatter(
            x=[round(share, 4) for share in level.coverage],
            y=[round(share, 5) for share in level.risk],
            mode="lines",
            name=level_name(level),
            line={"color": series_color(place), "dash": series_dash(place), "width": 2.5},
            hovertemplate=f"{level_name(level)}<br>answered %{{x:.0%}}<br>wrong %{{y:.2%}}<extra></extra>",
        )
    figure.update_xaxes(title_text="samples that are answered", tickformat=".0%", range=[0, 1.02])
    figure.update_yaxes(title_text="wrong answers among them", tickformat=".0%", rangemode="tozero")
    return figure


def level_name(level: LevelRisk) -> str:
    """Return the name of a level: its number of classes or groups."""
    return f"{level.groups} {'classes' if level.is_classes else 'groups'}"


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
