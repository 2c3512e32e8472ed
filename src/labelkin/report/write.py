"""Write report pages."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from labelkin._checks import InputError, check_choice
from labelkin.experiments.comparison import Comparison
from labelkin.experiments.workspace import DataCache
from labelkin.report.learned import Projection
from labelkin.report.parts import Fold, Page, Subject, Verdict


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    projection: Projection = "mds",
    data: DataCache | None = None,
    problems: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Write the page on a comparison: one self-contained `.html` file that needs no network.

    If weights, outputs or data of a run are missing, the page shows the rest and says what is missing.

    Args:
        comparison: What `labelkin.compare` or `read_comparisons` returned.
        path: The `.html` file.
        projection: How features are shown in two dimensions: "mds" (classical scaling, fast and deterministic) or "tsne".
        data: Data sets that were read before, so that they are not read again.
        problems: Known problems to list on the page.
        say: Called with each line of status.

    Returns:
        The path of the page.
    """
    from labelkin.report.gather import gather
    from labelkin.report.page import write_page

    check_choice("projection", projection, ("mds", "tsne"))
    target = checked_target(path)
    write_page(gather(comparison, how=projection, cache=data, problems=problems, say=say), target)
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
    """Write the page on one model: a first sentence, short facts, and the parts of `labelkin.report.subject`."""
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
    """Check that a page can be written to this path, and return it."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{target}: expected a name that ends in .html.")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; make it first.")
    return target


def targets(path: str | os.PathLike[str], count: int) -> list[Path]:
    """Return the path, or `report-1.html`, `report-2.html`, ... for several comparisons."""
    target = checked_target(path)
    if count == 1:
        return [target]
    return [target.with_stem(f"{target.stem}-{place}") for place in range(1, count + 1)]
