"""Audit a model from its predictions."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from labelkin._checks import InputError, check_count
from labelkin.analysis import linkage_tree
from labelkin.audit import _decision_findings as deciding
from labelkin.audit import _findings as findings
from labelkin.audit import _text as text
from labelkin.audit._advice import advise
from labelkin.audit._columns import LEAST_SAMPLES, Halves, split_if_enough
from labelkin.audit._confusion_tree import LEAST_CLASSES, Structure, class_confusions, has_structure, structure
from labelkin.audit._decisions import Scaling, calibration, crm, fallback, fit_temperature
from labelkin.audit._doubts import first_matches, questions
from labelkin.audit._measures import basics, cost, hierarchy, worst
from labelkin.audit._names import (
    FROM_TREE,
    TreeChoice,
    choose_names,
    describe_tree,
    is_built_in,
    load_taxonomy,
    restrict_tree,
)
from labelkin.audit._predictions import Predictions, Source, check_predictions, read_raw, read_run
from labelkin.audit._read_files import read_arrays
from labelkin.audit._schema import Fields, Kind, name_list
from labelkin.structure import Taxonomy
from labelkin.training import CostTable, costs_in_order, read_costs


class Audit(NamedTuple):
    """The result of `audit`; `str(found)` formats it as text.

    Attributes:
        source: The file's path, or "arrays".
        kind: The kind of predictions: "logits", "probs" or "labels".
        samples: Number of samples.
        classes: Class names.
        taxonomy: Source and size of the taxonomy; None without one.
        doubts: What to check first, because the input was probably misunderstood.
        advice: The decision rule to use, what it saves, and on what evidence.
        basics: Accuracy and mistakes.
        hierarchy: Metrics on the taxonomy.
        cost: Mean cost.
        worst: The most expensive confusions.
        calibration: Calibration of the probabilities.
        crm: Effect of least-cost decisions: by the taxonomy and by the costs, each before and after temperature scaling.
        fallback: Effect of answering with an ancestor when unsure.
        structure: The tree that the confusions suggest.
        left_out: Why parts are missing; such a part is None or empty.
        notes: Remarks on the data.
        predictions: The predictions, as tensors.
        tree: The taxonomy over the classes.

    Example:
        >>> from labelkin.audit import audit
        >>> found = audit({"target": [0, 1, 2], "predicted": [0, 2, 2]})
        >>> found.basics.mistakes, found.hierarchy, len(found.left_out)
        (1, None, 2)
    """

    source: str
    kind: Kind
    samples: int
    classes: tuple[str, ...]
    taxonomy: str | None
    doubts: tuple[str, ...]
    advice: deciding.Advice
    basics: findings.Basics
    hierarchy: findings.Hierarchy | None
    cost: findings.Cost | None
    worst: findings.Worst
    calibration: findings.Calibration | None
    crm: tuple[deciding.Crm, ...]
    fallback: deciding.Fallback | None
    structure: Structure | None
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    predictions: Predictions
    tree: Taxonomy | None

    def as_dict(self) -> dict[str, Any]:
        """Return the results as dicts, lists, strings and numbers, without the predictions.

        Undefined numbers are NaN, and the learned tree is Newick text.

        Example:
            >>> from labelkin.audit import audit
            >>> audit({"target": [0, 1], "predicted": [0, 1]}).as_dict()["basics"]["accuracy"]
            1.0
        """
        left_out = ("predictions", "tree")
        return {name: findings.plain(part) for name, part in self._asdict().items() if name not in left_out}

    def __str__(self) -> str:
        return text.as_text(self)


def audit(
    source: Source,
    *,
    kind: str | None = None,
    taxonomy: TreeChoice | None = None,
    costs: Any = None,
    classes: Sequence[str] | str | os.PathLike[str] | None = None,
    target: str | None = None,
    predicted: str | None = None,
    scores: str | None = None,
    columns: Sequence[str] | str | None = None,
    ignore: Sequence[str] | str = (),
    top: int = 10,
    seed: int = 0,
) -> Audit:
    """Audit a model from its predictions: mistakes, calibration, decisions, and the tree that the confusions suggest.

    The model may come from any library. Temperature and fallback thresholds are fitted on one random half of the samples and
    measured on the other half.

    Args:
        source: A .npz, .csv, .jsonl or .parquet file, or a mapping of arrays, with the true classes and the predictions. Or the
            folder of a finished run: its calibrated predictions on its test set, with its taxonomy unless one is given. Names
            of the columns of an array of scores, as pandas has them, are the classes.
        kind: The kind of predictions: "logits", "probs" or "labels". By default it follows from the name of the array or
            column, which must be `logits`, `probs` or `predicted`; it is never guessed from the numbers.
        taxonomy: The tree over the classes: a `Taxonomy`, a nested mapping of names, a file, the name of a built-in tree, or
            "wordnet".
        costs: Costs of decisions: a .csv or .npz file, a pandas DataFrame, a mapping `{true class: {answer: cost}}`, or a
            square matrix. Rows are true classes, columns answers; a column without a row is an action, such as "ask a person".
        classes: Class names in the order of the scores: a list, a text file with one name per line, or "taxonomy" for the
            order of the tree, which needs labels that are names, or a built-in tree. Labels are class names or, if they are
            not, positions counted from 0.
        target: The array or column with the true classes; by default "target", "label" or "y".
        predicted: The array or column with the predicted labels; by default "predicted".
        scores: The array, or the column of lists, with the scores; by default "logits" or "probs".
        columns: A table's columns of scores, one per class: names, or "p_*" for all that start with "p_". By default all
            columns but the target.
        ignore: Columns of a table that are not scores, such as a customer's number; one name or several.
        top: Number of confusions to list.
        seed: Seed of the random halves.

    Returns:
        The results; `print` shows them as text.

    Example:
        >>> from labelkin import audit_predictions
        >>> tree = {"animal": ["cat", "dog"], "machine": ["car", "bus"]}
        >>> from labelkin import Taxonomy
        >>> probs = [[0.6, 0.3, 0.1, 0.0], [0.5, 0.4, 0.1, 0.0], [0.0, 0.2, 0.5, 0.3]]
        >>> labels = ["cat", "dog", "car"]
        >>> found = audit_predictions(
        ...     {"target": labels, "probs": probs}, taxonomy=Taxonomy.from_nested(tree), classes="taxonomy"
        ... )
        >>> found.basics.mistakes, found.hierarchy.severity
        (1, 1.0)
    """
    check_count("top", top)
    check_count("seed", seed, least=0)
    if not isinstance(source, (Mapping, str, os.PathLike)):
        raise InputError(
            "source: expected a file, the folder of a run, or a mapping of arrays such as {'target': y, 'probs': probs}, got "
            f"{type(source).__name__}."
        )
    fields, given_tree = Fields(target, predicted, scores, columns, name_list(ignore)), taxonomy is not None
    of_run = False
    if isinstance(source, Mapping) or not os.path.isdir(source):
        raw = read_raw(source, kind, fields)
    else:
        run, of_run = read_run(source), True
        raw = read_arrays(run.arrays, kind, fields, os.fspath(source))
        taxonomy = run.taxonomy if taxonomy is None else taxonomy
    whole_tree, cost_table = load_taxonomy(taxonomy), None if costs is None else read_costs(costs)
    name = "arrays" if isinstance(source, Mapping) else os.fspath(source)
    names = choose_names(raw, classes, whole_tree, cost_table, is_built_in=is_built_in(taxonomy))
    given = check_predictions(raw, names, name)
    tree = restrict_tree(taxonomy, whole_tree, given.classes)
    in_order = None if cost_table is None else costs_in_order(cost_table, given.classes)
    by_tree = isinstance(classes, str) and classes == FROM_TREE
    if classes is not None and raw.scores is not None:
        order = f"{'of the tree' if by_tree else 'given'} ({first_matches(given.classes)})"
        given = given._replace(notes=(*given.notes, f"Classes are in the order {order}."))
    described = describe_tree(taxonomy, whole_tree, tree, of_run=not given_tree)
    found = _measure(given, tree, described, in_order, top=top, seed=seed, order_of_tree=by_tree, of_run=of_run)
    for doubt in (given.doubt, *found.doubts):
        if doubt is not None:
            warnings.warn(doubt, stacklevel=2)
    return found


def _measure(
    given: Predictions,
    tree: Taxonomy | None,
    tree_description: str | None,
    table: CostTable | None,
    *,
    top: int,
    seed: int,
    order_of_tree: bool,
    of_run: bool,
) -> Audit:
    """Compute all parts of the audit."""
    costs = None if table is None else table.costs[:, : len(given.classes)]
    halves = split_if_enough(len(given.true), seed)
    scaling = None if given.prob_rows is None or halves is None else fit_temperature(given, halves)
    structured = has_structure(given)
    quality, on_tree = basics(given), None if tree is None else hierarchy(given, tree)
    decisions = tuple(_decisions(given, halves, scaling, tree, table))
    answers = None if given.prob_rows is None or halves is None else _fallback(given, halves, scaling, tree)
    return Audit(
        source=given.source,
        kind=given.kind,
        samples=len(given.true),
        classes=given.classes,
        taxonomy=tree_description,
        doubts=tuple(questions(given, quality, on_tree if order_of_tree else None)),
        advice=advise(
            decisions,
            answers,
            has_probs=given.prob_rows is not None,
            has_costs=tree is not None or costs is not None,
            of_run=of_run,
        ),
        basics=quality,
        hierarchy=on_tree,
        cost=None if costs is None else cost(given, costs),
        worst=worst(given, tree, costs, top=top),
        calibration=None if given.prob_rows is None else calibration(given, halves, scaling),
        crm=decisions,
        fallback=answers,
        structure=structure(given, halves, tree) if structured else None,
        left_out=tuple(_left_out(given, halves, tree, structured)),
        notes=tuple(note for note in (*given.notes, given.doubt, scaling and scaling.note) if note),
        predictions=given,
        tree=tree,
    )


def _decisions(
    given: Predictions, halves: Halves | None, scaling: Scaling | None, tree: Taxonomy | None, table: CostTable | None
) -> Iterator[deciding.Crm]:
    """Yield least-cost decisions by the tree and by the costs: on all samples, and calibrated on the measured half."""
    if given.prob_rows is None:
        return
    for by_tree, costs in ((True, None), (False, table)):
        if (tree if by_tree else costs) is None:
            continue
        by, actions = (None, ()) if costs is None else (costs.costs, costs.actions)
        yield crm(given.prob_rows, given.true, tree, by, temperature=1.0, actions=actions)
        if halves is not None and scaling is not None and scaling.note is None:
            target = given.true.take(halves.measured)
            yield crm(scaling.probs, target, tree, by, temperature=scaling.temperature, actions=actions)


def _fallback(given: Predictions, halves: Halves, scaling: Scaling | None, tree: Taxonomy | None) -> deciding.Fallback:
    """Return the fallback in the taxonomy, or in a tree learned on the half that is not measured."""
    if tree is not None:
        return fallback(given, halves, scaling, tree, tree_source="taxonomy")
    learned = linkage_tree(class_confusions(given, halves.fitted).distances, given.classes)
    return fallback(given, halves, scaling, learned, tree_source="learned")


def _left_out(given: Predictions, halves: Halves | None, tree: Taxonomy | None, structured: bool) -> Iterator[str]:
    if tree is None:
        yield (
            "Severity, hierarchical distance, hierarchical precision, recall and F1, and CRM by a tree need a taxonomy "
            "(--taxonomy). A tree learned from the same mistakes would make them look better than they are."
        )
    if given.prob_rows is None:
        yield "Top-5 accuracy, calibration, CRM and fallback need logits or probabilities, not predicted labels."
    elif halves is None:
        yield f"Temperature, fallback and stability need at least {LEAST_SAMPLES} samples, to split them into halves."
    if not structured:
        few = len(given.classes) < LEAST_CLASSES
        yield f"The learned tree needs {f'at least {LEAST_CLASSES} classes' if few else 'confusions to learn from'}."
