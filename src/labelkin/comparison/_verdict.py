"""The result of a comparison as text, and the sentences that verdicts on cost and on accuracy share."""

from collections.abc import Sequence
from typing import NamedTuple

from labelkin._checks import counted
from labelkin.comparison._statistics import better_by_chance

MANY = 5  # with fewer objectives, the number that looks better by chance rounds to 0


class Verdict(NamedTuple):
    """The result of a comparison as text. `str` gives the first sentence.

    Args:
        kind: "winner", "tie", "behind", "one seed", "no reference" or "nothing"; "model" on the page of one model.
        winner: The objective to use; None if there is none.
        advice: What to do, in a few words.
        sentence: The result, without a period.
        evidence: The interval, the number of seeds and the size of the test set.
        details: Further sentences.

    Example:
        >>> from labelkin.comparison import Verdict
        >>> str(Verdict("winner", "a", "Use a", "Decisions by a cost 9.0 % less", "n = 5 seeds"))
        'Decisions by a cost 9.0 % less (n = 5 seeds).'
    """

    kind: str
    winner: str | None
    advice: str
    sentence: str
    evidence: str = ""
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.sentence} ({self.evidence})." if self.evidence else f"{self.sentence}."


def count_sentence(total: int, better: Sequence[str], worse: Sequence[str], more: str, less: str) -> str:
    """Return how many of several objectives are better and worse, with their names.

    Return an empty string for one objective, and if none is better or worse, which the verdict itself says.
    """
    if total == 1 or not (better or worse):
        return ""
    if not better:
        return f"Of {counted(total, 'objective')}, {_shown(worse, less)}."
    others = _shown(worse, less) if worse else f"none is shown to {less}"
    by_chance = f" By chance alone, about {better_by_chance(total)} would look better." if total >= MANY else ""
    return f"Of {counted(total, 'objective')}, {_shown(better, more)} and {others}.{by_chance}"


def _shown(names: Sequence[str], how: str) -> str:
    return f"{len(names)} {'is' if len(names) == 1 else 'are'} shown to {how} ({', '.join(names)})"


def settle_advice(open_rows: Sequence[tuple[str, int, int | None, int | None]], *, by_sample: bool) -> str:
    """Say how many seeds or test samples would show the difference that the verdict names.

    Args:
        open_rows: The label, the number of seeds, and the seeds and test samples to settle it, for each objective whose
            difference is not shown; the one that the verdict names is the first.
        by_sample: Whether the outcomes on each test sample are known.
    """
    if not open_rows:
        return ""
    label, runs, seeds, samples = open_rows[0]
    if seeds is not None:
        if seeds <= runs:
            return ""
        return f"About {counted(seeds, 'seed')} would show the difference of {label} if it is this large."
    if samples is None:
        if not by_sample:
            return ""
        return f"Neither more seeds nor more test data alone would show a difference like that of {label}; use both."
    return (
        f"More seeds would not show the difference of {label}; more test data is what is needed: about "
        f"{counted(_rounded_up(samples), 'test sample')} with {counted(runs, 'seed')} if it is this large."
    )


def _rounded_up(count: int) -> int:
    """Return a count rounded up to two digits, because it is an estimate."""
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // unit) * unit


def signed(value: float, digits: int = 2) -> str:
    """Return a number with its sign: a minus sign instead of a hyphen, and none before a zero."""
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.2f} %"
