"""Learning curves: means and standard deviations over seeds, and their figure."""

from collections.abc import Sequence
from math import isnan, nan
from statistics import mean, stdev
from typing import Any, NamedTuple

from labelkin.comparison import Comparison
from labelkin.report.figures._theme import INK, Figure, go, new_figure, series_color, series_dash, shown
from labelkin.runs import Record


class Curve(NamedTuple):
    """Test accuracy (0 to 1) of an objective after each epoch.

    Attributes:
        label: The objective.
        epochs: Epochs, counted from 1.
        mean: Mean over seeds.
        spread: Standard deviation over seeds; NaN with one seed.
        reached: The epoch at which the mean reaches the best accuracy of the reference; None if it never does.
    """

    label: str
    epochs: tuple[int, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    reached: int | None


def mean_curves(comparison: Comparison) -> list[Curve]:
    """Return a curve for each objective whose runs have metrics per epoch, up to the last epoch of all seeds."""
    reached = {row.label: row.epochs_to_reference for row in comparison.rows}
    found = [_mean_curve(label, records, reached.get(label)) for label, records in comparison.records.items()]
    return [curve for curve in found if curve.epochs]


def _mean_curve(label: str, records: list[Record], reached: int | None) -> Curve:
    seeds = [[row["test_accuracy"] for row in record.history() if "test_accuracy" in row] for record in records]
    epochs = list(zip(*seeds, strict=False))
    spread = tuple(stdev(values) if len(values) > 1 else nan for values in epochs)
    return Curve(label, tuple(range(1, len(epochs) + 1)), tuple(mean(values) for values in epochs), spread, reached)


NAME = 32  # characters of an objective's label


def learning_curves(curves: Sequence[Curve], *, reference: str | None = None) -> Figure:
    """Draw mean test accuracy by epoch, with a band of one standard deviation over seeds.

    The dashed line is the best accuracy of the reference's mean curve, and a star marks the epoch at which another curve
    reaches it.

    Args:
        curves: The curves.
        reference: The label of the reference.

    Returns:
        The figure.

    Example:
        >>> from labelkin.report import figures
        >>> from labelkin.report.figures._learning import Curve
        >>> figure = figures.learning_curves([Curve("one-hot", (1, 2), (0.8, 0.9), (0.01, 0.02), None)])
        >>> figure.layout.yaxis.title.text
        'test accuracy %'
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
                hovertemplate=f"<b>{name}</b> reaches the reference's best in epoch %{{x}}<extra></extra>",
                showlegend=False,
                **shared,
            )
        )
    return traces
