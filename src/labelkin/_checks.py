"""Checks of arguments. Every error names the argument, what was expected, what was given and what to do."""

import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from math import isfinite
from numbers import Integral, Real
from typing import Any, TypeVar

T = TypeVar("T")


class InputError(ValueError):
    """An argument or a file that cannot be used; the message gives the reason and a remedy."""


# What other libraries raise for files, names and values that they cannot use. An error of any other kind is a bug.
LIBRARY_ERRORS: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


def brief(value: object, most: int = 80) -> str:
    """Return a value for an error message: in one line, and cut after `most` characters.

    >>> brief([1, 2, 3], most=4)
    '[1, ...'
    """
    text = re.sub(r"\s*\n\s*", " ", repr(value))  # arrays have lines; those of a text are escaped
    return text if len(text) <= most else f"{text[:most]}..."


def near(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return a suggestion of similar names for an error message, or an empty string if there are none.

    Names are similar if `difflib` rates them at least `cutoff`, from 0 to 1.

    >>> near("cta", ["cat", "dog"])
    " Did you mean 'cat'?"
    """
    matches = get_close_matches(name, list(known), n=3, cutoff=cutoff)
    return f" Did you mean {', '.join(repr(m) for m in matches)}?" if matches else ""


def listed(names: Sequence[object], limit: int = 5) -> str:
    """Return the first `limit` names for an error message, and how many more there are.

    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(brief(name, most=300) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def plain(value: Any) -> Any:
    """Return a scalar of numpy or torch as a Python number; anything else unchanged."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def plain_names(names: Any) -> Any:
    """Return a one-dimensional array, index or series as a list; anything else unchanged."""
    return names.tolist() if getattr(names, "ndim", None) == 1 and hasattr(names, "tolist") else names


def check_choice(argument: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not in `choices`."""
    if value not in choices:
        options = ", ".join(repr(c) for c in choices)
        raise InputError(f"{argument}: expected one of {options}, got {brief(value)}.{near(str(value), choices)}")


def renamed(new: str, value: T, old: str, old_value: T | None, *, stacklevel: int = 3) -> T:
    """Return the value of a renamed keyword, and warn if the caller used its old name.

    Args:
        new: Name of the keyword.
        value: What was passed under that name.
        old: Former name of the keyword.
        old_value: What was passed under the former name; None if nothing was.
        stacklevel: As in `warnings.warn`; 3 is the caller of the function that calls this one.
    """
    if old_value is None:
        return value
    warnings.warn(f"{old}= is deprecated; use {new}= instead.", DeprecationWarning, stacklevel=stacklevel)
    return old_value


def check_number(
    argument: str, value: Any, *, low: float | None = None, high: float | None = None, open_low: bool = False
) -> None:
    """Refuse a value that is not a finite number in [low, high], or in (low, high] with `open_low`."""
    bounds = f"{'(' if open_low else '['}{'-inf' if low is None else low}, {'inf' if high is None else high}]"
    if not is_finite(value):
        raise InputError(f"{argument}: expected a number in {bounds}, got {brief(value)}.")
    number = float(value)
    too_low = low is not None and (number <= low if open_low else number < low)
    if too_low or (high is not None and number > high):
        raise InputError(f"{argument}: expected a number in {bounds}, got {brief(value)}.")


def is_finite(value: Any) -> bool:
    """Return whether a value is a number, and no truth value, that a float can hold."""
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and isfinite(value)
    except OverflowError:  # a whole number of more than 308 digits
        return False


def check_count(argument: str, value: Any, *, least: int = 1) -> None:
    """Refuse a value that is not a whole number, of Python or numpy, of at least `least`."""
    if type(value) is int and value >= least:
        return  # thousands of runs are read, and an abstract class takes longer
    if not is_whole(value) or int(value) < least:
        raise InputError(f"{argument}: expected a whole number of at least {least}, got {brief(value)}.")


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number of Python or numpy, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_names(argument: str, names: Sequence[str], *, least: int = 1) -> None:
    """Refuse a value that is not a sequence of distinct, non-empty strings; `plain_names` converts arrays first."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InputError(f"{argument}: expected a list of names, got {brief(names)}.")
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError(f"{argument}: expected non-empty strings, got {brief(name)}.")
    if len(names) < least:
        raise InputError(f"{argument}: expected at least {counted(least, 'name')}, got {len(names)}.")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(n for n in names if n in seen or seen.add(n))  # type: ignore[func-returns-value]
        raise InputError(f"{argument}: duplicate name {twice!r}; each name may appear only once.")


@contextmanager
def refuse_damaged(source: object, remedy: str = "train the run again") -> Iterator[None]:
    """Raise `InputError` where the content of a file that labelkin wrote has another form than what it wrote.

    Args:
        source: The file, or what is in it, for the message.
        remedy: What to do.
    """
    try:
        yield
    except InputError as error:
        if str(source) in str(error):
            raise
        raise InputError(f"{source}: {one_line(error)}") from error
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        reason = one_line(error)
        short = reason if len(reason) < 200 else f"{reason[:200]}..."
        raise InputError(f"{source}: labelkin did not write this, or it is damaged ({short}); {remedy}.") from error


def one_line(error: BaseException) -> str:
    """Return the message of another library's error in one line, or the name of its type if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun in the singular or plural.

    >>> counted(1, "sample"), counted(1297, "sample"), counted(0, "class", "classes")
    ('1 sample', '1,297 samples', '0 classes')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


# Control characters but tab and line feed, and the marks that reverse the direction of text.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Return text in which a terminal obeys nothing: control characters are shown as in JSON.

    >>> visible("cat" + chr(27) + "[2J")
    'cat\\\\u001b[2J'
    """
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def reads_as_number(text: str) -> bool:
    """Return whether Python's `float` accepts a text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def print_note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a user's warning as one note without the line of code; a `warnings.showwarning` for commands."""
    if issubclass(category, UserWarning):
        print(f"Note: {visible(str(message))}", file=sys.stderr)


def with_suggestions(unknown: Sequence[str], known: Sequence[str], limit: int = 5) -> str:
    """Return unknown names with similar known ones: `'kat' (similar: 'cat'), 'xyz' and 3 more`."""
    shown = [f"{name!r}{_similar(name, known)}" for name in unknown[:limit]]
    more = f" and {len(unknown) - limit} more" if len(unknown) > limit else ""
    return ", ".join(shown) + more


def _similar(name: str, known: Sequence[str]) -> str:
    matches = get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f" (similar: {', '.join(repr(match) for match in matches)})" if matches else ""
