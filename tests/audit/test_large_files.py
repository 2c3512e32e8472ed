"""Files that are larger than memory should be: read in blocks, with the same results and in constant memory."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm

from labelkin import InputError, Taxonomy
from labelkin.audit import Audit, as_text, audit, decide_file
from labelkin.audit._columns import Column, ColumnWriter, Halves
from labelkin.audit._paired import Paired
from labelkin.audit._risk import expected_risks, keys_of
from labelkin.audit._scores import Scores, Spool
from labelkin.audit._sorted_keys import SortedKeys
from labelkin.decide import Temperature, split_halves

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
    monkeypatch.setattr("labelkin.audit._columns.IN_MEMORY", 0)
    monkeypatch.setattr("labelkin.audit._columns.ROWS", 60)
    monkeypatch.setattr("labelkin.audit._sorted_keys.RUN", 30)
    monkeypatch.setattr("labelkin.audit._sorted_keys.AT_ONCE", 7)
    monkeypatch.setattr("labelkin.audit._risk.AT_ONCE", 5)
    monkeypatch.setattr("labelkin.decide._halves.MOST_HELD", 0)
    monkeypatch.setattr("labelkin.decide._halves.MOST_MAPPED", 9)


def samples(kind: str, *, absent: int = 0, decimals: int = 4) -> tuple[np.ndarray, np.ndarray]:
    make = np.random.default_rng(0)
    target = make.integers(0, len(CLASSES) - absent, COUNT)
    logits = make.normal(size=(COUNT, len(CLASSES))) + 2 * np.eye(len(CLASSES))[target]
    if kind == "logits":
        return target, logits.astype(np.float32)
    probs = torch.from_numpy(3 * logits).softmax(-1).numpy()
    probs[:9] = np.eye(len(CLASSES))[(target[:9] + 1) % len(CLASSES)]  # surely wrong
    rounded = probs.round(decimals)
    rounded[:, 0] += 1 - rounded.sum(1)
    return target, np.where((rounded >= 0).all(1, keepdims=True), rounded, probs.round(4))


def written(folder: Path, name: str, kind: str, **options: int) -> Path:
    target, scores = samples(kind, **options)
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
    same(by_blocks, in_memory)
    assert torch.equal(by_blocks.predictions.probs, in_memory.predictions.probs)


@pytest.mark.parametrize(
    "options", [{"decimals": 1}, {"absent": 2}, {"absent": 2, "decimals": 1}], ids=["ties", "absent", "both"]
)
def test_ties_and_classes_without_samples_have_the_same_audit_in_blocks(
    tmp_path: Path, options: dict[str, int], request: pytest.FixtureRequest
):
    file = written(tmp_path, "p.csv", "probs", **options)
    in_memory = audit(file, kind="probs", taxonomy=TREE)
    best = in_memory.predictions.probs.amax(-1)
    assert len(best.unique()) < (20 if "decimals" in options else COUNT)
    assert any("2 of 7 classes have no samples" in note for note in in_memory.notes) == ("absent" in options)
    request.getfixturevalue("in_blocks")
    same(audit(file, kind="probs", taxonomy=TREE), in_memory)


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("right", [0.9, 0.95, 0.99])
def test_a_goal_that_is_reached_exactly_is_reached_in_blocks(tmp_path: Path, right: float):
    """Means over blocks of samples may add up to .8999 where 180 of 200 answers are right."""
    hits = np.zeros(400, dtype=np.bool_)
    for half in split_halves(400):
        hits[half[: int(right * 200)].numpy()] = True
    probs = np.where(hits[:, None], [0.8, 0.2], [0.2, 0.8])
    np.savez(tmp_path / "p.npz", target=np.zeros(400, dtype=np.int64), probs=probs)
    found = audit(tmp_path / "p.npz").fallback
    assert found is not None
    assert found.curve[0].correctness == right
    named = {point.goal for point in found.points[1:]} | set(found.unreachable)
    assert named == {goal for goal in (0.9, 0.95, 0.99) if goal > right}


@pytest.mark.parametrize("name", ["p.csv", "p.npz"])
def test_predicted_labels_have_the_same_audit_in_blocks(tmp_path: Path, name: str, request: pytest.FixtureRequest):
    target, scores = samples("logits")
    columns = {"target": np.array(CLASSES)[target], "predicted": np.array(CLASSES)[scores.argmax(1)]}
    if name == "p.npz":
        np.savez(tmp_path / name, **columns)
    else:
        (tmp_path / name).write_text("\n".join(map(",".join, [tuple(columns), *zip(*columns.values(), strict=True)])))
    in_memory = audit(tmp_path / name, taxonomy=TREE)
    request.getfixturevalue("in_blocks")
    by_blocks = audit(tmp_path / name, taxonomy=TREE)
    same(by_blocks, in_memory)
    assert by_blocks.predictions.target.tolist() == target.tolist()
    assert by_blocks.predictions.predicted.tolist() == scores.argmax(1).tolist()


def same(found: Audit, expected: Audit) -> None:
    assert as_text(found) == as_text(expected)
    numbers = [
        pytest.approx(one, rel=1e-7, abs=1e-9, nan_ok=True) if isinstance(one, float) else one
        for one in flat(expected.as_dict())
    ]
    assert flat(found.as_dict()) == numbers


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
def test_numbers_in_a_file_act_like_a_tensor():
    values = torch.randint(-5, 1000, (157,), generator=torch.Generator().manual_seed(0))
    writer = ColumnWriter(np.int16)
    for part in values.split(10):
        writer.add(part.numpy())
    column = writer.column()
    assert len(column) == 157
    assert torch.equal(column.tensor(), values)
    assert torch.equal(column[50:99], values[50:99])
    assert column[156] == int(values[156])
    assert [len(block) for block in column.blocks()] == [60, 60, 37]
    with pytest.raises(IndexError):
        column[157]


@pytest.mark.parametrize("large", [False, True])
def test_the_halves_are_those_of_a_permutation(large: bool, request: pytest.FixtureRequest):
    if large:
        request.getfixturevalue("in_blocks")
    order = torch.randperm(157, generator=torch.Generator().manual_seed(3))
    expected = [order[:78].sort().values, order[78:].sort().values]
    assert all(torch.equal(half, some) for half, some in zip(split_halves(157, 3), expected, strict=True))
    masks = [half.mask(slice(0, 157)) for half in Halves(157, 3)]
    assert all(torch.equal(mask.nonzero().flatten(), some) for mask, some in zip(masks, expected, strict=True))


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("count", [1, 29, 30, 90, 211])
@pytest.mark.parametrize("different", [1, 4, 10**6])
def test_keys_that_are_sorted_in_runs_are_sorted(count: int, different: int):
    keys = SortedKeys()
    values = np.random.default_rng(0).integers(0, different, count)
    for part in np.array_split(values, 1 + count // 8):
        keys.add(part)
    assert np.concatenate(list(keys.blocks())).tolist() == np.sort(values).tolist()


@pytest.mark.parametrize("different", [1, 3, 1000])
def test_the_risk_of_sorted_runs_is_that_of_sorted_samples(different: int, request: pytest.FixtureRequest):
    make = np.random.default_rng(0)
    confidence = torch.from_numpy(make.integers(0, different, 211) / 1000)
    wrong = torch.from_numpy(make.random(211) < 0.3)
    found = []
    for small in (False, True):
        if small:
            request.getfixturevalue("in_blocks")
        keys = SortedKeys()
        for parts in zip(confidence.split(10), wrong.split(10), strict=True):
            keys.add(keys_of(*parts))
        found.append(np.concatenate(list(expected_risks(keys))))
    assert len(found[0]) == 211
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    assert found[1][-1] == pytest.approx(float(wrong.double().mean()))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_interval_of_a_change_is_that_of_the_contributions_of_all_samples(size: int):
    make = np.random.default_rng(0)
    before, after = (1e6 + make.integers(0, 4, 100).astype(float) for _ in range(2))
    wholes = [make.integers(0, 2, 100).astype(float) for _ in range(2)]
    paired = Paired()
    for place in range(0, 100, size):
        parts = (before, after, *wholes)
        paired.add(*(torch.from_numpy(part[place : place + size]) for part in parts))
    ratios = [part.sum() / whole.sum() for part, whole in zip((before, after), wholes, strict=True)]
    moved = [
        (part - ratio * whole) / whole.mean()
        for part, ratio, whole in zip((before, after), ratios, wholes, strict=True)
    ]
    reach = norm.ppf(0.975) * (moved[1] - moved[0]).std(ddof=1) / 10
    found = paired.difference()
    assert found[:2] == pytest.approx(ratios, rel=1e-12)
    assert found[3:] == pytest.approx((np.diff(ratios)[0], *(np.diff(ratios)[0] + [-reach, reach])), rel=1e-9)
    changed = (before != after) | (wholes[0] != wholes[1])
    assert found.differ == changed.sum()


@pytest.mark.usefixtures("in_blocks")
def test_scores_in_a_file_act_like_tensors():
    values = torch.rand(157, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    spool = Spool()
    for part in values.split(10):
        spool.add(part.numpy())
    scores, column = spool.scores(), Column.of(torch.arange(157))
    assert scores.shape == (157, 7)
    assert len(list(scores.blocks())) > 1
    assert torch.equal(scores.tensor(), values)
    for half, some in zip(Halves(157, 3), split_halves(157, 3), strict=True):
        assert len(half) == len(some)
        assert torch.equal(column.take(half).tensor(), some)
        assert torch.equal(scores.take(half).tensor(), values[some])
        assert torch.equal(scores.map(lambda block: block * 2).take(half).tensor(), values[some] * 2)
        assert torch.equal(Scores.of(values).take(half).tensor(), values[some])
    for block, own in scores.beside(column):
        assert torch.equal(block, values[own])
    found = scores.mean(lambda block: block.mean(0))
    assert torch.allclose(found, values.mean(0), rtol=1e-14)


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


# The largest resident memory, in which mapped files count as well. `ru_maxrss` would include that of the tests' own process.
COMMAND = """
import atexit, re, sys
status = "/proc/self/status"
atexit.register(lambda: print(re.search(r"VmHWM:\\s+([0-9]+)", open(status).read())[1], file=sys.stderr))
from labelkin.cli import main
main()
"""


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        pytest.param("labels", 1_000_000, marks=pytest.mark.long),
        pytest.param("probs", 300_000, marks=pytest.mark.long),
        pytest.param("probs", 1_000_000, marks=pytest.mark.slow),
    ],
)
def test_the_command_takes_the_same_memory_for_any_number_of_rows(tmp_path: Path, kind: str, rows: int):
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux says how much memory a process took, without what its parent took before")
    make = np.random.default_rng(0)
    target, probs = make.integers(0, 4, 50_000), make.dirichlet(np.full(4, 0.5), 50_000)
    if kind == "labels":
        lines = [f"c{true},c{row.argmax()}\n" for true, row in zip(target, probs, strict=True)]
        header, options = "target,predicted\n", []
    else:
        pairs = zip(target, probs.tolist(), strict=True)
        lines = [f"c{true},{','.join(f'{p:.5f}' for p in row)}\n" for true, row in pairs]
        header = "label,c0,c1,c2,c3\n"
        (tmp_path / "tree.json").write_text('{"a": ["c0", "c1"], "b": ["c2", "c3"]}')
        options = ["--kind", "probs", "--taxonomy", str(tmp_path / "tree.json")]
    peaks = []
    for count in (50_000, rows):
        file = tmp_path / f"{count}.csv"
        with file.open("w") as into:
            into.write(header)
            for _ in range(count // 50_000):
                into.writelines(lines)
        command = [sys.executable, "-c", COMMAND, "audit", str(file), *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        told = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        peaks.append(int(told.stderr.split()[-1]) / 1024)
    assert peaks[1] - peaks[0] < 25, f"{peaks[0]:.0f} MiB for 50,000 rows, {peaks[1]:.0f} MiB for {rows:,}"
