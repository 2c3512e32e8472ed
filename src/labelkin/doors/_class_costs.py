"""Costs of mistakes between the classes of an estimator: by class name, as a matrix, or the distances in a tree."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError, check_names, listed
from labelkin.doors._training_inputs import given_tree
from labelkin.structure import Taxonomy
from labelkin.training import read_costs

Matrix = npt.NDArray[np.float64]


def check_one_source(taxonomy: Any, costs: Any) -> None:
    """Refuse a taxonomy together with costs."""
    if taxonomy is not None and costs is not None:
        raise InputError("costs: expected either a taxonomy or costs, got both; leave one of them out.")


def given_costs(costs: Any) -> Any:
    """Return costs as they are, and those of a file as a mapping `{true class: {answer: cost}}`."""
    if not isinstance(costs, (str, os.PathLike)):
        return costs
    table = read_costs(costs)
    answers = (*(table.names or ()), *table.actions)
    return {
        true: dict(zip(answers, row, strict=True))
        for true, row in zip(table.names or (), table.costs.tolist(), strict=True)
    }


def costs_over(classes: npt.NDArray[Any], taxonomy: Any, costs: Any) -> Taxonomy | Matrix:
    """Return the costs between classes in the order of `classes`.

    Args:
        classes: (K,) labels.
        taxonomy: A choice of a tree (see `KinClassifier`), or None.
        costs: A choice of costs (see `LeastCostClassifier`), or None.

    Returns:
        The tree over the classes, or (K, A) costs by true class and answer, the actions after the classes; without either,
        1 for every mistake.
    """
    check_one_source(taxonomy, costs)
    if taxonomy is not None:
        names = [str(label) for label in classes.tolist()]
        tree = given_tree(taxonomy)
        return Taxonomy.from_wordnet(names, rule="shortest") if tree is None else tree.restrict(names)
    return 1 - np.eye(len(classes)) if costs is None else cost_matrix(costs, classes, action_names(costs, classes))


def action_names(costs: Any, classes: npt.NDArray[Any]) -> list[str]:
    """Return the answers of costs by name that are not classes: those without a row of their name.

    >>> action_names({"cat": {"dog": 1, "ask": 0.2}, "dog": {"cat": 1, "ask": 0.2}}, np.array(["cat", "dog"]))
    ['ask']
    """
    rows = _by_name(costs)
    if rows is None:
        return []
    names = {str(name) for name in classes.tolist()}
    known = names | {str(true) for true in rows}
    answers = (str(answer) for true, row in rows.items() if str(true) in names for answer in _named(row))
    return [answer for answer in dict.fromkeys(answers) if answer not in known]


def cost_matrix(costs: Any, classes: npt.NDArray[Any], actions: Sequence[str] = ()) -> Matrix:
    """Return (K, A) costs by true class (row) and answer (column): the classes, then the actions.

    >>> cost_matrix({"benign": {"malignant": 1}, "malignant": {"benign": 50}}, np.array(["benign", "malignant"]))
    array([[ 0.,  1.],
           [50.,  0.]])
    """
    by_name = _by_name(costs)
    matrix = _numbers(costs) if by_name is None else _numbers(_in_order(by_name, classes.tolist(), actions))
    if matrix.shape != (len(classes), len(classes) + len(actions)):
        raise InputError(
            f"costs: expected shape ({len(classes)}, {len(classes)}), true classes by answers in the order of "
            f"{listed(classes.tolist())}, got {matrix.shape}; give them by class name if some classes may be missing, or "
            "if some answers are not classes."
        )
    if not np.isfinite(matrix).all():
        bad = matrix.size - int(np.isfinite(matrix).sum())
        raise InputError(
            f"costs: expected finite numbers, got {bad} NaN or infinite numbers; use a large cost instead."
        )
    return matrix


def _by_name(costs: Any) -> Mapping[Any, Any] | None:
    """Return the rows of a mapping or of a pandas DataFrame as mappings; None for an array."""
    if hasattr(costs, "columns") and hasattr(costs, "to_dict"):
        for axis, labels in (("index", costs.index), ("columns", costs.columns)):
            check_names(f"costs: {axis}", [str(label) for label in labels])
        rows: Mapping[Any, Any] = costs.to_dict(orient="index")
        return rows
    return costs if isinstance(costs, Mapping) else None


def _in_order(rows: Mapping[Any, Any], classes: list[Any], actions: Sequence[str]) -> list[list[Any]]:
    """Return the costs of the classes and then of the actions; a right answer costs 0 unless its cost is given."""
    answers = [*classes, *actions]
    return [[_answer(_row(rows, true), true, answer) for answer in answers] for true in classes]


def _row(rows: Mapping[Any, Any], true: Any) -> Mapping[Any, Any]:
    row = rows.get(true, rows.get(str(true)))
    if not isinstance(row, Mapping):
        raise InputError(
            f"costs: expected a row of costs for the true class {true!r}, got rows for {listed(list(rows))}; "
            "give a mapping {true class: {answer: cost}} or a table with the class names as index and columns."
        )
    return row


def _named(row: Any) -> Iterable[Any]:
    return row if isinstance(row, Mapping) else ()  # what is no mapping is refused where the costs are read


def _answer(row: Mapping[Any, Any], true: Any, answer: Any) -> Any:
    cost = row.get(answer, row.get(str(answer), 0.0 if answer == true else None))
    if cost is None:
        raise InputError(
            f"costs: expected the cost of the answer {answer!r} for the true class {true!r}, got only "
            f"{listed(list(row))}; add it."
        )
    return cost


def _numbers(costs: Any) -> Matrix:
    try:
        return np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"costs: expected a (K, K) matrix or costs by class name, got {costs!r:.60}.") from None
