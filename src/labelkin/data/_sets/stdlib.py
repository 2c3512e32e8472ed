"""The dataset `stdlib`: which module of Python's standard library is this function from?

The texts are the functions of the running interpreter's standard library, the classes its modules, and the tree has the
chapters of the library reference between them and the root.
"""

import ast
import json
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError, counted
from labelkin._files import write_bytes
from labelkin.data._dataset import RawDataset
from labelkin.data._encoders.cache import cache_root
from labelkin.data._readers.texts import TextRow, text_set
from labelkin.data._sets.distinct_texts import TESTED, split_texts
from labelkin.structure import Taxonomy

CHAPTERS: dict[str, str] = {
    "text processing": "string re difflib textwrap stringprep rlcompleter",
    "binary data": "struct codecs",
    "data types": """datetime zoneinfo calendar collections collections.abc heapq bisect weakref types copy pprint reprlib enum
        graphlib""",
    "numeric and mathematical": "numbers decimal fractions random statistics",
    "functional programming": "functools operator",
    "file and directory access": "pathlib os.path fileinput stat filecmp tempfile glob fnmatch linecache shutil",
    "data persistence": "pickle copyreg shelve dbm sqlite3",
    "data compression and archiving": "gzip bz2 lzma zipfile tarfile compression",
    "file formats": "csv configparser tomllib netrc plistlib",
    "cryptography": "hashlib hmac secrets",
    "operating system": "os io time argparse getopt logging logging.config logging.handlers getpass curses platform ctypes",
    "concurrent execution": """threading multiprocessing multiprocessing.shared_memory concurrent.futures
        concurrent.interpreters subprocess sched queue""",
    "networking and interprocess communication": "asyncio socket ssl selectors signal",
    "internet data handling": "email json mailbox mimetypes base64 quopri",
    "structured markup": "html html.parser xml.etree.ElementTree xml.dom xml.dom.minidom xml.dom.pulldom xml.sax",
    "internet protocols": """webbrowser wsgiref urllib.request urllib.response urllib.parse urllib.error urllib.robotparser http
        http.client ftplib poplib imaplib smtplib uuid socketserver http.server http.cookies http.cookiejar xmlrpc.client
        xmlrpc.server ipaddress""",
    "multimedia": "wave colorsys",
    "internationalization": "gettext locale",
    "program frameworks": "turtle cmd shlex",
    "graphical interfaces with Tk": "tkinter tkinter.ttk tkinter.tix",
    "development tools": "typing pydoc doctest unittest unittest.mock lib2to3",
    "debugging and profiling": "bdb pdb profile cProfile pstats timeit trace tracemalloc",
    "packaging and distribution": "distutils ensurepip venv zipapp",
    "runtime services": """sys sysconfig warnings dataclasses contextlib abc traceback inspect annotationlib site __future__
        atexit""",
    "custom interpreters": "code codeop",
    "importing modules": "zipimport pkgutil modulefinder runpy importlib importlib.resources importlib.metadata",
    "language services": "ast symtable token tokenize tabnanny pyclbr py_compile compileall dis pickletools",
    "Unix services": "tty pty",
    "superseded": """aifc asynchat asyncore cgi cgitb chunk crypt imghdr imp mailcap nntplib optparse pipes smtpd sndhdr sunau
        telnetlib uu xdrlib""",
}
# Module of each chapter: name -> chapter.
MODULES = {module: chapter for chapter, modules in CHAPTERS.items() for module in modules.split()}
# Files that implement a module under another name.
IMPLEMENTED_BY = {
    "_collections_abc": "collections.abc",
    "_py_abc": "abc",
    "_pydatetime": "datetime",
    "_pydecimal": "decimal",
    "_pyio": "io",
    "_sitebuiltins": "site",
    "_strptime": "time",
    "_threading_local": "threading",
    "_weakrefset": "weakref",
    "genericpath": "os.path",
    "ntpath": "os.path",
    "opcode": "dis",
    "posixpath": "os.path",
    "xml.etree": "xml.etree.ElementTree",
}

NAME = "stdlib"
FEWEST, MOST = 20, 150  # different functions of a module: with fewer it is left out, and of more these many are kept
REVISION = 1  # raise it when the same files give other texts, so that the old cache is ignored
ROOT = "standard library"
TESTS = {"test", "tests"}


class Content(NamedTuple):
    """The rows of each split, and a digest that identifies them."""

    tables: dict[str, list[TextRow]]
    digest: str


def read_stdlib() -> RawDataset:
    """Read the functions of the standard library.

    - A text is the source of one function or method, as `ast.unparse` writes it: without docstrings, comments and formatting,
      and without any path. Functions inside functions are part of their text.
    - A class is a module with at least 20 different functions; of more than 150, the 150 with the smallest digests are kept.
    - A fifth of each module is the test split, chosen by the digests of the texts. Functions that are the same after this
      normalization are in the same split: copies in one module count once, and copies in several modules have the same digest.
    - Test packages, IDLE and the demos of turtle are left out.
    """
    tables = content().tables
    found = text_set(tables, source=NAME)
    pairs = [(ROOT, MODULES[name]) for name in found.classes] + [(MODULES[name], name) for name in found.classes]
    return found._replace(taxonomy=Taxonomy.from_edges(dict.fromkeys(pairs), classes=found.classes))


def stdlib_digest() -> str:
    """Return the digest of the set, which differs between versions of Python."""
    return content().digest


@lru_cache(maxsize=1)
def content() -> Content:
    """Return the rows of the set from the cache, or from the sources, which takes some seconds."""
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(source_files(root))
    cached = cache_root() / NAME / f"{_cache_key(files)}.json"
    try:
        text = cached.read_bytes()
        rows = [TextRow(*row) for row in json.loads(text)]
    except (OSError, ValueError, TypeError):  # missing or damaged
        rows = rows_of((module, file.read_bytes()) for file, module in files)
        text = json.dumps(rows).encode()
        with suppress(OSError):  # a cache that cannot be written costs time only
            cached.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(cached, text)
    tables: dict[str, list[TextRow]] = {"train": [], "test": []}
    for row in rows:
        tables[str(row.part)].append(row)
    if not tables["test"]:
        raise InputError(
            f"{NAME}: expected the sources of Python's standard library in {root}, got "
            f"{counted(len(files), 'file')}; use an interpreter "
            "that is installed with its .py files."
        )
    return Content(tables, sha256(text).hexdigest())


def source_files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files below the folder of a standard library that belong to a module of the table, with that module."""
    for top in {name.partition(".")[0] for name in (*MODULES, *IMPLEMENTED_BY)}:
        for file in (root / f"{top}.py", *(root / top).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            module = module_of(".".join(parts).removesuffix(".__init__"))
            if module is not None and TESTS.isdisjoint(parts) and file.is_file():
                yield file, module


def module_of(name: str) -> str | None:
    """Return the module of the table that a file belongs to: the longest name in it that `name` starts with."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        start = ".".join(parts[:length])
        if start in MODULES or start in IMPLEMENTED_BY:
            return IMPLEMENTED_BY.get(start, start)
    return None


def rows_of(sources: Iterable[tuple[str, bytes]]) -> list[TextRow]:
    """Return the rows of the set from (module, source) pairs in any order."""
    functions: dict[str, list[str]] = {}
    for module, source in sources:
        texts = (normalized(function) for function in outer_functions(ast.parse(source)))
        functions.setdefault(module, []).extend(texts)
    return split_texts(functions, fewest=FEWEST, most=MOST)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def outer_functions(node: ast.AST) -> Iterator[Function]:
    """Yield the functions and methods below a node that are not inside another function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from outer_functions(child)


def normalized(function: Function) -> str:
    """Return the source of a function without docstrings, comments and formatting. The tree is changed."""
    for node in ast.walk(function):
        if isinstance(node, Function | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(function)


def _cache_key(files: Iterable[tuple[Path, str]]) -> str:
    """Return a key that changes with the interpreter, the files and the way they are read."""
    found = sha256(repr((REVISION, sys.version, FEWEST, MOST, TESTED)).encode())
    for file, module in files:
        stat = file.stat()
        found.update(repr((str(file), module, stat.st_mtime_ns, stat.st_size)).encode())
    return found.hexdigest()[:16]
