"""The page: one HTML file that holds all it needs and asks the network for nothing."""

import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from labelkin._extras import require
from labelkin._files import write_text
from labelkin.report.figures.theme import DARK, template
from labelkin.report.parts import Page, Panel, Subject


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
