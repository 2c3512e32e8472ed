"""Sentences with a number read right for 0, 1 and many: a counted noun goes through `counted`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import labelkin

PACKAGE = Path(labelkin.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
# Left out are nouns of which there is never one: trees and data have at least two classes, and nothing has one byte or pixel.
COUNTED = """
    answers batches calls cells changes channels children columns comparisons cores decisions dimensions entries epochs features
    figures files folders groups images jobs keys labels layers levels lines lists mistakes models names notes numbers
    objectives options pairs parameters parents processes questions rows runs samples scores seeds sentences sets settings
    splits tables texts threads times tokens translations trees values weights words workers
"""
_KIND = r"(?:different|finished|training|test|validation|calibration|held-out|other|more|further|new|class) "
_PLURAL = re.compile(rf" (?:{_KIND})?({'|'.join(COUNTED.split())})\b(?! the size)")
_OTHER = re.compile(
    r"[A-Z_]+|part|keep|named\[name\]|names\[node\]|each|int\(most\)"
)  # a constant above one, or no whole number


def uncounted(source: str) -> Iterator[str]:
    """Yield each place of an f-string at which a number stands before a noun in the plural."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            for value, after in zip(node.values, node.values[1:], strict=False):
                if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                    continue
                number, noun = ast.unparse(value.value), _PLURAL.match(str(after.value))
                if noun and not _OTHER.fullmatch(number) and not _is_text(value):
                    yield f"{{{number}}} {noun[1]}"


def _is_text(value: ast.FormattedValue) -> bool:
    """Return whether a value is no number: a name in quotes, a share in percent, or a text that another function makes."""
    made = value.value
    form = "" if value.format_spec is None else ast.unparse(value.format_spec)
    if value.conversion == ord("r") or "%" in form or isinstance(made, ast.JoinedStr | ast.IfExp):
        return True
    return isinstance(made, ast.Call) and not (
        isinstance(made.func, ast.Name) and made.func.id in ("len", "int", "sum")
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_number_before_a_noun_is_counted(path: Path):
    source = path.read_text(encoding="utf-8")
    assert list(uncounted(source)) == []
    assert re.findall(r" [a-z]+\(s\)[^`]", source) == []  # as in "1 file(s)"


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("f'Of {total} objectives'", True),
        ("f'{len(rows):,} training samples'", True),
        ("f'About {found.seeds} seeds'", True),
        ("f'Of {counted(total, \"objective\")}'", False),
        ("f'at least {LEAST} samples'", False),
        ("f'{share:.1%} of the samples'", False),
        ("f'{name!r} names a class'", False),
    ],
)
def test_a_noun_that_is_not_counted_is_seen(code: str, wrong: bool):
    assert bool(list(uncounted(code))) is wrong
