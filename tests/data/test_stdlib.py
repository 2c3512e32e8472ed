"""The functions of Python's standard library: what is a text, a class and a side of the split, and how the set is known."""

import json
import sysconfig
from pathlib import Path
from random import Random

import pytest
import torch

from labelkin import InputError
from labelkin.data import fingerprint as fingerprint_of
from labelkin.data import load
from labelkin.data._encoders import encoder, restored
from labelkin.data._encoders.hashed import words_of, words_of_code
from labelkin.data._sets import stdlib
from labelkin.data._sets.stdlib import CHAPTERS, IMPLEMENTED_BY, MODULES


def module(name: str, count: int, *, shared: int = 0) -> str:
    """The source of a module: methods of its own, and some that every module has."""
    own = [f"    def {name}_{i}(self):\n        return {name!r} * {i}\n" for i in range(count)]
    common = [f"    def common_{i}(self):\n        return {i}\n" for i in range(shared)]
    return f'"""About {name}."""\nclass A:\n' + "".join(own + common)


@pytest.fixture
def library(tmp_path, monkeypatch) -> Path:
    """A small standard library, without a cache."""
    root = tmp_path / "lib"
    for path, source in {
        "argparse.py": module("argparse", 30, shared=30),
        "optparse.py": module("optparse", 40, shared=30),
        "json/__init__.py": module("json", 12),
        "json/decoder.py": module("decoder", 12),
        "json/tests/test_json.py": module("tested", 50),
        "test/test_os.py": module("test", 50),
        "getopt.py": module("getopt", 19),
        "_pydecimal.py": module("decimal", 200),
        "unheard_of.py": module("unheard_of", 50),
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(source, encoding="utf-8")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(root))
    monkeypatch.setenv("LABELKIN_CACHE", str(tmp_path / "cache"))
    stdlib.content.cache_clear()
    yield root
    stdlib.content.cache_clear()


def rows() -> list[stdlib.TextRow]:
    return [row for table in stdlib.content().tables.values() for row in table]


def test_classes_are_modules_of_twenty_functions_or_more_and_at_most_150_are_kept(library):
    counts = {name: sum(row.label == name for row in rows()) for name in {row.label for row in rows()}}
    assert counts == {"argparse": 60, "optparse": 70, "json": 24, "decimal": 150}


@pytest.mark.long
def test_the_tree_has_the_chapters_of_the_reference(library):
    data = load("stdlib")
    tree = data.taxonomy
    assert data.classes == tree.classes == ("argparse", "decimal", "json", "optparse")
    above = {name: tree.names[tree.parents[tree.node(name)]] for name in tree.names[1:]}
    assert above == {
        "argparse": "operating system",
        "decimal": "numeric and mathematical",
        "json": "internet data handling",
        "optparse": "superseded",
        "operating system": stdlib.ROOT,
        "numeric and mathematical": stdlib.ROOT,
        "internet data handling": stdlib.ROOT,
        "superseded": stdlib.ROOT,
    }


def test_a_fifth_of_each_module_is_tested_and_copies_are_on_one_side(library):
    found = rows()
    for name in ("argparse", "optparse", "json", "decimal"):
        own = [row for row in found if row.label == name]
        assert sum(row.part == "test" for row in own) == round(0.2 * len(own))
    sides = {text: {row.part for row in found if row.text == text} for text in {row.text for row in found}}
    assert all(len(parts) == 1 for parts in sides.values())
    copies = [text for text in sides if "common_" in text]
    assert len(copies) == 30
    assert {part for text in copies for part in sides[text]} == {"train", "test"}


def test_the_order_of_the_files_does_not_matter(library):
    files = [(name, file.read_bytes()) for file, name in stdlib.source_files(library)]
    Random(0).shuffle(files)
    assert stdlib.rows_of(files) == stdlib.rows_of(files[::-1]) == stdlib.rows_of(sorted(files))


def test_a_new_module_leaves_the_sides_of_functions_of_one_module_alone(library):
    before = {row.text: row.part for row in rows() if row.label == "json"}
    (library / "getopt.py").write_text(module("getopt", 30), encoding="utf-8")
    stdlib.content.cache_clear()
    assert {row.text: row.part for row in rows() if row.label == "json"} == before


SOURCE = '''
import os
if os.name == "nt":
    async def a(x):  # a comment
        """A docstring."""
else:
    def b(x, *, y = (1)):
        "Another."
        def inside():
            """Inside."""
            return y
        return (inside)
class C:
    class D:
        @property
        def c(self): return 'text'
try:
    pass
except ValueError:
    def d(): return lambda: 0
'''


def test_a_text_is_an_outer_function_without_docstrings_comments_and_formatting():
    tree = stdlib.ast.parse(SOURCE)
    assert [stdlib.normalized(function) for function in stdlib.outer_functions(tree)] == [
        "async def a(x):\n    pass",
        "def b(x, *, y=1):\n\n    def inside():\n        return y\n    return inside",
        "@property\ndef c(self):\n    return 'text'",
        "def d():\n    return lambda: 0",
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("logging", "logging"),
        ("logging.handlers", "logging.handlers"),
        ("email.mime.text", "email"),
        ("posixpath", "os.path"),
        ("xml.etree.ElementPath", "xml.etree.ElementTree"),
        ("loggings", None),
        ("idlelib.run", None),
        ("urllib", None),
    ],
)
def test_a_file_belongs_to_the_longest_name(name, expected):
    assert stdlib.module_of(name) == expected


def test_no_module_is_in_two_chapters():
    listed = [name for names in CHAPTERS.values() for name in names.split()]
    assert len(listed) == len(set(listed)) == len(MODULES)
    assert set(IMPLEMENTED_BY.values()) <= set(MODULES)
    assert not set(IMPLEMENTED_BY) & set(MODULES)


def test_the_set_is_known_by_its_content_and_read_from_the_cache(library, monkeypatch):
    first, before = fingerprint_of("stdlib"), rows()
    assert first.startswith("stdlib:")
    stdlib.content.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(stdlib, "rows_of", lambda sources: pytest.fail("the cache was not used"))
        assert fingerprint_of("stdlib") == first
        assert rows() == before
    (library / "json" / "__init__.py").write_text(module("jason", 12), encoding="utf-8")
    stdlib.content.cache_clear()
    assert fingerprint_of("stdlib") != first


def test_the_content_enters_the_id_of_a_run(library):
    from labelkin.runs import RunSpec, run_id

    first = run_id(RunSpec(data="stdlib"))
    (library / "getopt.py").write_text(module("getopt", 30), encoding="utf-8")
    stdlib.content.cache_clear()
    assert run_id(RunSpec(data="stdlib")) != first


@pytest.mark.long
def test_a_damaged_cache_is_built_again_and_one_that_cannot_be_written_is_done_without(library, tmp_path, monkeypatch):
    before = rows()
    (file,) = (tmp_path / "cache" / "stdlib").iterdir()
    file.write_text("[[", encoding="utf-8")
    stdlib.content.cache_clear()
    assert rows() == before
    assert [tuple(row) for row in json.loads(file.read_text(encoding="utf-8"))] == sorted(
        map(tuple, before), key=lambda row: (row[0], stdlib.sha256(row[1].encode()).digest())
    )
    (tmp_path / "occupied").touch()
    monkeypatch.setenv("LABELKIN_CACHE", str(tmp_path / "occupied"))
    stdlib.content.cache_clear()
    assert rows() == before


def test_an_interpreter_without_sources_is_refused(library, monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "absent"))
    with pytest.raises(
        InputError, match=r"stdlib: expected the sources of Python's standard library in .*, got 0 files"
    ):
        load("stdlib")


def test_names_in_code_are_split_into_words():
    assert words_of_code("def read_line(self, HTTPServer, __init__): readLine2Text()") == [
        *("def", "read", "line", "self", "httpserver", "init", "read", "line2", "text")
    ]
    assert words_of("read_line readLine") == ["read_line", "readline"]


@pytest.mark.long
def test_the_encoder_of_code_is_the_sets_own_and_can_be_chosen(library):
    data = load("stdlib")
    assert data.train.encoder.name == "hashed-code"
    assert load("stdlib", encoder="hashed-tfidf:64").train.encoder.name == "hashed-tfidf:64"
    again = restored(data.train.encoder.state())
    assert again.name == "hashed-code"
    assert torch.equal(again.encode(data.test.texts), data.test.inputs)
    # splitting names beforehand is the same
    plain = encoder("hashed-tfidf").fitted([" ".join(words_of_code(text)) for text in data.train.texts])
    assert torch.equal(plain.encode([" ".join(words_of_code(text)) for text in data.test.texts]), data.test.inputs)


@pytest.mark.long
def test_the_library_of_this_interpreter():
    stdlib.content.cache_clear()
    data = load("stdlib")
    tree = data.taxonomy
    assert len(data.classes) >= 90
    assert len({tree.parents[tree.node(name)] for name in data.classes}) >= 20
    assert len(data.train) + len(data.test) > 6000
    counts = torch.bincount(torch.cat([data.train.targets, data.test.targets]))
    assert int(counts.min()) >= 20
    assert int(counts.max()) <= 150
    assert int(torch.bincount(data.test.targets, minlength=len(data.classes)).min()) >= 1
    assert not set(data.train.texts) & set(data.test.texts)
    assert {"argparse", "asyncio", "collections.abc", "decimal", "json", "os.path", "unittest.mock"} <= set(
        data.classes
    )
    assert not any("idlelib" in name or "test" in name.split(".") for name in data.classes)
