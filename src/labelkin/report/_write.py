"""Render a page and write it as one HTML file without network access."""

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
from labelkin._files import write_text
from labelkin.comparison import Comparison
from labelkin.report._learned import Projection
from labelkin.report._page_model import Fold, Page, Panel, Subject, Verdict
from labelkin.report.figures._theme import DARK, template
from labelkin.runs import DataCache


def write_page(page: Page, path: str | os.PathLike[str]) -> None:
    write_text(path, render(page))


def render(page: Page) -> str:
    """The whole file as text.

    Names in it come from users: Jinja escapes them in HTML, and JSON inside `script` elements has no `<`. A content
    policy lets no script run but the two that are part of the page.
    """
    environment = _environment()
    plotly = require("plotly.offline", extra="report", use="the report").get_plotlyjs()
    script = _source("report.js")
    shared = {
        "template": _plain(template().to_plotly_json()),
        "dark": DARK,
        "figures": _figures(page.overview),
        "tables": _tables(page.overview),
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
    """Plotly's JSON without the template, which the page has once."""
    found = _plain(figure.to_plotly_json())
    found["layout"].pop("template", None)
    return found


def _tables(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    return {panel.key: panel.table._asdict() for panel in panels if panel.table is not None and panel.figures}


def _plain(value: Any) -> Any:
    """Without numpy's scalars and NaN, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and value != value else value


def _json(value: Any) -> Any:
    """JSON that cannot end the element it stands in."""
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
    from labelkin.report._build_page import gather

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
    """Write the page on one model: a first sentence, short facts, and the parts of `labelkin.report._subject`."""

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
