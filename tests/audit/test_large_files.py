"""Files that are larger than memory should be: read in blocks, with the same results and in constant memory."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labelkin import InputError, Taxonomy
from labelkin.audit import as_text, audit, decide_file
from labelkin.audit._scores import Scores, Spool
from labelkin.decide import Temperature

CLASSES = ("cat", "dog", "cow", "car", "bus", "bike", "oak")
TREE = Taxonomy.from_nested(
    {"animal": {"pet": ["cat", "dog"], "farm": ["cow"]}, "rest": [["car", "bus", "bike"], "oak"]}
)
COUNT = 211


@pytest.fixture
def in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave all scores in their files, and read about seventy rows at a time."""
    monkeypatch.setattr("labelkin.audit._predictions.IN_MEMORY", 0)
    monkeypatch.setattr("labelkin.audit._scores.IN_MEMORY", 0)
    monkeypatch.setattr("labelkin.audit._scores.BLOCK", 500)
    monkeypatch.setattr("labelkin.audit._read_files.MOST_ROWS", 50)


def samples(kind: str) -> tuple[np.ndarray, np.ndarray]:
    make = np.random.default_rng(0)
    target = make.integers(0, len(CLASSES), COUNT)
    logits = make.normal(size=(COUNT, len(CLASSES))) + 2 * np.eye(len(CLASSES))[target]
    if kind == "logits":
        return target, logits.astype(np.float32)
    probs = torch.from_numpy(3 * logits).softmax(-1).numpy().round(4)
    probs[:9] = np.eye(len(CLASSES))[(target[:9] + 1) % len(CLASSES)]  # surely wrong
    return target, probs


def written(folder: Path, name: str, kind: str) -> Path:
    target, scores = samples(kind)
    file = folder / name
    if file.suffix == ".npz":
        save = np.savez_compressed if "packed" in name else np.savez
        save(file, target=target, classes=CLASSES, **{kind: scores})
    else:
        lines = [
            f"{CLASSES[true]},{','.join(map(repr, row))}" for true, row in zip(target, scores.tolist(), strict=True)
        ]
        file.write_text("\n".join([f"label,{','.join(CLASSES)}", *lines]))
    return file


def flat(value: Any) -> list[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    return [value] if parts is None else [one for part in parts for one in flat(part)]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("name", ["p.npz", "packed.npz", "p.csv"])
@pytest.mark.parametrize("tree", [TREE, None], ids=["tree", "no-tree"])
def test_a_table_that_stays_in_its_file_has_the_same_audit(
    tmp_path: Path, kind: str, name: str, tree: Taxonomy | None, request: pytest.FixtureRequest
):
    file = written(tmp_path, name, kind)
    costs = np.random.default_rng(1).random((len(CLASSES), len(CLASSES))) * (1 - np.eye(len(CLASSES)))
    in_memory = audit(file, kind=kind, taxonomy=tree, costs=costs)
    request.getfixturevalue("in_blocks")
    by_blocks = audit(file, kind=kind, taxonomy=tree, costs=costs)
    assert as_text(by_blocks) == as_text(in_memory)
    found, expected = flat(by_blocks.as_dict()), flat(in_memory.as_dict())
    numbers = [
        pytest.approx(one, rel=1e-7, abs=1e-9, nan_ok=True) if isinstance(one, float) else one for one in expected
    ]
    assert found == numbers
    assert torch.equal(by_blocks.predictions.probs, in_memory.predictions.probs)


def test_decisions_on_a_table_that_stays_in_its_file(tmp_path: Path, request: pytest.FixtureRequest):
    file = written(tmp_path, "p.npz", "probs")
    decide_file(file, tmp_path / "memory.csv", taxonomy=TREE, labeled=file)
    request.getfixturevalue("in_blocks")
    decide_file(file, tmp_path / "blocks.csv", taxonomy=TREE, labeled=file)
    assert (tmp_path / "blocks.csv").read_bytes() == (tmp_path / "memory.csv").read_bytes()


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("logits", np.nan, "first in sample 150"),
        ("probs", np.inf, "first in sample 150"),
        ("probs", 0.9, "sample 150 sums to"),
        ("probs", 7.0, "look like logits"),
    ],
)
def test_a_wrong_number_far_down_is_named(tmp_path: Path, kind: str, value: float, says: str):
    target, scores = samples(kind)
    scores[150, 3] = value
    np.savez(tmp_path / "p.npz", target=target, **{kind: scores})
    with pytest.raises(InputError, match=says):
        audit(tmp_path / "p.npz")


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("name", ["p.npz", "packed.npz"])
def test_a_damaged_table_in_a_file_is_refused(tmp_path: Path, name: str):
    """A flipped bit of a number is still a number: only the checksum shows it."""
    file = written(tmp_path, name, "logits")
    content = file.read_bytes()
    at = content.index(b"logits.npy") + (200 if name == "p.npz" else 1000)
    file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(InputError, match="not a readable numpy file"):
        audit(file)


@pytest.mark.usefixtures("in_blocks")
def test_scores_in_a_file_act_like_tensors():
    values = torch.rand(157, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    spool = Spool()
    for part in values.split(10):
        spool.add(part.numpy())
    scores, column = spool.scores(), torch.arange(157)
    assert scores.shape == (157, 7)
    assert len(list(scores.blocks())) > 1
    assert torch.equal(scores.tensor(), values)
    some = torch.tensor([0, 1, 70, 71, 130, 156])
    assert torch.equal(scores.take(some).tensor(), values[some])
    assert torch.equal(scores.map(lambda block: block * 2).take(some).tensor(), values[some] * 2)
    sums, same = scores.each(lambda block, own: (block.sum(-1), own), column)
    assert torch.equal(sums, values.sum(-1))
    assert torch.equal(same, column)
    found = scores.mean(lambda block: block.mean(0))
    assert torch.allclose(found, values.mean(0), rtol=1e-14)
    assert torch.equal(Scores.of(values).take(some).tensor(), values[some])


def test_the_temperature_of_blocks_is_that_of_all_samples():
    target, logits = samples("logits")
    pair = torch.from_numpy(logits), torch.from_numpy(target)
    expected = Temperature().fit(*pair).value
    for size in (1, 50, 500):
        found = Temperature().fit_blocks(lambda size=size: zip(*(part.split(size) for part in pair), strict=True)).value
        assert found == pytest.approx(expected, rel=1e-9)
    with pytest.raises(InputError, match="at least one sample"):
        Temperature().fit_blocks(list)


@pytest.mark.parametrize(("scale", "passes"), [(1.0, 7), (0.05, 30)])
def test_the_temperature_of_blocks_needs_few_passes_unless_the_first_block_is_unlike_the_others(
    scale: float, passes: int
):
    target, logits = samples("logits")
    logits[:200] *= scale
    parts = [part.split(200) for part in (torch.from_numpy(logits), torch.from_numpy(target))]
    called = []

    def blocks():
        called.append(1)
        return zip(*parts, strict=True)

    found = Temperature().fit_blocks(blocks).value
    assert found == pytest.approx(Temperature().fit(torch.cat(parts[0]), torch.cat(parts[1])).value, rel=1e-10)
    assert len(called) <= passes
    assert scale == 1 or len(called) > 7  # the other way was taken


MEMORY = """
import resource, sys
from labelkin.audit import _predictions, _scores, audit
_predictions.IN_MEMORY = _scores.IN_MEMORY = 2**20
_scores.BLOCK = 2**17
peaks = []
for source in sys.argv[1:]:
    found = audit(source, kind="probs")
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(found.samples, *peaks)
"""


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_ten_times_the_rows_need_the_same_memory(tmp_path: Path, suffix: str):
    """The scores of 30,000 samples are 22 MB more than those of 3,000, and more than 100 MB as strings."""
    pytest.importorskip("resource", reason="Windows does not have it")
    make = np.random.default_rng(0)
    target, probs = make.integers(0, 100, 3_000), make.dirichlet(np.full(100, 0.1), 3_000)
    lines = [f"{y},{','.join(f'{p:.5f}' for p in row)}\n" for y, row in zip(target, probs.tolist(), strict=True)]
    for name, times in (("short", 1), ("long", 10)):
        file = tmp_path / f"{name}{suffix}"
        if suffix == ".npz":
            np.savez(file, target=np.tile(target, times), probs=np.tile(probs, (times, 1)))
        else:
            file.write_text(",".join(["label", *(f"c{k}" for k in range(100))]) + "\n" + "".join(lines * times))
    command = [sys.executable, "-c", MEMORY, *(str(tmp_path / f"{name}{suffix}") for name in ("short", "long"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    told = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    count, short, long = (int(word) for word in told.stdout.split())
    assert count == 30_000
    assert (long - short) / 1024 < 16, f"{short} kB and {long} kB"
