"""Names and labels in predictions: which array or column holds what, and the class position of each label."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, counted, listed, near, reads_as_number, with_suggestions
from labelkin.audit._columns import Column, ColumnWriter
from labelkin.data import TARGET_KEYS

if TYPE_CHECKING:
    from labelkin.audit._scores import Scores

Kind = Literal["logits", "probs", "labels"]
KINDS: tuple[Kind, ...] = ("logits", "probs", "labels")
PREDICTED = "predicted"
KIND_BY_NAME: dict[str, Kind] = {"logits": "logits", "probs": "probs", PREDICTED: "labels"}
WHOLE = re.compile(r"\d+(\.0*)?")
SHOWN = 5  # names listed in an error message
Floats = npt.NDArray[np.float64]


class Fields(NamedTuple):
    """The names of arrays or columns that differ from the default names.

    Attributes:
        target: The true classes.
        predicted: The predicted labels.
        scores: The array, or the column of lists, with the scores.
        columns: The columns with the scores of one class each: their names, or "p_*" for all columns that start with "p_",
            where the rest of the name is the class.
        ignored: Columns that are not scores.
        has_ignored: Whether an ignored column has to exist.
    """

    target: str | None = None
    predicted: str | None = None
    scores: str | None = None
    columns: Sequence[str] | str | None = None
    ignored: Sequence[str] = ()
    has_ignored: bool = True


class Labels(NamedTuple):
    """The label of each sample.

    Attributes:
        distinct: The different labels as text.
        places: (n,) the place of each sample's label among them.
    """

    distinct: tuple[str, ...]
    places: Column


class LabelWriter:
    """Collects labels part by part; see `label_texts`.

    Args:
        what: What the labels are, for error messages.
    """

    def __init__(self, what: str) -> None:
        self._what, self._known, self._places = what, dict[str, int](), ColumnWriter()
        self._read: dict[str, int] = {}  # the place of a label as it was read, such as " cat"

    def add(self, values: Iterable[Any], sample_names: Sequence[str]) -> None:
        """Add the labels of some samples."""
        self._places.add([self._place(value, at, sample_names) for at, value in enumerate(values)])

    def _place(self, value: Any, at: int, sample_names: Sequence[str]) -> int:
        if type(value) is str and value in self._read:
            return self._read[value]
        place = self._known.setdefault(_text(value, self._what, at, sample_names), len(self._known))
        if type(value) is str:
            self._read[value] = place
        return place

    def labels(self) -> Labels:
        """Return the labels that were added."""
        return Labels(tuple(self._known), self._places.column())


def without_fraction(labels: Labels, classes: Sequence[str] | None) -> Labels:
    """Return whole numbers written as 3.0, as pandas writes a column with gaps, as 3, unless they are class names."""
    if set(labels.distinct) <= set(classes or ()) or not all(WHOLE.fullmatch(label) for label in labels.distinct):
        return labels
    return labels._replace(distinct=tuple(label.partition(".")[0] for label in labels.distinct))


class Raw(NamedTuple):
    """Predictions before they are checked, with labels as text.

    Attributes:
        kind: "logits", "probs" or "labels".
        target: The true labels.
        scores: Logits or probabilities (n, K); None for predicted labels.
        predicted: The predicted labels; None for scores.
        names: The class names, if the source has them.
        sample_names: A name of each sample for error messages: "line 7" or "sample 6".
    """

    kind: Kind
    target: Labels
    scores: "Scores | None"
    predicted: Labels | None
    names: tuple[str, ...] | None
    sample_names: Sequence[str]


class SampleNames(Sequence[str]):
    """Names of samples such as "line 7", which are created when they are needed."""

    def __init__(self, word: str, numbers: Sequence[int] | Column | Tensor) -> None:
        self._word, self._numbers = word, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> "SampleNames": ...
    def __getitem__(self, at: int | slice) -> "str | SampleNames":
        if isinstance(at, slice):
            return SampleNames(self._word, self._numbers[at])
        return f"{self._word} {int(self._numbers[at])}"


def name_list(names: Sequence[str] | str) -> tuple[str, ...]:
    """Return the names of columns that an argument gives: one name or several."""
    return (names,) if isinstance(names, str) else tuple(names)


def find_kind(kind: str | None, names: Sequence[str], source: str, *, predicted: str | None = None) -> Kind:
    """Return the kind that the caller passed, or the one that follows from the name of an array or column.

    Naming the array or column of `predicted` labels says that the predictions are labels.
    """
    if kind is not None:
        check_choice("kind", kind, KINDS)
        return next(known for known in KINDS if known == kind)
    if predicted is not None:
        return "labels"
    telling = [name for name in KIND_BY_NAME if name in names]
    if len(telling) == 1:
        return KIND_BY_NAME[telling[0]]
    known = listed(list(KIND_BY_NAME))
    seen = f"it has several of the names {known}: {listed(telling)}" if telling else f"it has none of the names {known}"
    raise InputError(
        f"kind: {source} does not name the kind of its predictions; {seen}. Pass --kind logits, probs or labels."
    )


def find_target(chosen: str | None, names: Sequence[str], source: str) -> str:
    """Return the name of the array or column with the true classes."""
    if chosen is not None:
        return check_present("target", chosen, names, source)
    present = [name for name in TARGET_KEYS if name in names]
    if len(present) == 1:
        return present[0]
    if present:
        raise InputError(f"target: {source} has {listed(present)}; name the one with the true classes (--target).")
    hints = [near(name, names) for name in ("target", "label")]
    raise InputError(
        f"target: {source} has none of {listed(list(TARGET_KEYS))}, only {listed(list(names))}; name the one with the true "
        f"classes (--target).{next((hint for hint in hints if hint), '')}"
    )


def check_present(argument: str, name: str, names: Sequence[str], source: str) -> str:
    """Return `name` if the source has it; otherwise raise `InputError` with similar names."""
    if name not in names:
        similar = near(name, names)
        option = (
            "" if similar or argument not in ("predicted", "scores", "target") else f"; name another (--{argument})"
        )
        raise InputError(f"{argument}: {source} has no {name!r}, only {listed(list(names))}{option}.{similar}")
    return name


def label_texts(values: Iterable[Any], *, what: str, sample_names: Sequence[str]) -> list[str]:
    """Return each label as text; a missing label raises `InputError`.

    Whole numbers lose their fraction (3.0 becomes "3"), and text loses surrounding blanks.
    """
    return [_text(value, what, at, sample_names) for at, value in enumerate(values)]


def class_texts(values: Iterable[Any], *, source: str) -> tuple[str, ...]:
    """Return class names as text in the form of `label_texts`, so that labels of the same kind match them."""
    names = list(values)
    return tuple(label_texts(names, what=f"{source}: classes", sample_names=SampleNames("place", range(len(names)))))


def class_positions(labels: Labels, classes: Sequence[str], *, what: str) -> Column:
    """Return the class position of each label (n,).

    If all labels are class names, they are read as names. Otherwise they must all be whole numbers and are read as positions,
    counted from 0.
    """
    distinct = set(labels.distinct)
    position = {name: k for k, name in enumerate(classes)}
    if not distinct <= position.keys():
        expected = f"expected class names ({listed(list(classes), 3)}) or positions from 0 to {len(classes) - 1}"
        if not all(label.isdecimal() for label in distinct):
            unknown = sorted(distinct - position.keys())
            raise InputError(
                f"{what}: {counted(len(unknown), 'label')} {'is' if len(unknown) == 1 else 'are'} not among the "
                f"{len(classes)} classes: {with_suggestions(unknown, classes)}; {expected}."
            )
        outside = sorted({int(label) for label in distinct if int(label) >= len(classes)})
        if outside:
            raise InputError(f"{what}: {expected}, got {listed(outside)}.")
        position = {label: int(label) for label in distinct}
        _check_meaning(position, classes, what)
    of_label = torch.tensor([position[label] for label in labels.distinct])
    found = ColumnWriter()
    for places in labels.places.blocks():
        found.add(of_label[places].numpy())
    return found.column()


def _check_meaning(position: dict[str, int], classes: Sequence[str], what: str) -> None:
    """Refuse numbers that are positions, but also class names in another form, of other classes: 1 for "01" or "1.0"."""
    values = {float(name): k for k, name in enumerate(classes) if reads_as_number(name)}
    named = {label: values.get(float(label)) for label in position}
    if None not in named.values() and named != position:
        label = next(label for label in sorted(named) if named[label] != position[label])
        own, other = classes[named[label] or 0], classes[position[label]]
        raise InputError(
            f"{what}: {label!r} may be the class {own!r}, or the position of {other!r}; write the labels as the classes are "
            "written."
        )


def _text(value: Any, what: str, at: int, sample_names: Sequence[str]) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None else str(value).strip()
    if not text or isinstance(value, float):
        raise InputError(f"{what} in {sample_names[at]}: expected a class name or a whole number, got {value!r}.")
    return text
