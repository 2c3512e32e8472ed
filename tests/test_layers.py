"""Imports go one way: a room uses those below it, and rooms on one line don't know each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import labelkin

PACKAGE = Path(labelkin.__file__).parent
LINES = [  # from the top; what stands on one line does not import its neighbours
    {"__main__"},
    {"cli"},
    {"report"},
    {"experiments", "audit", "bench", "estimator"},
    {"training", "analysis"},
    {"objectives", "metrics", "decide", "models", "data"},
    {"relations"},
    {"functional"},
    {"structure"},
    {"_arrays", "_run_files"},
    {"_checks", "_files", "_extras", "_version"},
]
LEVEL = {room: level for level, line in enumerate(LINES) for room in line}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(source: str) -> Iterator[str]:
    """The rooms that a file names in import statements, wherever they stand, type checking included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the package in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "labelkin":
                yield rest.partition(".")[0]


def broken(room: str, source: str) -> list[str]:
    """The rooms that a file in `room` must not import and does."""
    allowed = {room} | {other for other, level in LEVEL.items() if level > LEVEL[room]}
    if room in LINES[-1]:
        allowed = {room}
    return [other for other in imported_rooms(source) if other not in allowed]


def test_every_room_has_its_place():
    assert {room_of(path) for path in FILES} <= set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path: Path):
    assert broken(room_of(path), path.read_text()) == []


@pytest.mark.parametrize(
    ("room", "line", "wrong"),
    [
        ("functional", "from labelkin.relations import ordinal", ["relations"]),
        ("objectives", "from labelkin import metrics", ["metrics"]),
        ("data", "import labelkin.models.tiny", ["models"]),
        ("objectives", "import labelkin", [""]),
        ("structure", "def f():\n    from labelkin.functional import naa", ["functional"]),
        ("_checks", "from labelkin._files import write_text", ["_files"]),
        ("_checks", "from labelkin._arrays import check_probs", ["_arrays"]),
        ("objectives", "from labelkin.functional import cross_entropy\nfrom labelkin import relations", []),
        ("cli", "from labelkin import experiments, _checks", []),
    ],
)
def test_the_line_can_be_crossed(room: str, line: str, wrong: list[str]):
    assert broken(room, line) == wrong
