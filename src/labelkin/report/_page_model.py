"""The content of a page as named tuples, without HTML."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from labelkin.comparison import Verdict

NARROW = 30  # classes up to which a class-by-class figure fits half the width of the page


class Table(NamedTuple):
    """Columns of text and numbers; None where a number is undefined."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Panel(NamedTuple):
    """A figure with its title, a note on how to read it, and its numbers.

    Attributes:
        key: The panel's name in the page's scripts.
        title: The title.
        note: How to read the figure.
        figures: The views of the figure, by name; empty if there is nothing to draw.
        table: The numbers of the figure.
        missing: Why there is nothing to draw.
        wide: Whether the panel takes the whole width.
        views: What the views differ in.
    """

    key: str
    title: str
    note: str
    figures: Mapping[str, Any] = {}
    table: Table | None = None
    missing: str = ""
    wide: bool = False
    views: str = ""


class Example(NamedTuple):
    """A confusion with images as data URIs."""

    true: str
    predicted: str
    times: int
    distance: float
    cost: float
    images: tuple[str, ...]


class Listing(NamedTuple):
    """A table with a title and a note."""

    title: str
    note: str
    table: Table
    numbers: bool = False  # whether all columns but the first are numbers
    wide: bool = True


class Costliest(NamedTuple):
    """The costliest confusions, with a title and a note."""

    title: str
    note: str
    examples: tuple[Example, ...]
    unit: str = "distance"  # what one confusion costs; empty if each costs 1
    wide: bool = False


class Chapter(NamedTuple):
    """A section of a page with a heading.

    Attributes:
        key: The section's name in links.
        short: Its name in the navigation.
        title: The heading.
        parts: What it shows, in this order.
    """

    key: str
    short: str
    title: str
    parts: tuple[Panel | Listing | Costliest, ...]


class Subject(NamedTuple):
    """The details of one model."""

    label: str
    facts: tuple[str, ...]
    learned: tuple[Panel, ...]
    nearest: Listing | None
    mistakes: tuple[Panel, ...]
    costliest: Costliest
    decisions: Listing | None


class Cell(NamedTuple):
    """A cell of the leaderboard."""

    text: str
    spread: str = ""
    value: float | None = None  # the sort key; None is sorted last
    best: bool = False
    interval: tuple[float, float, float] | None = None  # low, middle and high, as shares of the column's width
    tone: str = ""  # "better" or "worse"


class Line(NamedTuple):
    """A row of the leaderboard."""

    label: str
    tags: tuple[str, ...]
    cells: tuple[Cell, ...]
    subject: int | None  # position of its details in `Page.subjects`


class Leaderboard(NamedTuple):
    """The table of objectives."""

    columns: tuple[tuple[str, bool], ...]  # title, and whether more is better
    lines: list[Line]
    zero: float  # position of a difference of 0, as a share of the column's width
    notes: tuple[str, ...]


class Fold(NamedTuple):
    """A text with a title in the last section of the page."""

    title: str
    text: str
    is_code: bool = False


class Page(NamedTuple):
    """The whole page; the page of one model has no leaderboard, and the page of an audit has chapters instead of subjects."""

    title: str
    context: tuple[str, ...]  # short facts above the sentence
    verdict: Verdict
    problem: str = ""  # what the comparison is about, above the sentence
    also: tuple[str, ...] = ()  # sentences below the first one that are as important
    steps: str = ""  # commands that do what the page advises
    leaderboard: Leaderboard | None = None
    overview: tuple[Panel, ...] = ()
    chapters: tuple[Chapter, ...] = ()
    subjects: tuple[Subject, ...] = ()
    chosen: int = 0  # position of the subject to show first
    missing: tuple[str, ...] = ()
    sections: tuple[Fold, ...] = ()  # provenance, at the end of the page
