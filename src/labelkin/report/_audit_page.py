"""The report page of an audit: the same panels as for a run, for a model from any library."""

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


def write_audit_page(audit: Audit, path: str | os.PathLike[str]) -> Path:
    """Write the page of an audited model.

    Without a taxonomy, classes are shown in the order of the tree that the confusions suggest.

    Args:
        audit: The result of `labelkin.audit_predictions`.
        path: The `.html` file.

    Returns:
        The path of the page.

    Example:
        >>> import tempfile
        >>> from labelkin.audit import audit
        >>> from labelkin.report import write_audit_page
        >>> found = audit({"target": [0, 1, 2], "predicted": [0, 2, 2]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_audit_page(found, f"{folder}/audit.html").name
        'audit.html'
    """
    given, tree = audit.predictions, _tree(audit).reorder(audit.classes)
    scores = F.one_hot(given.predicted, len(audit.classes)).double() if given.logits is None else given.logits
    mistakes = mistakes_of(scores, given.target, tree, log_probs=given.probs is not None)
    model = subject(
        Path(audit.source).name,
        tree,
        tree_named=audit.tree is not None,
        mistakes=mistakes if audit.tree is not None else _without_costs(mistakes, audit),
    )
    return write_model_page(
        model._replace(learned=(), nearest=None),  # predictions do not show what the network learned
        path,
        sentence=_sentence(audit),
        details=(*audit.doubts, audit.advice.sentence, *audit.notes),
        context=(audit.source, f"{audit.samples:,} samples", f"{len(audit.classes)} classes"),
        missing=audit.left_out,
        sections=(Fold("The audit as text", as_text(audit), is_code=True),),
    )


def _without_costs(mistakes: Mistakes, audit: Audit) -> Mistakes:
    """Count confusions without distances: a tree learned from the mistakes would make them look mild."""
    given, equal = audit.predictions, 1 - torch.eye(len(audit.classes))
    most = costliest(given.predicted, given.target, names=audit.classes, distances=equal, top=SHOWN)
    return mistakes._replace(costliest=most, samples=((),) * len(most.confusions), cost_rule=None, by_tree=False)


def _tree(audit: Audit) -> Taxonomy:
    if audit.tree is not None:
        return audit.tree
    return Taxonomy.from_nested(list(audit.classes)) if audit.structure is None else audit.structure.tree


def _sentence(audit: Audit) -> str:
    low, high = audit.basics.accuracy_interval
    accuracy = (
        f"The accuracy is {100 * audit.basics.accuracy:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f})"
    )
    advice = audit.advice
    if advice.by == "costs" and advice.change is not None and audit.cost is not None:
        if advice.rule == "argmax":
            return f"{accuracy}, and the cost per sample is {audit.cost.mean:.3f}; keep the most probable class"
        saved = f"from {advice.change.before:.3f} to {advice.change.after:.3f}"
        return f"{accuracy}; deciding by the least expected cost lowers the cost per sample {saved}"
    if audit.hierarchy is None or isnan(audit.hierarchy.severity):
        return accuracy
    severity, by_chance = audit.hierarchy.severity, audit.hierarchy.severity_by_chance
    milder = "less severe" if severity < by_chance else "not less severe"
    return (
        f"{accuracy}, and the mistakes are {milder} than random ones: severity {severity:.2f} against {by_chance:.2f}"
    )
