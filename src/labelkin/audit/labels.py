"""Labels as they come in files, and their places among the classes."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, listed

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
