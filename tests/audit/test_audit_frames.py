"""Scores in a table with names, as pandas has them, and what people pass from Python by mistake."""

from typing import Any

import numpy as np
import pytest

from labelkin import InputError, Taxonomy, audit_predictions
from labelkin.audit import decide_file

CLASSES = ["cat", "dog", "car"]
TREE = {"animal": ["cat", "dog"], "machine": ["car"]}


class Frame:
    """The part of a table of pandas that counts here; pandas is not needed to test it."""

    def __init__(self, values: np.ndarray, columns: Any) -> None:
        self.values, self.columns = values, columns

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)


def predictions() -> tuple[list[str], np.ndarray]:
    draw = np.random.default_rng(0)
    target, probs = draw.integers(0, 3, 200), draw.dirichlet([0.3, 0.3, 0.3], 200)
    probs[np.arange(200), target] += 0.7
    return [CLASSES[k] for k in target], probs / probs.sum(1, keepdims=True)


def test_the_names_of_columns_are_the_classes():
    """They were dropped: scores in another order than `classes` were taken for those of other classes."""
    labels, probs = predictions()
    expected = audit_predictions({"target": labels, "probs": probs}, classes=CLASSES, taxonomy=TREE)
    turned = Frame(probs[:, ::-1], np.array(CLASSES[::-1], dtype=object))
    found = audit_predictions({"target": labels, "probs": turned}, taxonomy=TREE)
    assert found.classes == tuple(CLASSES[::-1])
    assert 1 > found.basics.accuracy == expected.basics.accuracy > 0.5
    assert found.hierarchy is not None
    assert expected.hierarchy is not None
    assert found.hierarchy.severity == pytest.approx(expected.hierarchy.severity)
    for given in ({"classes": CLASSES}, {}):
        extra = {} if given else {"classes": np.array(CLASSES)}
        with pytest.raises(InputError, match=r"in another order \(0 = 'car', 1 = 'dog', 2 = 'cat', not 0 = 'cat'"):
            audit_predictions({"target": labels, "probs": turned, **extra}, **given)


def test_columns_that_are_numbered_have_no_names():
    labels, probs = predictions()
    numbered = Frame(probs, np.arange(3))
    assert audit_predictions({"target": labels, "probs": numbered}, classes=CLASSES).classes == tuple(CLASSES)
    targets = [CLASSES.index(label) for label in labels]
    assert audit_predictions({"target": targets, "probs": numbered}).classes == ("0", "1", "2")


def test_names_may_be_given_for_those_of_columns():
    labels, probs = predictions()
    found = audit_predictions({"target": labels, "probs": Frame(probs, ["p1", "p2", "p3"])}, classes=CLASSES)
    assert found.classes == tuple(CLASSES)


def test_a_tree_may_be_nested_names(tmp_path: Any):
    labels, probs = predictions()
    by_name = audit_predictions({"target": labels, "probs": probs}, classes=CLASSES, taxonomy=TREE)
    tree = Taxonomy.from_nested(TREE)
    assert str(by_name) == str(audit_predictions({"target": labels, "probs": probs}, classes=CLASSES, taxonomy=tree))
    np.savez(tmp_path / "p.npz", probs=probs)
    found = decide_file(tmp_path / "p.npz", tmp_path / "out.csv", taxonomy=TREE, threshold=0.9, classes=CLASSES)
    assert found.ancestors > 0


def test_a_table_alone_is_refused():
    _, probs = predictions()
    with pytest.raises(InputError, match=r"source: expected .* a mapping of arrays .* got Frame"):
        audit_predictions(Frame(probs, CLASSES))  # type: ignore[arg-type]
