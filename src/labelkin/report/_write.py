"""Render a page and write it as one self-contained HTML file."""

import json
import os
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, check_choice
from labelkin._extras import require
from labelkin._files import check_replaceable, write_text
from labelkin.comparison import Comparison, Verdict
from labelkin.report._learned import Projection
from labelkin.report._page_model import Fold, Page, Panel, Subject
from labelkin.report.figures._theme import DARK, template
from labelkin.runs import DataCache


def write_page(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page to a file."""
    write_text(path, render(page))


def render(page: Page) -> str:
    """Return the HTML of a page.

    The page contains names from users. Jinja escapes them in HTML, and JSON inside `script` elements contains no `<`. A content
    security policy allows only the page's own two scripts.
    """
    environment = _environment()
    plotly = require("plotly.offline", extra="report", use="the report").get_plotlyjs()
    script = _source("report.js")
    in_chapters = (part for chapter in page.chapters for part in chapter.parts if isinstance(part, Panel))
    shown = (*page.overview, *in_chapters)
    shared = {
        "template": _plain(template().to_plotly_json()),
        "dark": DARK,
        "figures": _figures(shown),
        "tables": _tables(shown),
    }
    markup = environment.get_template("page.html").render(
        page=page,
        css=_source("report.css"),
        plotly=plotly,
        script=script,
        policy=" ".join(f"'sha256-{_digest(code)}'" for code in (plotly, script)),
        shared=_json(shared),
        subjects=[_json(_subject(environment, subject)) for subject in page.subjects],
    )
    return str(markup)


def _subject(environment: Any, subject: Subject) -> dict[str, Any]:
    panels = (*subject.learned, *subject.mistakes)
    return {
        "html": environment.get_template("subject.html").render(subject=subject),
        "figures": _figures(panels),
        "tables": _tables(panels),
    }


def _environment() -> Any:
    jinja = require("jinja2", extra="report", use="the report")
    return jinja.Environment(
        loader=jinja.FunctionLoader(_source),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
    )


def _source(name: str) -> str:
    return (files("labelkin.report") / "templates" / name).read_text(encoding="utf-8")


def _figures(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    return {
        panel.key: {view: _bare(figure) for view, figure in panel.figures.items()} for panel in panels if panel.figures
    }


def _bare(figure: Any) -> Any:
    """Return Plotly's JSON without the template, which the page contains only once."""
    found = _plain(figure.to_plotly_json())
    found["layout"].pop("template", None)
    return found


def _tables(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    return {panel.key: panel.table._asdict() for panel in panels if panel.table is not None and panel.figures}


def _plain(value: Any) -> Any:
    """Replace values that JSON cannot represent: numpy values by Python values, and NaN by None."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and value != value else value


def _json(value: Any) -> Any:
    """Return JSON that is safe inside a `script` element."""
    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    markup = require("markupsafe", extra="report", use="the report")
    return markup.Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _digest(code: str) -> str:
    return b64encode(sha256(code.encode("utf-8")).digest()).decode()


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    projection: Projection = "mds",
    data: DataCache | None = None,
    problems: Sequence[str] = (),
    problem: str = "",
    also: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Write the page of a comparison: one self-contained `.html` file that needs no network.

    If weights, outputs or data of a run are missing, the page shows the rest and lists what is missing.

    Args:
        comparison: A comparison from `labelkin.compare` or `read_comparisons`.
        path: The `.html` file.
        projection: How features are shown in two dimensions: "mds" (classical scaling, fast and deterministic) or "tsne".
        data: Data sets that are already loaded, so that they are not read again.
        problems: Known problems to list on the page.
        problem: What is compared, in a sentence or two for readers who do not know the data.
        also: Sentences to show below the first one.
        say: Called with each line of status.

    Returns:
        The path of the page.

    Example:
        >>> import tempfile
        >>> import labelkin
        >>> from labelkin.report import write_report
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = labelkin.compare("digits", objectives=["one-hot"], out=folder, epochs=1)
        ...     write_report(found, f"{folder}/report.html").name
        'report.html'
    """
    from labelkin.report._build_page import build_page

    check_choice("projection", projection, ("mds", "tsne"))
    target = checked_target(path)
    page = build_page(comparison, projection=projection, cache=data, problems=problems, say=say)
    write_page(page._replace(problem=problem, also=tuple(also)), target)
    return target


def write_model_page(
    model: Subject,
    path: str | os.PathLike[str],
    *,
    sentence: str,
    details: Sequence[str] = (),
    context: Sequence[str] = (),
    missing: Sequence[str] = (),
    sections: Sequence[Fold] = (),
) -> Path:
    """Write the page of one model.

    Args:
        model: The details of the model; its label is the title of the page.
        path: The `.html` file.
        sentence: The first sentence, without a period.
        details: Sentences below it.
        context: Short facts above it.
        missing: What is missing on the page.
        sections: Texts at the end of the page.

    Returns:
        The path of the page.

    Example:
        >>> import tempfile
        >>> from labelkin.report import write_model_page
        >>> from labelkin.report._inspect_run import subject
        >>> from labelkin.structure import Taxonomy
        >>> details = subject("my model", Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]}))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_model_page(details, f"{folder}/model.html", sentence="The accuracy is 92.1 %").name
        'model.html'
    """
    target = checked_target(path)
    page = Page(
        title=model.label,
        context=tuple(context),
        verdict=Verdict("model", None, "", sentence, details=tuple(details)),
        subjects=(model,),
        missing=tuple(missing),
        sections=tuple(sections),
    )
    write_page(page, target)
    return target


def checked_target(path: str | os.PathLike[str]) -> Path:
    """Check that a page can be written to this path, and return it."""
    for module in ("plotly", "jinja2"):
        require(module, extra="report", use="the report")
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{target}: expected a name that ends in .html.")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; create it first.")
    check_replaceable(target, by="labelkin", is_ours=_is_page)
    return target


def _is_page(start: bytes) -> bool:
    """Return whether a file begins as the pages of this and earlier versions do."""
    return b"default-src 'none'; script-src 'sha256-" in start and b'<link rel="icon" href="data:,">' in start


def targets(path: str | os.PathLike[str], count: int) -> list[Path]:
    """Return the paths of `count` pages: the path itself, or with a number for several pages.

    Args:
        path: An `.html` file in an existing folder.
        count: The number of pages.

    Returns:
        One path per page.

    Example:
        >>> from labelkin.report import targets
        >>> [str(path) for path in targets("report.html", 2)]
        ['report-1.html', 'report-2.html']
    """
    if count == 1:
        return [checked_target(path)]
    return [checked_target(Path(path).with_stem(f"{Path(path).stem}-{place}")) for place in range(1, count + 1)]
