"""Taxonomies, tables, arrays and files of predictions that anyone may have written."""

import csv
import io
import json
import warnings
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import yaml

from labelkin import InputError, Taxonomy, data
from labelkin._numpy_files import load_numpy
from support.commands import call
from support.fuzzing import changed, damaged, files, fuzz
from support.trees import KINDS, random_taxonomy

NAMES = ["cat", "dog", "cow", "é猫"]


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".csv", ".nwk"])
def test_taxonomies(tmp_path: Path, suffix: str):
    file = tmp_path / f"tree{suffix}"

    def case(rng: Random) -> None:
        tree = random_taxonomy(np.random.default_rng(rng.randrange(2**32)), rng.randrange(2, 9), rng.choice(KINDS))
        tree.save(file)
        if suffix in (".json", ".yaml"):
            nested = {"a": ["x", "y"], "b": {"c": ["z"], "d": "w"}}
            content = changed(nested if rng.random() < 0.5 else json.loads(json.dumps(_parts(tree))), rng)
            dump = json.dumps if suffix == ".json" else lambda value: yaml.safe_dump(value, allow_unicode=True)
            file.write_text(dump(content), encoding="utf-8")
        file.write_bytes(damaged(file.read_bytes(), rng))
        found = Taxonomy.load(file)
        assert len(found.classes) >= 2
        found.save(tmp_path / "again.json")
        assert Taxonomy.load(tmp_path / "again.json") == found
        assert call("taxonomy", "show", file).exit_code == 0

    fuzz(case)


def _parts(tree: Taxonomy) -> dict[str, Any]:
    return {"names": list(tree.names), "parents": tree.parents.tolist(), "leaves": tree.leaves.tolist()}


def rows(rng: Random, *, scores: bool) -> list[dict[str, Any]]:
    """Rows with a label and numbers: one per class, or features."""
    columns = NAMES if scores else ["a", "b"]
    made = []
    for k in range(rng.randrange(8, 20)):
        row: dict[str, Any] = {"label": NAMES[k % 4]}
        row |= {name: round(rng.random() + (name == row["label"]), 3) for name in columns}
        made.append(row)
    return made


def write(path: Path, table: Any, rng: Random) -> None:
    if path.suffix == ".jsonl":
        text = "\n".join(json.dumps(row) for row in (table if isinstance(table, list) else [table]))
    else:
        kept = [row for row in table if isinstance(row, dict)] if isinstance(table, list) else []
        out = io.StringIO()
        writer = csv.DictWriter(out, list(dict.fromkeys(str(name) for row in kept for name in row)) or ["x"])
        writer.writeheader()
        writer.writerows({str(name): value for name, value in row.items()} for row in kept)
        text = out.getvalue()
    path.write_bytes(damaged(text.encode("utf-8", errors="surrogatepass"), rng))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_tables_as_data(tmp_path: Path, suffix: str):
    file = tmp_path / f"table{suffix}"

    def case(rng: Random) -> None:
        write(file, changed(rows(rng, scores=False), rng), rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = data.load(file)
        assert len(found.classes) >= 2

    fuzz(case)


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".npz"])
def test_files_of_predictions(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / f"p{suffix}"

    def case(rng: Random) -> None:
        if suffix == ".npz":
            file.write_bytes(damaged(arrays(rng), rng))
        else:
            write(file, changed(rows(rng, scores=True), rng), rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before = files(tmp_path)
            told = call("audit", file, "--kind", "logits", "--top", 3)
        assert files(tmp_path) == before
        assert told.exit_code in (0, 2)
        if told.exit_code:
            assert told.stdout == ""
            raise InputError(told.stderr.strip().splitlines()[-1])
        assert "accuracy" in told.stdout

    fuzz(case)


def arrays(rng: Random) -> bytes:
    make = np.random.default_rng(rng.randrange(2**32))
    count = rng.randrange(8, 30)
    parts: dict[str, Any] = {
        "target": make.integers(0, 4, count),
        "logits": make.normal(size=(count, 4)),
        "classes": NAMES,
    }
    if rng.random() < 0.4:
        odd = [
            np.zeros(0),
            np.zeros((count, 0)),
            np.full((count, 4), np.nan),
            np.array("x"),
            np.ones((count, 4), complex),
        ]
        parts[rng.choice(list(parts))] = rng.choice(
            [*odd, np.zeros((2, 2, 2)), np.array([b"a", b"b"]), np.array([True])]
        )
    file = io.BytesIO()
    (np.savez if rng.random() < 0.5 else np.savez_compressed)(file, **parts)
    return file.getvalue()


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_numpy_files(tmp_path: Path, suffix: str):
    file = tmp_path / f"a{suffix}"

    def case(rng: Random) -> None:
        if suffix == ".npz":
            content = arrays(rng)
        else:
            out = io.BytesIO()
            np.save(out, np.random.default_rng(rng.randrange(99)).normal(size=(rng.randrange(5), 3)))
            content = out.getvalue()
        file.write_bytes(damaged(content, rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's, of a header that looks like one of Python 2
            load_numpy(file)

    fuzz(case)
