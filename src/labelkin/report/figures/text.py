"""Names as plotly shows them. Plotly reads `<b>` and `&amp;` in any text, so what users write is escaped first."""

from collections.abc import Sequence

LIMIT = 22  # characters of a name beside an axis
ISOLATE, POP = "\u2068", "\u2069"


def shown(text: str, limit: int = LIMIT) -> str:
    """One line of at most `limit` characters, long text cut in the middle, as text and nothing else.

    Text that is not plain ASCII stands between marks that keep its direction of writing to itself.
    """
    line = " ".join(text.split())
    if len(line) > limit:
        tail = (limit - 1) // 2
        line = f"{line[: limit - 1 - tail]}…{line[-tail:]}"
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped if text.isascii() else f"{ISOLATE}{escaped}{POP}"


def shown_all(names: Sequence[str], limit: int = LIMIT) -> list[str]:
    """The names, each its own: where cutting made two alike, they carry their place, counted from 1."""
    cut = [shown(name, limit) for name in names]
    return [f"{text} ({place})" if cut.count(text) > 1 else text for place, text in enumerate(cut, start=1)]
