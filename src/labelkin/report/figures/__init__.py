"""Plotly figures of results from `analysis`, `metrics`, `decide`, `audit` and `comparison`; the report shows the same figures.

The functions return `plotly.graph_objects.Figure`: change the style with `update_layout`, export with `write_html`, and use
`dark(figure)` for a dark background.
"""

from labelkin.report.figures._activations import activity_by_layer, kinds_of_pairs, projection
from labelkin.report.figures._comparison import accuracy_severity, decisions
from labelkin.report.figures._decisions import cost_by_class_size, cost_change, risk_coverage
from labelkin.report.figures._grids import confusion_counts, label_similarity
from labelkin.report.figures._learning import learning_curves
from labelkin.report.figures._theme import dark, template
from labelkin.report.figures._trees import learned_tree, tree_comparison
from labelkin.report.figures._trust import calibration, operating_curve

__all__ = [
    "accuracy_severity",
    "activity_by_layer",
    "calibration",
    "confusion_counts",
    "cost_by_class_size",
    "cost_change",
    "dark",
    "decisions",
    "kinds_of_pairs",
    "label_similarity",
    "learned_tree",
    "learning_curves",
    "operating_curve",
    "projection",
    "risk_coverage",
    "template",
    "tree_comparison",
]
