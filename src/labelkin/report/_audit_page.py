"""The page of an audit: what to do and what it is worth, then the evidence; for a model from any library."""

import os
from math import isnan
from pathlib import Path

from labelkin._checks import counted
from labelkin.audit import Audit, as_text
from labelkin.comparison import Verdict
from labelkin.report._audit_chapters import chapters
from labelkin.report._page_model import Fold, Page
from labelkin.report._write import checked_target, write_page

ALIKE = 0.01  # the relative difference up to which mistakes are as severe as random ones


def write_audit_page(audit: Audit, path: str | os.PathLike[str], *, steps: str = "") -> Path:
    """Write the page of an audited model.

    Without a taxonomy, classes are shown in the order of the tree that the confusions suggest.

    Args:
        audit: The result of `labelkin.audit_predictions`.
        path: The `.html` file.
        steps: Commands that do what the audit advises, to show below the advice.

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
    target = checked_target(path)
    advice = audit.advice
    command = (advice.sentence,) if advice.rule == "crm" else ()  # the headline already says to keep the class
    details = (*audit.doubts, f"{_quality(audit)}.", *command, *audit.notes)
    page = Page(
        title=f"Audit of {Path(audit.source).name}",
        context=(audit.source, counted(audit.samples, "sample"), counted(len(audit.classes), "class", "classes")),
        verdict=Verdict("model", None, "", advice.headline, advice.evidence, details),
        also=(advice.fallback,) if advice.fallback else (),
        steps=steps,
        chapters=chapters(audit),
        missing=audit.left_out,
        sections=(Fold("The audit as text", as_text(audit), is_code=True),),
    )
    write_page(page, target)
    return target


def _quality(audit: Audit) -> str:
    low, high = audit.basics.accuracy_interval
    said = f"The accuracy is {100 * audit.basics.accuracy:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f})"
    if audit.cost is not None:
        low, high = audit.cost.interval
        said += f", and a decision costs {audit.cost.mean:.3f} on average (95 % interval {low:.3f} to {high:.3f})"
    if audit.hierarchy is None or isnan(audit.hierarchy.severity):
        return said
    severity, by_chance = audit.hierarchy.severity, audit.hierarchy.severity_by_chance
    milder = "less severe than" if severity < by_chance else "not less severe than"
    if abs(severity - by_chance) <= ALIKE * by_chance:
        milder = "about as severe as"
    return f"{said}; mistakes are {milder} random ones: severity {severity:.2f} against {by_chance:.2f}"
