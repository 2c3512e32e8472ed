"""How far a model's probabilities can be trusted: calibration, and the operating curve of the fallback."""

from labelkin.decide import OperatingCurve
from labelkin.metrics import Calibration
from labelkin.report.figures._theme import ACCENT, INK, MUTED, Figure, go, new_figure

CROWDED = 0.08  # of specificity between two numbers
MARKED = (0.0, 0.5, 0.7, 0.9, 0.95, 0.99)  # thresholds that carry their number


def calibration(found: Calibration) -> Figure:
    """Accuracy against confidence, a point a bin, larger with more samples; on the diagonal probabilities are honest."""
    kept = found.samples > 0
    samples = found.samples[kept].double()
    share = samples / samples.sum()
    figure = new_figure(
        go.Scatter(
            x=[0, 1], y=[0, 1], mode="lines", line={"color": MUTED, "dash": "dash", "width": 1}, hoverinfo="skip"
        ),
        go.Scatter(
            x=[round(value, 4) for value in found.confidence[kept].tolist()],
            y=[round(value, 4) for value in found.accuracy[kept].tolist()],
            customdata=found.samples[kept].tolist(),
            mode="lines+markers",
            line={"color": ACCENT, "width": 2},
            marker={
                "color": ACCENT,
                "size": [round(7 + 20 * value**0.5, 1) for value in share.tolist()],
                "opacity": 0.75,
            },
            hovertemplate="confidence %{x:.3f}<br>accuracy %{y:.3f}<br>%{customdata} samples<extra></extra>",
        ),
        height=400,
        showlegend=False,
    )
    figure.update_xaxes(title_text="confidence", range=[0, 1.03])
    figure.update_yaxes(title_text="accuracy", range=[0, 1.05])
    return figure


def operating_curve(curve: OperatingCurve) -> Figure:
    """Correctness against specificity as the threshold of the fallback rises: what saying less buys."""
    thresholds = [round(value, 4) for value in curve.threshold.tolist()]
    x, y = ([round(value, 4) for value in of.tolist()] for of in (curve.specificity, curve.correctness))
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
                "answers that are a class %{customdata[1]:.1%}<extra></extra>"
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
