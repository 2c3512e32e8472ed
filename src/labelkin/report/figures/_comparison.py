"""Figures that compare objectives: accuracy against severity, and the effect of cost-based decisions."""

from collections.abc import Sequence
from math import isnan
from typing import Any

from labelkin.comparison import Comparison, Row, decides_on_cost, rows_of_decisions
from labelkin.report.figures._theme import (
    ACCENT,
    INK,
    MUTED,
    Figure,
    go,
    name_positions,
    new_figure,
    series_color,
    series_dash,
    shown,
)

NAME = 32  # characters of an objective's label
Point = tuple[float, float]
SEVERITY = "severity (lower is better)"


def accuracy_severity(comparison: Comparison) -> Figure:
    """Draw the accuracy of each objective against the severity of its mistakes; up and to the right is better.

    They are those of calibrated decisions where these decide the comparison, else of the most probable classes.

    The dotted line is the Pareto front, and the reference is a diamond. Bars are standard deviations over seeds. Names are
    written where they fit; hovering shows all of them.

    Args:
        comparison: A comparison from `labelkin.compare`.

    Returns:
        The figure.

    Example:
        >>> import tempfile
        >>> import labelkin
        >>> from labelkin.report import figures
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = labelkin.compare("digits", objectives=["one-hot"], out=folder, epochs=1)
        >>> figures.accuracy_severity(found).layout.xaxis.title.text
        'accuracy %'
    """
    given = rows_of_decisions(comparison.rows) if decides_on_cost(comparison) else comparison.rows
    known = [row for row in given if not isnan(row.severity) and not isnan(row.accuracy)]
    front = sorted((row for row in known if row.on_front), key=lambda row: row.accuracy)
    rows = sorted(known, key=lambda row: (row.label != comparison.reference, not row.on_front))
    names = [_named(row.label, comparison.reference) for row in rows]
    figure = new_figure(
        go.Scatter(
            x=[100 * row.accuracy for row in front],
            y=[row.severity for row in front],
            mode="lines",
            line={"color": ACCENT, "width": 1.5, "dash": "dot"},
            hoverinfo="skip",
        ),
        *(_dot(row, comparison.reference) for row in rows),
        _written([(100 * row.accuracy, row.severity) for row in rows], names, extent=_bar_ends(rows)),
        height=400,
        showlegend=False,
    )
    figure.update_xaxes(title_text="accuracy %", range=_with_room([100 * row.accuracy for row in rows]))
    figure.update_yaxes(title_text=SEVERITY, autorange="reversed")
    return figure


def _named(label: str, reference: str | None) -> str:
    return shown(label, NAME) + (" (reference)" if label == reference else "")


def _dot(row: Row, reference: str | None) -> Any:
    color = INK if row.label == reference else ACCENT if row.on_front else MUTED
    symbol = "diamond" if row.label == reference else "circle" if row.on_front else "circle-open"
    return go.Scatter(
        x=[100 * row.accuracy],
        y=[row.severity],
        error_x=_bar(100 * row.accuracy_spread, color),
        error_y=_bar(row.severity_spread, color),
        mode="markers",
        marker={"color": color, "size": 11, "symbol": symbol, "line": {"width": 2}},
        hovertemplate=f"<b>{_named(row.label, reference)}</b><br>accuracy %{{x:.2f}} %<br>severity %{{y:.3f}}<extra></extra>",
        name=_named(row.label, reference),
    )


def _bar(spread: float, color: str) -> dict[str, Any]:
    return {"array": [0 if isnan(spread) else spread], "color": f"{color}66", "thickness": 1, "width": 0}


def _bar_ends(rows: Sequence[Row]) -> list[Point]:
    known = [row for row in rows if not isnan(row.severity_spread)]
    return [(100 * row.accuracy, row.severity + sign * row.severity_spread) for row in known for sign in (-1, 1)]


def _written(
    points: Sequence[Point], names: Sequence[str], *, others: Sequence[Point] = (), extent: Sequence[Point] = ()
) -> Any:
    """Return a trace with the names that fit, for a reversed y axis; `others` and `extent` as in `name_positions`."""
    upright, unnamed, reach = ([(x, -y) for x, y in given] for given in (points, others, extent))
    positions = name_positions(upright, names, others=unnamed, extent=reach)
    kept = [i for i, position in enumerate(positions) if position is not None]
    return go.Scatter(
        x=[points[i][0] for i in kept],
        y=[points[i][1] for i in kept],
        text=[names[i] for i in kept],
        textposition=[positions[i] for i in kept],
        textfont={"color": INK, "size": 12},
        mode="markers+text",  # the invisible marker keeps the name away from the visible one
        marker={"size": 11, "opacity": 0},
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )


def _with_room(values: Sequence[float]) -> list[float]:
    """Return a range with space for names beside the outermost points."""
    if not values:
        return [0.0, 100.0]
    room = 0.45 * (max(values) - min(values)) or 1.0
    return [min(values) - room, max(values) + room]


def decisions(comparison: Comparison) -> Figure:
    """Draw the effect of cost-based decisions (CRM) on accuracy and severity.

    A line leads from the most probable class (open marker) to the class of least expected cost (filled marker), with calibrated
    probabilities if the runs have them.

    Args:
        comparison: A comparison from `labelkin.compare`.

    Returns:
        The figure.

    Example:
        >>> import tempfile
        >>> import labelkin
        >>> from labelkin.report import figures
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = labelkin.compare("digits", objectives=["one-hot"], out=folder, epochs=1)
        >>> figures.decisions(found).layout.yaxis.title.text
        'severity (lower is better)'
    """
    figure = new_figure(height=400, showlegend=False)
    starts: list[Point] = []
    ends: list[Point] = []
    names: list[str] = []
    for place, row in enumerate(comparison.rows):
        after = (row.crm_accuracy, row.crm_severity)
        if not isnan(row.decided_accuracy):
            after = (row.decided_accuracy, row.decided_severity)
        if any(isnan(value) for value in (row.accuracy, row.severity, *after)):
            continue
        color = INK if row.label == comparison.reference else series_color(place)
        names.append(shown(row.label, NAME))
        starts.append((100 * row.accuracy, row.severity))
        ends.append((100 * after[0], after[1]))
        figure.add_scatter(
            x=[starts[-1][0], ends[-1][0]],
            y=[starts[-1][1], ends[-1][1]],
            mode="lines+markers",
            line={"color": color, "width": 1.5, "dash": series_dash(place)},
            marker={"color": color, "size": 10, "symbol": ["circle-open", "circle"]},
            customdata=["most probable class", "least expected cost"],
            hovertemplate=(
                f"<b>{names[-1]}</b>, %{{customdata}}<br>accuracy %{{x:.2f}} %<br>severity %{{y:.3f}}<extra></extra>"
            ),
            name=names[-1],
        )
    figure.add_trace(_written(ends, names, others=starts))
    figure.update_xaxes(title_text="accuracy %", range=_with_room([x for x, _ in (*starts, *ends)]))
    figure.update_yaxes(title_text=SEVERITY, autorange="reversed")
    return figure
