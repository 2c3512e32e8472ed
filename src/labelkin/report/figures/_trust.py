"""Figures of a model's probabilities: calibration, and the operating curve of the fallback."""

from typing import Any

import torch

from labelkin.audit import Reliability
from labelkin.decide import OperatingCurve
from labelkin.metrics import Calibration
from labelkin.report.figures._theme import ACCENT, INK, LEGEND_ABOVE, MUTED, WARM, Figure, go, new_figure

CROWDED = 0.08  # least distance in specificity between two labeled thresholds
MARKED = (0.0, 0.5, 0.7, 0.9, 0.95, 0.99)  # thresholds with a label


def calibration(found: Calibration | Reliability, scaled: Calibration | Reliability | None = None) -> Figure:
    """Draw accuracy against confidence, with one point per bin; larger points have more samples.

    On the dashed diagonal, confidence equals accuracy.

    Args:
        found: Calibration from `metrics.expected_calibration_error`, or a reliability diagram of an audit.
        scaled: The same after temperature scaling, drawn beside it.

    Returns:
        The figure.

    Example:
        >>> import torch
        >>> from labelkin.metrics import expected_calibration_error
        >>> from labelkin.report import figures
        >>> found = expected_calibration_error(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 1]))
        >>> figures.calibration(found).layout.xaxis.title.text
        'confidence'
    """
    diagonal = go.Scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": MUTED, "dash": "dash", "width": 1},
        hoverinfo="skip",
        showlegend=False,
    )
    if scaled is None:
        lines = [_bins(found, "", ACCENT, "circle")]
    else:
        lines = [_bins(found, "before scaling", WARM, "circle-open"), _bins(scaled, "after scaling", ACCENT, "circle")]
    figure = new_figure(diagonal, *lines, height=400, showlegend=scaled is not None, legend=LEGEND_ABOVE)
    figure.update_xaxes(title_text="confidence", range=[0, 1.03])
    figure.update_yaxes(title_text="accuracy", range=[0, 1.05])
    return figure


def _bins(found: Calibration | Reliability, name: str, color: str, symbol: str) -> Any:
    """Return one diagram as a trace; bins without samples are left out."""
    samples, confidence, accuracy = (
        torch.as_tensor(part) for part in (found.samples, found.confidence, found.accuracy)
    )
    kept = samples > 0
    share = samples[kept].double() / samples.sum()
    return go.Scatter(
        x=[round(value, 4) for value in confidence[kept].tolist()],
        y=[round(value, 4) for value in accuracy[kept].tolist()],
        customdata=samples[kept].tolist(),
        mode="lines+markers",
        name=name,
        line={"color": color, "width": 2},
        marker={
            "color": color,
            "size": [round(7 + 20 * value**0.5, 1) for value in share.tolist()],
            "opacity": 0.75,
            "symbol": symbol,
        },
        hovertemplate="confidence %{x:.3f}<br>accuracy %{y:.3f}<br>%{customdata} samples<extra></extra>",
    )


def operating_curve(curve: OperatingCurve) -> Figure:
    """Draw the correctness of the fallback against its specificity, over all thresholds.

    Args:
        curve: The curve from `decide.operating_curve`.

    Returns:
        The figure.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> from labelkin.report import figures
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]})
        >>> nodes = decide.node_probs(torch.eye(4), tree)
        >>> curve = decide.operating_curve(nodes, torch.arange(4), tree)
        >>> figures.operating_curve(curve).layout.yaxis.title.text
        'correctness'
    """
    thresholds = [round(value, 4) for value in curve.threshold.tolist()]
    x, y = ([round(value, 4) for value in values.tolist()] for values in (curve.specificity, curve.correctness))
    marked: list[int] = []
    for i in (i for i, threshold in enumerate(thresholds) if threshold in MARKED):
        if not marked or abs(x[i] - x[marked[-1]]) > CROWDED:
            marked.append(i)
    figure = new_figure(
        go.Scatter(
            x=x,
            y=y,
            customdata=list(zip(thresholds, (round(v, 4) for v in curve.leaf_share.tolist()), strict=True)),
            mode="lines",
            line={"color": ACCENT, "width": 2.5},
            hovertemplate=(
                "threshold %{customdata[0]}<br>specificity %{x:.3f}<br>correctness %{y:.3f}<br>"
                "answers that are classes %{customdata[1]:.1%}<extra></extra>"
            ),
        ),
        go.Scatter(
            x=[x[i] for i in marked],
            y=[y[i] for i in marked],
            text=[f"{thresholds[i]:g}" for i in marked],
            mode="markers+text",
            textposition="bottom left",
            textfont={"color": INK, "size": 12},
            marker={"color": ACCENT, "size": 9},
            hoverinfo="skip",
            cliponaxis=False,
        ),
        height=400,
        showlegend=False,
    )
    figure.update_xaxes(title_text="specificity")
    figure.update_yaxes(title_text="correctness")
    return figure
