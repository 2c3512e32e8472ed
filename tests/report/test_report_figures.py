"""Figures hold the numbers that they were given: every expected value is worked out again, one by one."""

from itertools import combinations
from math import nan
from pathlib import Path

import numpy as np
import pytest
import torch

from labelkin import Taxonomy
from labelkin.analysis import class_activity, confusion_matrix, label_distances, linkage_table, mds
from labelkin.comparison import Comparison, Row
from labelkin.decide import node_probs, operating_curve
from labelkin.metrics import expected_calibration_error
from labelkin.report import figures
from labelkin.report._groups import superclasses
from labelkin.report.figures._learning import Curve
from labelkin.report.figures._theme import DARK, INK, MUTED, SERIES, SURFACE, WARM, name_positions, shown, shown_all
from support.real import digits

TREE = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus", "van"]})
NAMES = TREE.classes


def predictions() -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of nearest class means of digits 0 to 4, standing for the five classes, and the truth."""
    inputs, targets = digits()
    few = targets < 5
    inputs, targets = inputs[few], targets[few]
    means = torch.stack([inputs[targets == k][:5].mean(0) for k in range(5)])
    return -torch.cdist(inputs, means).square() * 4, targets


def test_similarity_is_shown_in_the_order_of_the_dendrogram():
    scores, targets = predictions()
    vectors = torch.stack([scores[targets == k].mean(0) for k in range(5)])
    distances = label_distances(vectors)
    figure = figures.label_similarity(distances, NAMES)
    order = [NAMES.index(name) for name in figure.layout.xaxis.ticktext]
    assert sorted(order) == [0, 1, 2, 3, 4]
    z = np.asarray(figure.data[0].z)
    for i, j in combinations(range(5), 2):
        expected = 1 - float(distances[order[i], order[j]] / distances.max())
        assert z[i, j] == pytest.approx(expected, abs=1e-6)
    assert np.isnan(np.diag(z)).all()
    heights = [x for x in figure.data[1].x if x is not None]
    assert max(heights) == pytest.approx(linkage_table(distances)[-1, 2], rel=1e-3)
    assert sum(x is None for x in figure.data[1].x) == 4  # a piece for each merge


def test_confusions_are_counted_and_right_answers_kept_apart():
    scores, targets = predictions()
    predicted = scores.argmax(-1)
    figure = figures.confusion_counts(confusion_matrix(predicted, targets, taxonomy=TREE), superclasses(TREE))
    mistakes, right = figure.data
    rows = list(figure.layout.yaxis.ticktext)
    for i, true in enumerate(rows):
        for j, taken in enumerate(rows):
            pairs = zip(targets.tolist(), predicted.tolist(), strict=True)
            count = sum((NAMES[t], NAMES[p]) == (true, taken) for t, p in pairs)
            if i == j:
                assert right.z[i] == count
                assert right.text[i] == f"{count} of {int((targets == NAMES.index(true)).sum())}"
            else:
                assert mistakes.z[i][j] == count
    cuts = {shape.x0 for shape in figure.layout.shapes if shape.x0 == shape.x1}
    assert cuts == {1.5}  # between two animals and three machines


@pytest.mark.parametrize("learned_order", [(0, 1, 2, 3, 4), (4, 2, 3, 0, 1)])
def test_trees_that_agree_are_drawn_without_a_crossing(learned_order: tuple[int, ...]):
    place = {k: i for i, k in enumerate(learned_order)}
    points = torch.tensor([[100.0 * (k > 1) * (1 if place[2] > place[0] else -1) + place[k]] for k in range(5)])
    figure = figures.tree_comparison(TREE, linkage_table(label_distances(points)), NAMES, superclasses(TREE))
    links = [trace for trace in figure.data if trace.mode == "lines"][2:]
    ends = [(trace.y[i], trace.y[i + 1]) for trace in links for i in range(0, len(trace.y), 3)]
    assert len(ends) == 5
    assert not any((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(ends, 2))
    left = next(trace for trace in figure.data if trace.mode == "text")
    assert sorted(left.text) == sorted(NAMES)


def test_samples_lie_where_the_projection_puts_them():
    inputs, targets = digits()
    inputs, targets = inputs[:60].double(), targets[:60] % 5
    points = mds(torch.cdist(inputs, inputs, compute_mode="donot_use_mm_for_euclid_dist"))
    by_class = figures.projection(points, targets, NAMES)
    clouds = {trace.name: trace for trace in by_class.data if trace.mode == "markers"}
    assert set(clouds) == set(NAMES)
    for k, name in enumerate(NAMES):
        assert clouds[name].x == pytest.approx(points.points[targets == k, 0].numpy(), abs=1e-6)
    grouped = figures.projection(points, targets, NAMES, groups=superclasses(TREE))
    sizes = {trace.name: len(trace.x) for trace in grouped.data if trace.mode == "markers"}
    assert sizes == {"animal": int((targets < 2).sum()), "machine": int((targets >= 2).sum())}
    machine = next(trace for trace in grouped.data if trace.name == "machine")
    assert set(machine.text) == {"car", "bus", "van"}


def test_layers_show_the_mean_distance_within_and_across_superclasses():
    inputs, targets = digits()
    model = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.ReLU())
    activity = class_activity(model, [(inputs[:200], targets[:200] % 5)], layers=["0", "1"], classes=5)
    figure = figures.activity_by_layer(activity, superclasses(TREE))
    pairs = list(combinations(range(5), 2))
    same = [pair for pair in pairs if (pair[0] < 2) == (pair[1] < 2)]
    for trace, chosen in zip(figure.data, (same, [pair for pair in pairs if pair not in same]), strict=True):
        for layer in range(2):
            expected = sum(float(activity.distances[layer, i, j]) for i, j in chosen) / len(chosen)
            assert trace.y[layer] == pytest.approx(expected, abs=1e-4)


def test_calibration_and_fallback_are_drawn_as_measured():
    scores, targets = predictions()
    probs = scores.softmax(-1)
    found = expected_calibration_error(probs, targets)
    drawn = figures.calibration(found).data[1]
    filled = found.samples > 0
    assert drawn.x == pytest.approx(found.confidence[filled].tolist(), abs=1e-4)
    assert drawn.y == pytest.approx(found.accuracy[filled].tolist(), abs=1e-4)
    assert sum(drawn.customdata) == len(targets)
    curve = operating_curve(node_probs(probs, TREE), targets, TREE)
    line, marks = figures.operating_curve(curve).data
    assert line.x == pytest.approx(curve.specificity.tolist(), abs=1e-4)
    assert line.y == pytest.approx(curve.correctness.tolist(), abs=1e-4)
    for x, y, text in zip(marks.x, marks.y, marks.text, strict=True):
        place = round(100 * float(text))
        assert (x, y) == (line.x[place], line.y[place])


def row(label: str, accuracy: float, severity: float, *, on_front: bool = False) -> Row:
    crm = {"crm_accuracy": accuracy - 0.01, "crm_severity": severity - 0.5}
    return Row(
        label, label, 2, (0, 1), accuracy, 0.01, severity=severity, severity_spread=0.1, on_front=on_front, **crm
    )


ROWS = [row("a<b>", 0.9, 2.0, on_front=True), row("one-hot", 0.95, 3.0), row("c", 0.96, 2.5, on_front=True)]
COMPARED = Comparison([*ROWS, row("undefined", 0.99, nan)], "one-hot", "digits", "given", Path(), {}, [])


def test_the_reference_is_a_diamond_and_the_front_a_line():
    figure = figures.accuracy_severity(COMPARED)
    assert (list(figure.data[0].x), list(figure.data[0].y)) == ([90.0, 96.0], [2.0, 2.5])
    dots = {trace.name: trace for trace in figure.data if trace.name}
    assert set(dots) == {"a&lt;b&gt;", "one-hot (reference)", "c"}
    assert {name: trace.marker.symbol for name, trace in dots.items()} == {
        "a&lt;b&gt;": "circle",
        "one-hot (reference)": "diamond",
        "c": "circle",
    }
    assert dots["c"].error_x.array[0] == pytest.approx(1.0)
    assert figure.layout.yaxis.autorange == "reversed"


def test_deciding_by_cost_is_drawn_from_before_to_after():
    lines = [trace for trace in figures.decisions(COMPARED).data if trace.mode == "lines+markers"]
    assert [list(trace.x) for trace in lines] == [pytest.approx([100 * r.accuracy, 100 * r.crm_accuracy]) for r in ROWS]
    assert [list(trace.y) for trace in lines] == [[r.severity, r.crm_severity] for r in ROWS]


def test_calibrated_decisions_are_drawn_where_they_decide():
    decided = [
        row._replace(
            basis="calibrated",
            cost=0.5 - 0.01 * i,
            cost_difference=-0.01 * i,
            decided_accuracy=0.5 + 0.1 * i,
            decided_severity=2.0 - 0.1 * i,
        )
        for i, row in enumerate(ROWS)
    ]
    compared = Comparison(decided, ROWS[0].label, "digits", "given", Path("runs"), {}, [])
    figure = figures.accuracy_severity(compared)
    last = len(ROWS) - 1  # the best in both, so it alone is the front
    assert list(figure.data[0].x) == pytest.approx([50 + 10 * last])
    assert list(figure.data[0].y) == pytest.approx([2.0 - 0.1 * last])
    ends = [trace.x[1] for trace in figures.decisions(compared).data if trace.mode == "lines+markers"]
    assert ends == pytest.approx([50 + 10 * i for i in range(len(ROWS))])


def test_curves_have_a_band_a_level_and_a_star():
    curves = [
        Curve("one-hot", (1, 2, 3), (0.5, 0.8, 0.7), (0.1, 0.1, 0.1), 2),
        Curve("a", (1, 2, 3), (0.6, 0.7, 0.9), (nan, nan, nan), 3),
    ]
    figure = figures.learning_curves(curves, reference="one-hot")
    band, mean = figure.data[:2]
    assert band.y == pytest.approx([60, 90, 80, 60, 70, 40])  # the upper edge, then the lower one backwards
    assert list(mean.y) == pytest.approx([50, 80, 70])
    stars = [trace for trace in figure.data if trace.marker.symbol == "star"]
    assert [(star.legendgroup, star.x[0], star.y[0]) for star in stars] == [("a", 3, pytest.approx(90))]
    assert figure.layout.shapes[0].y0 == pytest.approx(80)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat", "cat"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("a\n b", "a b"),
        ("0123456789", "0123…789"),
        ("é", "\u2068é\u2069"),
    ],
)
def test_names_are_shown_as_text(text: str, expected: str):
    assert shown(text, 8) == expected


def test_names_that_become_alike_stay_apart():
    assert shown_all(["aaaaaaaaaa-1-bbbbbb", "cat", "aaaaaaaaaa-2-bbbbbb"], 8) == [
        "aaaa…bbb (1)",
        "cat",
        "aaaa…bbb (3)",
    ]


def test_a_dark_figure_has_other_colours_and_the_same_words():
    figure = figures.learning_curves([Curve(SERIES[0], (1,), (0.5,), (nan,), None)])
    dark = figures.dark(figure)
    assert dark.data[1].line.color == DARK[SERIES[0]]
    assert dark.data[0].fillcolor == DARK[SERIES[0]] + "24"
    assert dark.data[1].name == figure.data[1].name == SERIES[0]  # a label, though it reads like a colour


def luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("colors", "least"), [((*SERIES, WARM), 3.0), ((INK, MUTED), 4.5)], ids=["lines", "text"])
def test_colours_stand_out_from_their_ground(colors: tuple[str, ...], least: float):
    for color in colors:
        for front, ground in ((color, SURFACE), (DARK[color], DARK[SURFACE])):
            light, dark = sorted((luminance(front), luminance(ground)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= least


def test_names_without_room_are_left_out():
    apart = name_positions([(0, 0), (1, 1), (1, 0)], ["left", "high", "low"])
    assert None not in apart
    crowd = name_positions([(0.5, 0.5)] * 6 + [(0, 0), (1, 1)], ["name"] * 8)
    assert len(set(crowd[:4])) == 4  # a side for each of the first four
    assert crowd[4:6] == [None, None]
    assert crowd[6] is not None


def test_a_long_name_at_the_edge_gets_room_from_the_others():
    """The names of the first points move if another name has no room otherwise; as measured on the demo's set."""
    points = [(74.80, -1.7560), (75.13, -1.7555), (74.87, -1.761), (74.44, -1.771)]
    names = ["one-hot (reference)", "hierarchical-cross-entropy", "kin", "label-smoothing"]
    bars = [(74.80, -1.749), (74.80, -1.763), (74.44, -1.776)]
    assert None not in name_positions(points, names, extent=bars)
    assert None in name_positions(points, names, extent=bars, sides=("top center", "bottom center"))
