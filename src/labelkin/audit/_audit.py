"""The audit of any model, from its predictions alone."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from labelkin._checks import check_count
from labelkin.analysis import linkage_tree
from labelkin.audit import _findings as findings
from labelkin.audit import _text as text
from labelkin.audit._confusion_tree import LEAST_CLASSES, mixed, structure, tells_structure
from labelkin.audit._costs import in_class_order, read_costs
from labelkin.audit._decisions import Scaling, calibration, crm, fallback, fit_temperature
from labelkin.audit._measures import basics, cost, hierarchy, worst
from labelkin.audit._names import TreeChoice, in_words, load_choice, names_for, tree_over
from labelkin.audit._predictions import Predictions, Source, predictions_of, read_raw
from labelkin.audit._schema import Fields, Kind
from labelkin.audit._statistics import LEAST, Halves, halves_of
from labelkin.structure import Taxonomy


class Audit(NamedTuple):
    """Everything found; a part is None where `left_out` says why."""

    source: str
    kind: Kind
    samples: int
    classes: tuple[str, ...]
    taxonomy: str | None  # where it came from
    basics: findings.Basics
    hierarchy: findings.Hierarchy | None
    cost: findings.Cost | None
    worst: findings.Worst
    calibration: findings.Calibration | None
    crm: tuple[findings.Crm, ...]
    fallback: findings.Fallback | None
    structure: findings.Structure | None
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    given: Predictions  # what was audited
    tree: Taxonomy | None  # over its classes

    def as_dict(self) -> dict[str, Any]:
        """What was found, as plain values; NaN where a number is undefined, and the learned tree as Newick text."""
        return {name: findings.plain(part) for name, part in self._asdict().items() if name not in ("given", "tree")}

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
    top: int = 10,
    seed: int = 0,
) -> Audit:
    """What the predictions of any model are worth: mistakes, calibration, decisions, and the structure they suggest.

    `source` is an .npz, .csv, .jsonl or .parquet file, or a mapping of arrays: the true class (`target`), and
    - `kind="logits"` or `"probs"`: an array or a column of lists called so or as `scores` says, or in tables a column
      for each class, all but the target's or those that `columns` names (`"p_*"`: all that begin so);
    - `kind="labels"`: a column `predicted`.
    Without `kind` one of the names `logits`, `probs` and `predicted` must say it; it is never guessed.

    `classes` names the classes in the order of the scores: a list, a text file with one a line, or `"taxonomy"` for the
    tree's own order. Labels are class names, or positions from 0 where they are not. `taxonomy` is a `Taxonomy`, a file,
    the name of a shipped tree or `"wordnet"`; `costs` a .csv or .npz file or a matrix, rows true, columns decided.
    `top` is the number of confusions listed; `seed` draws the halves of which one is measured on what the other chose.
    """
    check_count("top", top)
    check_count("seed", seed, least=0)
    raw = read_raw(source, kind, Fields(target, predicted, scores, columns))
    tree, table = load_choice(taxonomy), None if costs is None else read_costs(costs)
    name = "arrays" if isinstance(source, Mapping) else os.fspath(source)
    given = predictions_of(raw, names_for(raw, classes, tree, table), name)
    if given.doubt is not None:
        warnings.warn(given.doubt, stacklevel=2)
    over = tree_over(taxonomy, tree, given.classes)
    matrix = None if table is None else in_class_order(table, given.classes)
    return _audited(given, over, in_words(taxonomy, tree, over), matrix, top=top, seed=seed)


def _audited(
    given: Predictions, tree: Taxonomy | None, tree_is: str | None, costs: Tensor | None, *, top: int, seed: int
) -> Audit:
    halves = halves_of(len(given.target), seed)
    scaling = None if given.probs is None or halves is None else fit_temperature(given, halves)
    tells = tells_structure(given)
    return Audit(
        source=given.source,
        kind=given.kind,
        samples=len(given.target),
        classes=given.classes,
        taxonomy=tree_is,
        basics=basics(given),
        hierarchy=None if tree is None else hierarchy(given, tree),
        cost=None if costs is None else cost(given, costs),
        worst=worst(given, tree, costs, top=top),
        calibration=None if given.probs is None else calibration(given, halves, scaling),
        crm=tuple(_decisions(given, halves, scaling, tree, costs)),
        fallback=None if given.probs is None or halves is None else _fallback(given, halves, tree),
        structure=structure(given, halves, tree) if tells else None,
        left_out=tuple(_left_out(given, halves, tree, tells)),
        notes=tuple(note for note in (*given.notes, given.doubt, scaling and scaling.note) if note),
        given=given,
        tree=tree,
    )


def _decisions(
    given: Predictions, halves: Halves | None, scaling: Scaling | None, tree: Taxonomy | None, costs: Tensor | None
) -> Iterator[findings.Crm]:
    """By the tree and by the costs; on all samples as they are, and calibrated on the half that was not fitted."""
    if given.probs is None:
        return
    for by_tree, by_costs in ((True, None), (False, costs)):
        if (tree if by_tree else by_costs) is None:
            continue
        yield crm(given.probs, given.target, tree, by_costs, temperature=1.0)
        if halves is not None and scaling is not None and scaling.note is None:
            target = given.target[halves.measured]
            yield crm(scaling.probs, target, tree, by_costs, temperature=scaling.temperature)


def _fallback(given: Predictions, halves: Halves, tree: Taxonomy | None) -> findings.Fallback:
    """Without a taxonomy in a tree learned on the half that is not measured, which is fair: it says what is true or not."""
    if tree is not None:
        return fallback(given, halves, tree, tree_is="taxonomy")
    learned = linkage_tree(mixed(given, halves.fitted).distances, given.classes)
    return fallback(given, halves, learned, tree_is="learned")


def _left_out(given: Predictions, halves: Halves | None, tree: Taxonomy | None, tells: bool) -> Iterator[str]:
    if tree is None:
        yield (
            "severity, hierarchical distance, precision, recall and F1, and CRM by a tree: they need a taxonomy "
            "(--taxonomy); one learned from the same mistakes would flatter them."
        )
    if given.probs is None:
        yield "top-5, calibration, CRM and fallback: they need logits or probabilities, not predicted labels."
    elif halves is None:
        yield f"temperature, fallback and stability: they need two halves, and there are fewer than {LEAST} samples."
    if not tells:
        few = len(given.classes) < LEAST_CLASSES
        yield f"the learned tree: there are {'only two classes' if few else 'no confusions to learn it from'}."
