"""Find labels, scores and names in predictions; nothing is guessed."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, listed, near
from labelkin.data import TARGET_KEYS

SHOWN = 5


def label_texts(values: Iterable[Any], *, what: str, places: Sequence[str]) -> list[str]:
    """Each label as text: whole numbers without a fraction, text without blanks around it; a missing one is refused."""
    return [_text(value, f"{what} in {place}") for value, place in zip(values, places, strict=True)]


def class_places(labels: Sequence[str], classes: Sequence[str], *, what: str) -> Tensor:
    """(n,) positions. Labels are class names where all of them are; else positions from 0 where all are whole numbers."""
    distinct = set(labels)
    place = {name: k for k, name in enumerate(classes)}
    if not distinct <= place.keys():
        if not all(label.isdecimal() for label in distinct):
            unknown = sorted(distinct - place.keys())
            raise InputError(
                f"{what}: {len(unknown)} of its labels are not among the {len(classes)} classes: "
                f"{with_near(unknown, classes)}; expected names ({listed(list(classes), 3)}) or positions from 0."
            )
        outside = sorted({int(label) for label in distinct if int(label) >= len(classes)})
        if outside:
            raise InputError(
                f"{what}: {listed(outside)} is not among the classes; expected their names ({listed(list(classes), 3)}) or "
                f"positions from 0 to {len(classes) - 1}."
            )
        place = {label: int(label) for label in distinct}
    return torch.tensor([place[label] for label in labels], dtype=torch.int64)


def with_near(unknown: Sequence[str], known: Sequence[str]) -> str:
    """`'kat' (near 'cat'), 'xyz' and 3 more`."""
    shown = [f"{name!r}{_near(name, known)}" for name in unknown[:SHOWN]]
    more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
    return ", ".join(shown) + more


def _near(name: str, known: Sequence[str]) -> str:
    matches = get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f" (near {', '.join(repr(match) for match in matches)})" if matches else ""


def _text(value: Any, where: str) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None else str(value).strip()
    if not text or isinstance(value, float):
        raise InputError(f"{where}: expected a class, by name or as a whole number, got {value!r}.")
    return text


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
    found = [name for name in TARGET_KEYS if name in names]
    if len(found) == 1:
        return found[0]
    seen = f"has {listed(found)}" if found else f"has none of {listed(list(TARGET_KEYS))}, only {listed(list(names))}"
    raise InputError(f"target: {source} {seen}; name the one with the true class (--target).{_nearest(found, names)}")


def named(argument: str, name: str, names: Sequence[str], source: str) -> str:
    """`name`, which must be there."""
    if name not in names:
        raise InputError(f"{argument}: {source} has no {name!r}, only {listed(list(names))}.{near(name, names)}")
    return name


def _nearest(found: Sequence[str], names: Sequence[str]) -> str:
    hints = [near(name, names) for name in ("target", "label")]
    return "" if found else next((hint for hint in hints if hint), "")
