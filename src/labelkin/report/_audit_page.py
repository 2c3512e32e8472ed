"""The page of an audit: the same panels as a run's, for a model trained anywhere."""

import os
from math import isnan
from pathlib import Path

import torch
import torch.nn.functional as F

from labelkin.analysis import costliest
from labelkin.audit import Audit, as_text
from labelkin.report._mistakes import SHOWN, Mistakes, mistakes_of
from labelkin.report._page_model import Fold
from labelkin.report._subject import subject
from labelkin.report._write import write_model_page
from labelkin.structure import Taxonomy


def write_audit_page(found: Audit, path: str | os.PathLike[str]) -> Path:
    """Write the page on an audited model. Without a taxonomy the tree is the one that the confusions suggest."""
    given, tree = found.given, _tree(found).reorder(found.classes)
    scores = F.one_hot(given.predicted, len(found.classes)).double() if given.logits is None else given.logits
    mistakes = mistakes_of(scores, given.target, tree, log_probs=given.probs is not None)
    looked_into = subject(
        Path(found.source).name,
        tree,
        tree_named=found.tree is not None,
        mistakes=mistakes if found.tree is not None else _without_costs(mistakes, found),
    )
    # What a network learned is not in its predictions.
    looked_into = looked_into._replace(learned=(), nearest=None)
    return write_model_page(
        looked_into,
        path,
        sentence=_sentence(found),
        details=found.notes,
        context=(found.source, f"{found.samples:,} samples", f"{len(found.classes)} classes"),
        missing=found.left_out,
        made=(Fold("The audit in words", as_text(found), is_code=True),),
    )


def _without_costs(mistakes: Mistakes, found: Audit) -> Mistakes:
    """A tree learned from the mistakes gives them an order; costs taken from it would flatter."""
    given, alike = found.given, 1 - torch.eye(len(found.classes))
    most = costliest(given.predicted, given.target, names=found.classes, distances=alike, top=SHOWN)
    return mistakes._replace(costliest=most, samples=((),) * len(most.confusions), cost_rule=None)


def _tree(found: Audit) -> Taxonomy:
    if found.tree is not None:
        return found.tree
    return Taxonomy.from_nested(list(found.classes)) if found.structure is None else found.structure.tree


def _sentence(found: Audit) -> str:
    low, high = found.basics.accuracy_interval
    said = f"{100 * found.basics.accuracy:.1f} % are right ({100 * low:.1f} to {100 * high:.1f})"
    if found.hierarchy is None or isnan(found.hierarchy.severity):
        return said
    by_chance = found.hierarchy.severity_by_chance
    nearer = "milder" if found.hierarchy.severity < by_chance else "no milder"
    return f"{said}, and the mistakes are {nearer} than chance: severity {found.hierarchy.severity:.2f} against {by_chance:.2f}"
