"""What a page is made of, as plain named tuples: whoever fills them gets a page."""

from collections.abc import Mapping
from typing import Any, NamedTuple

NARROW = 30  # classes up to which a figure of each with each needs only half the page's width


class Table(NamedTuple):
    """Text and numbers; a number may be None where it is undefined."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Panel(NamedTuple):
    """A figure with its name, a sentence on how to read it, and the table behind it.

    Where there is nothing to draw, `figures` is empty and `missing` says why. Several figures are views of the same
    thing, by the name of the view.
    """

    key: str
    title: str
    note: str
    figures: Mapping[str, Any] = {}
    table: Table | None = None
    missing: str = ""
    wide: bool = False
    views: str = ""  # what the views differ in


class Example(NamedTuple):
    """A confusion with images of it, as data URIs."""

    true: str
    predicted: str
    times: int
    distance: float
    cost: float
    images: tuple[str, ...]


class Listing(NamedTuple):
    """A table that is shown as it stands."""

    title: str
    note: str
    table: Table
    numbers: bool = False  # whether all but the first column are numbers


class Subject(NamedTuple):
    """One model looked into."""

    label: str
    facts: tuple[str, ...]
    learned: tuple[Panel, ...]
    nearest: Listing | None
    mistakes: tuple[Panel, ...]
    examples: tuple[Example, ...]
    examples_note: str
    decisions: Listing | None


class Verdict(NamedTuple):
    kind: str  # "winner", "tie", "behind", "one seed", "no reference", "nothing"
    winner: str | None
    advice: str  # in three words
    sentence: str
    evidence: str = ""  # the rest of the sentence: interval and n
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.sentence} ({self.evidence})." if self.evidence else f"{self.sentence}."


class Cell(NamedTuple):
    text: str
    spread: str = ""
    value: float | None = None  # what is sorted by; None comes last
    best: bool = False
    interval: tuple[float, float, float] | None = None  # low, middle and high as shares of the column's width
    tone: str = ""  # "better" or "worse"


class Line(NamedTuple):
    """A row of the leaderboard."""

    label: str
    tags: tuple[str, ...]
    cells: tuple[Cell, ...]
    subject: int | None  # the place of the subject to look into


class Leaderboard(NamedTuple):
    columns: tuple[tuple[str, bool], ...]  # with whether more is better
    lines: list[Line]
    zero: float  # where no difference lies, as a share of the column's width
    notes: tuple[str, ...]


class Fold(NamedTuple):
    """How it was made: titled texts."""

    title: str
    text: str
    is_code: bool = False


class Page(NamedTuple):
    """Everything on a page; a page on one model has no leaderboard."""

    title: str
    context: tuple[str, ...]  # short facts above the sentence
    verdict: Verdict
    leaderboard: Leaderboard | None = None
    overview: tuple[Panel, ...] = ()
    subjects: tuple[Subject, ...] = ()
    chosen: int = 0
    missing: tuple[str, ...] = ()
    made: tuple[Fold, ...] = ()
