"""What a file or a set of arrays holds, and under which names: found or asked for, never guessed."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError, check_choice, listed, near
from labelkin.data.arrays import TARGETS

Kind = Literal["logits", "probs", "labels"]
KINDS: tuple[Kind, ...] = ("logits", "probs", "labels")
PREDICTED = "predicted"
SAYS: dict[str, Kind] = {"logits": "logits", "probs": "probs", PREDICTED: "labels"}  # names that say what they hold
Floats = npt.NDArray[np.float64]


class Fields(NamedTuple):
    """The names of columns or arrays, where they are not the usual ones.

    `columns` are those with a number for each class: their names, or `"p_*"` for all that begin so, the rest of each
    name being the class's.
    """

    target: str | None = None
    predicted: str | None = None
    scores: str | None = None
    columns: Sequence[str] | str | None = None


class Raw(NamedTuple):
    """Labels as text, one a sample, and `scores` (n, K) or predicted labels; `names` of the classes where they are known."""

    kind: Kind
    target: list[str]
    scores: Floats | None
    predicted: list[str] | None
    names: tuple[str, ...] | None
    places: list[str]  # what each sample is called: "line 7", "sample 6"


def find_kind(kind: str | None, names: Sequence[str], source: str) -> Kind:
    """The kind that the user gave, else the one that a name says."""
    if kind is not None:
        check_choice("kind", kind, KINDS)
        return next(known for known in KINDS if known == kind)
    said = [name for name in SAYS if name in names]
    if len(said) == 1:
        return SAYS[said[0]]
    found = f"it has {listed(said)}" if said else f"none of {listed(list(SAYS))} is there to say it"
    raise InputError(f"kind: say whether {source} is to be read as logits, probs or labels (--kind); {found}.")


def find_target(chosen: str | None, names: Sequence[str], source: str) -> str:
    if chosen is not None:
        return named("target", chosen, names, source)
    found = [name for name in TARGETS if name in names]
    if len(found) == 1:
        return found[0]
    seen = f"has {listed(found)}" if found else f"has none of {listed(list(TARGETS))}, only {listed(list(names))}"
    raise InputError(f"target: {source} {seen}; name the one with the true class (--target).{_nearest(found, names)}")


def named(argument: str, name: str, names: Sequence[str], source: str) -> str:
    """`name`, which must be there."""
    if name not in names:
        raise InputError(f"{argument}: {source} has no {name!r}, only {listed(list(names))}.{near(name, names)}")
    return name


def _nearest(found: Sequence[str], names: Sequence[str]) -> str:
    hints = [near(name, names) for name in ("target", "label")]
    return "" if found else next((hint for hint in hints if hint), "")
