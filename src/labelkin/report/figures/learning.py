"""Learning curves of objectives."""

from collections.abc import Sequence
from math import isnan
from typing import Any

from labelkin.report.curves import Curve
from labelkin.report.figures.text import shown
from labelkin.report.figures.theme import INK, Figure, go, new_figure, series_color, series_dash

NAME = 32  # characters of an objective's label


def learning_curves(curves: Sequence[Curve], *, reference: str | None = None) -> Figure:
    """Test accuracy by epoch, averaged over seeds, with a band of one standard deviation.

    The level is the best that the reference's mean curve has, and a star the epoch at which another one passes it. A
    click on a name in the legend takes its curve away.
    """
    figure = new_figure(height=400, hovermode="closest")
    for place, curve in enumerate(curves):
        figure.add_traces(_curve(curve, place, is_reference=curve.label == reference))
    best = [100 * max(curve.mean) for curve in curves if curve.label == reference]
    if best:
        figure.add_hline(y=best[0], line={"color": INK, "width": 1, "dash": "dash"})
    last = max((len(curve.epochs) for curve in curves), default=1)
    figure.update_xaxes(title_text="epoch", range=[1 - 0.01 * last, 1.02 * last], tick0=1, tickformat="d")
    if last <= 15:
        figure.update_xaxes(dtick=1)
    figure.update_yaxes(title_text="test accuracy %")
    return figure


def _curve(curve: Curve, place: int, *, is_reference: bool) -> list[Any]:
    color = INK if is_reference else series_color(place)
    name = shown(curve.label, NAME)
    epochs, mean = list(curve.epochs), [100 * value for value in curve.mean]
    line = {"color": color, "width": 3 if is_reference else 2, "dash": series_dash(place)}
    shared = {"legendgroup": curve.label, "name": name}
    spreads = [0.0 if isnan(spread) else 100 * spread for spread in curve.spread]
    upper = [m + s for m, s in zip(mean, spreads, strict=True)]
    lower = [m - s for m, s in zip(mean, spreads, strict=True)]
    traces = [
        go.Scatter(
            x=epochs + epochs[::-1],
            y=upper + lower[::-1],
            mode="lines",
            fill="toself",
            fillcolor=f"{color}24",
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
            **shared,
        ),
        go.Scatter(
            x=epochs,
            y=mean,
            mode="lines",
            line=line,
            customdata=spreads,
            hovertemplate=f"<b>{name}</b><br>epoch %{{x}}: %{{y:.2f}} % ± %{{customdata:.2f}}<extra></extra>",
            **shared,
        ),
    ]
    if curve.reached is not None and not is_reference:
        traces.append(
            go.Scatter(
                x=[curve.reached],
                y=[mean[curve.reached - 1]],
                mode="markers",
                marker={"symbol": "star", "size": 13, "color": color},
                hovertemplate=f"<b>{name}</b> passes the reference's best in epoch %{{x}}<extra></extra>",
                showlegend=False,
                **shared,
            )
        )
    return traces
