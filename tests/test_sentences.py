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


# Rooms whose errors and warnings reach the command line. Files that Python writes are described by the call that writes them.
SHOWN = (
    "audit",
    "cli",
    "comparison",
    "data",
    "models",
    "report",
    "runs",
    "serve",
    "structure",
    "training",
    "translate",
)
_ARGUMENT = re.compile(r"(?<![\w.&{])[a-z_]{2,}=(?!\w*VALUE)")
_OF_NUMPY = re.compile(r"numpy\.savez\([^)]*\)")


def spoken_as_python(source: str) -> Iterator[str]:
    """Yield each message that names an argument as in a call, without saying that this is for Python."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("InputError", "warnings.warn") and node.args:
            told = "".join(
                str(part.value)
                for part in ast.walk(node.args[0])
                if isinstance(part, ast.Constant) and type(part.value) is str
            )
            if "in Python" not in told and "In Python" not in told and _ARGUMENT.search(_OF_NUMPY.sub("", told)):
                yield told


@pytest.mark.parametrize("room", SHOWN)
def test_messages_of_commands_do_not_speak_python(room: str):
    found = {
        path.name: list(spoken_as_python(path.read_text(encoding="utf-8"))) for path in (PACKAGE / room).rglob("*.py")
    }
    assert {name: told for name, told in found.items() if told} == {}


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("InputError('pass pretrained=False')", True),
        ("InputError(f'{path}: another name with root=')", True),
        ("warnings.warn('leave them out (unseen=True)')", True),
        ("InputError('name another with --label (label= in Python)')", False),
        ("InputError(f'expected label-embedding.tau=3, got {text!r}')", False),
    ],
)
def test_an_argument_in_a_message_is_seen(code: str, wrong: bool):
    assert bool(list(spoken_as_python(code))) is wrong
