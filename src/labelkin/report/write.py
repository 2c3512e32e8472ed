"""From runs to the file."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from labelkin._checks import InputError, check_choice
from labelkin.experiments.comparison import Comparison
from labelkin.report.learned import Projection
from labelkin.report.parts import Fold, Page, Subject, Verdict


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    projection: Projection = "mds",
    problems: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Write the page on a comparison: one `.html` file that holds all it shows and asks the network for nothing.

    Runs whose weights, outputs or data are gone are shown as far as they go, and the page says what is missing, together
    with the `problems` that are known already. `projection` is "mds" (classical scaling, quick, no chance in it) or
    "tsne", for the features in the plane. `say` is told what is being looked into.
    """
    from labelkin.report.gather import gather
    from labelkin.report.page import write_page

    check_choice("projection", projection, ("mds", "tsne"))
    target = checked_target(path)
    write_page(gather(comparison, how=projection, problems=problems, say=say), target)
    return target


def write_model_page(
    found: Subject,
    path: str | os.PathLike[str],
    *,
    sentence: str,
    details: Sequence[str] = (),
    context: Sequence[str] = (),
    missing: Sequence[str] = (),
    made: Sequence[Fold] = (),
) -> Path:
    """Write the page on one model: a first sentence, short facts above it, and what `labelkin.report.subject` made."""
    from labelkin.report.page import write_page

    target = checked_target(path)
    page = Page(
        title=found.label,
        context=tuple(context),
        verdict=Verdict("model", None, "", sentence, details=tuple(details)),
        subjects=(found,),
        missing=tuple(missing),
        made=tuple(made),
    )
    write_page(page, target)
    return target


def checked_target(path: str | os.PathLike[str]) -> Path:
    """A path that a page may be written to."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{target}: expected a name that ends in .html.")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; make it first.")
    return target


def targets(path: str | os.PathLike[str], count: int) -> list[Path]:
    """The path, or `report-1.html`, `report-2.html`, ... where there are several comparisons."""
    target = checked_target(path)
    if count == 1:
        return [target]
    return [target.with_stem(f"{target.stem}-{place}") for place in range(1, count + 1)]
