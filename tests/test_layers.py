"""The layout of the package: imports go down, rooms have one door, internals are private."""

import ast
import importlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

import labelkin

PACKAGE = Path(labelkin.__file__).parent
LINES = [  # from the top; rooms on one line don't import each other
    {"__main__"},
    {"cli"},
    {"report"},
    {"papers"},
    {"comparison", "audit", "translate", "bench", "doors", "serve"},
    {"runs"},
    {"training", "analysis"},
    {"objectives", "metrics", "decide", "models", "data"},
    {"relations"},
    {"functional"},
    {"structure"},
    {"_arrays", "_files", "_numpy_files", "_extras", "_sparse_rows"},
    {"_checks", "_lazy", "_version"},
]
LEVEL = {room: level for level, line in enumerate(LINES) for room in line}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())
PUBLIC_SUBPACKAGES = {"report/figures", "doors/lightning", "doors/transformers"}  # documented doors of their own
LONGEST = 350
BELOW_TESTS = Path(__file__).parent


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@lru_cache(maxsize=4)  # the functions below look at one file after another
def nodes(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of the syntax tree of a file."""
    return tuple(ast.walk(ast.parse(source)))


def imported_modules(source: str) -> Iterator[str]:
    """Yield the modules of labelkin that a file imports, wherever the import stands, type checking included."""
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "labelkin")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the package in full"
            if node.module == "labelkin":
                yield from (f"labelkin.{alias.name}" for alias in node.names)
            elif node.module and node.module.startswith("labelkin."):
                yield node.module


def wrong_arrows(room: str, source: str) -> list[str]:
    """Return the rooms that a file in `room` imports and must not."""
    allowed = {room} | {other for other, level in LEVEL.items() if level > LEVEL[room]}
    rooms = [[*name.split("."), ""][1] for name in imported_modules(source)]
    return [other for other in rooms if other not in allowed]


def past_the_door(room: str, source: str) -> list[str]:
    """Return what a file imports from other rooms past their `__init__`: their modules, or private names."""
    modules = [name for name in imported_modules(source) if name.count(".") > 1 and name.split(".")[1] != room]
    for node in nodes(source):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.count(".") == 1:
            package, other = node.module.split(".")
            if package == "labelkin" and other in ROOMS and other != room:
                modules += [f"{node.module}.{alias.name}" for alias in node.names if alias.name.startswith("_")]
    return modules


def is_internal(path: str) -> bool:
    """Tell whether a path inside a room is a door, runnable, or private."""
    *folders, name = path.split("/")
    private = name in ("__init__.py", "__main__.py") or name.startswith("_") or any(f.startswith("_") for f in folders)
    public_folder = [f for f in folders[1:] if not f.startswith("_")] and "/".join(folders) not in PUBLIC_SUBPACKAGES
    return private and not public_folder


def exports(door: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return name -> submodule as a lazy door declares it for type checkers, and as it resolves it at run time."""
    tree = ast.parse(door.read_text(encoding="utf-8"))
    declared: dict[str, str] = {}
    loaded: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            prefix = ".".join(["labelkin", *door.parent.relative_to(PACKAGE).parts, ""])
            for inner in node.body:
                assert isinstance(inner, ast.ImportFrom)
                assert inner.module
                for alias in inner.names:
                    declared[alias.asname or alias.name] = inner.module.removeprefix(prefix)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Name) and call.func.id == "lazy_exports":
                for part in [call.args[1], *(k.value for k in call.keywords if k.arg == "internal")]:
                    for module, names in ast.literal_eval(part).items():
                        loaded.update(dict.fromkeys(names, module))
    return declared, loaded


def test_every_room_has_its_place():
    assert {room_of(path) for path in FILES} <= set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_keeps_to_the_layout(path: Path):
    source = path.read_text(encoding="utf-8")
    inside = path.relative_to(PACKAGE).as_posix()
    assert wrong_arrows(room_of(path), source) == []
    assert past_the_door(room_of(path), source) == []
    assert "/" not in inside or is_internal(inside)
    assert len(source.splitlines()) <= LONGEST


@pytest.mark.parametrize("room", [*ROOMS, *sorted(PUBLIC_SUBPACKAGES)])
def test_a_lazy_door_says_the_same_to_type_checkers_and_at_run_time(room: str):
    declared, loaded = exports(PACKAGE / room / "__init__.py")
    if loaded:
        assert declared == loaded
    if room == "doors/lightning":
        pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
    module = importlib.import_module(f"labelkin.{room.replace('/', '.')}")
    for name in [*loaded, *getattr(module, "__all__", [])]:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("room", ROOMS)
def test_the_tests_of_a_room_have_its_name(room: str):
    assert list((BELOW_TESTS / room).glob("test_*.py"))


@pytest.mark.parametrize(
    ("room", "line", "wrong"),
    [
        ("functional", "from labelkin.relations import ordinal", ["relations"]),
        ("objectives", "from labelkin import metrics", ["metrics"]),
        ("data", "import labelkin.models", ["models"]),
        ("objectives", "import labelkin", [""]),
        ("structure", "def f():\n    from labelkin.functional import naa_distance", ["functional"]),
        ("_checks", "from labelkin._files import write_text", ["_files"]),
        ("runs", "from labelkin.comparison import Plan", ["comparison"]),
        ("audit", "if TYPE_CHECKING:\n    from labelkin.comparison import Plan", ["comparison"]),
        ("objectives", "from labelkin.functional import cross_entropy\nfrom labelkin import relations", []),
        ("cli", "from labelkin import runs, _checks", []),
    ],
)
def test_a_wrong_arrow_is_seen(room: str, line: str, wrong: list[str]):
    assert wrong_arrows(room, line) == wrong


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("from labelkin.runs._spec import RunSpec", ["labelkin.runs._spec"]),
        ("import labelkin.runs._spec", ["labelkin.runs._spec"]),
        ("from labelkin.functional import _kernels as kernels", ["labelkin.functional._kernels"]),
        ("from labelkin.runs import RunSpec", []),
        ("from labelkin.cli._show import say", []),
    ],
)
def test_an_import_past_the_door_is_seen(line: str, wrong: list[str]):
    assert past_the_door("cli", line) == wrong


@pytest.mark.parametrize(
    ("path", "internal"),
    [
        ("runs/__init__.py", True),
        ("runs/_spec.py", True),
        ("runs/_engines/ray.py", True),
        ("report/figures/_theme.py", True),
        ("papers/__main__.py", True),
        ("runs/spec.py", False),
        ("runs/engines/_ray.py", False),
        ("report/figures/theme.py", False),
    ],
)
def test_a_public_file_is_seen(path: str, internal: bool):
    assert is_internal(path) is internal


BROAD = {  # files that may catch any error, and why
    "cli/_errors.py": "the top level of the commands",
    "runs/_engines/fleet.py": "as attempt.py, for runs that are trained together",
    "runs/_engines/attempt.py": "the top level of a worker: the error of one run goes to its error.txt, and the others go on",
}


def broad_handlers(source: str) -> list[int]:
    """Return the lines that catch any error and don't raise it again."""
    return [
        node.lineno
        for node in nodes(source)
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and not _raises_again(node)
    ]


def _is_broad(caught: ast.expr | None) -> bool:
    parts = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(
        part is None or (isinstance(part, ast.Name) and part.id in ("Exception", "BaseException")) for part in parts
    )


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_bug_is_not_taken_for_bad_input(path: Path):
    if path.relative_to(PACKAGE).as_posix() not in BROAD:
        assert broad_handlers(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("handler", "broad"),
    [
        ("except:\n    pass", True),
        ("except Exception:\n    pass", True),
        ("except (OSError, Exception) as error:\n    print(error)", True),
        ("except BaseException as error:\n    raise ValueError from error", True),
        ("except BaseException:\n    print()\n    raise", False),
        ("except OSError:\n    pass", False),
    ],
)
def test_a_broad_except_is_seen(handler: str, broad: bool):
    assert bool(broad_handlers(f"try:\n    pass\n{handler}\n")) is broad
