"""Labels from coarse to fine: several columns of a table, images at inner folders, and training with them."""

import json

import numpy as np
import pytest
import torch

import labelkin
from labelkin import InputError, KinClassifier
from labelkin.data import load
from labelkin.data._partial import joined, label_path
from labelkin.runs import DataWorkspace, RunFolder, RunSpec
from labelkin.training import Settings, classify
from support.commands import FOUND, call, refused, write_images
from support.digit_tables import KINDS, rows_of, write_table

QUICK = ("--epochs", 1, "--batch-size", 64, "--calibration", 0)


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "t.csv", rows_of())


def test_several_columns_define_the_tree_and_empty_cells_are_inner_nodes(table):
    found = load(table, label=["kind", "digit"])
    assert found.classes == ("d0", "d6", "d8", "d1", "d4", "d7")
    assert found.taxonomy is not None
    assert {found.taxonomy.names[p] for p in found.taxonomy.parents[found.taxonomy.leaves]} == {"round", "straight"}
    assert found.shape == (32,)
    assert found.partial is not None
    assert found.partial_names == ("round", "straight")
    assert torch.bincount(found.partial.targets).tolist() == [18, 18]
    assert len(found.train) + len(found.test) == 6 * 14  # only samples with a class are tested
    round_ones = FOUND.data[np.isin(FOUND.target, [0, 6, 8])]
    held = found.partial.inputs[found.partial.targets == 0].numpy()
    assert all(any(np.allclose(x, r[:32]) for r in round_ones) for x in held)
    assert load(table, label=["kind", "digit"], partial="none").partial is None


def test_a_label_without_others_below_is_a_class(tmp_path):
    lines = [*rows_of(), *[",".join([*["1"] * 32, "other", ""])] * 5]
    found = load(write_table(tmp_path / "t.csv", lines), label=["kind", "digit"])
    assert "other" in found.classes
    assert found.partial_names == ("round", "straight")


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (["", "lion"], "expected a label in column 'a', the coarsest of --label, got an empty cell; fill it, or name"),
        (["x", "", "y"], "expected a label in column 'b', because the finer column 'c' has one"),
        (["x > y", "z"], "expected labels without ' > '"),
    ],
)
def test_paths_with_gaps_are_refused(cells, sentence):
    with pytest.raises(InputError, match=sentence):
        label_path(cells, ["a", "b", "c"][: len(cells)], "t.csv, line 2")


def test_inner_nodes_in_a_test_split_are_left_out_with_a_note(tmp_path):
    (tmp_path / "d").mkdir()
    write_table(tmp_path / "d/train.csv", rows_of(unknown=0))
    write_table(tmp_path / "d/test.csv", rows_of(count=8, unknown=3))
    with pytest.warns(UserWarning, match="18 test samples left out, because only a node above the class is known"):
        found = load(tmp_path / "d", label=["kind", "digit"])
    assert len(found.test) == 6 * 5
    assert found.partial is None


def test_folders_may_hold_images_at_inner_nodes(tmp_path):
    write_images(tmp_path / "photos", {0: "round/0", 6: "round/6", 1: "straight/1", 7: "straight/7"})
    for source, place in (("round/0/0.png", "round/a.png"), ("straight/1/1.png", "straight/b.png")):
        (tmp_path / "photos" / place).write_bytes((tmp_path / "photos" / source).read_bytes())
    found = load(tmp_path / "photos")
    assert found.classes == ("0", "6", "1", "7")
    assert found.partial is not None
    assert found.partial_names == ("round", "straight")
    assert found.partial.targets.tolist() == [0, 1]
    assert "2 partial" in repr(found)
    streamed = load(tmp_path / "photos", stream=True)
    assert streamed.partial is not None
    both = joined(streamed.train, streamed.partial)
    assert [path.name for path in both.paths[-2:]] == ["a.png", "b.png"]
    fewer = load(tmp_path / "photos", classes=["0", "6", "1"])
    assert fewer.partial is not None
    assert len(load(tmp_path / "photos", classes=["0", "6"]).partial or ()) == 1


@pytest.mark.long
def test_texts_take_several_columns_too(tmp_path):
    lines = [f"{word} film number {i},{kind},{word if i else ''}" for kind, word in WORDS.items() for i in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(["text,kind,mood", *lines]))
    found = load(tmp_path / "t.csv", text="text", label=["kind", "mood"])
    assert found.partial_names == ("blame", "praise")
    assert found.partial is not None
    assert (len(found.partial), found.partial.shape) == (2, found.shape)  # encoded like the others
    assert found.classes == ("bad", "good")


WORDS = {"praise": "good", "blame": "bad"}


# Training


def spec(table, objective, **options):
    data_options = {"label": ["kind", "digit"], **options}
    return RunSpec(data=str(table), objective=objective, data_options=data_options, settings=Settings(calibration=0.0))


def task(table, objective, **options):
    run = spec(table, objective, **options)
    workspace = DataWorkspace(run)
    return workspace, classify(
        workspace.dataset,
        workspace.context.tree(),
        objective,
        run.settings,
        partial=str(run.data_options.get("partial", "use")),
    )


@pytest.mark.parametrize("objective", ["kin", "hierarchical", "hierarchical-cross-entropy"])
def test_the_loss_has_the_node_of_each_sample(table, objective):
    workspace, own = task(table, objective)
    from labelkin.training import Place, build_model

    batches = own.batches(Settings(batch_size=1000), Place(torch.device("cpu")))
    (batch,) = batches.epoch(0)
    tree, data = workspace.context.tree(), workspace.dataset
    assert len(batch.index) == len(data.train) + 36
    model = build_model(objective, {}, "mlp", data.shape, workspace.context, seed=0).eval()  # keeps its state
    inputs = torch.cat([data.train.inputs, data.partial.inputs])
    names = [data.classes[t] for t in data.train.targets] + [data.partial_names[t] for t in data.partial.targets]
    node = torch.tensor([tree.node(name) if name in data.partial_names else -1 for name in names])
    target = torch.tensor([data.classes.index(name) if name in data.classes else 0 for name in names])
    with torch.no_grad():
        expected = model(data.normalize(inputs[batch.index]), target[batch.index], node=node[batch.index])
        assert float(own.loss(model, batch)) == pytest.approx(float(expected))
        known = model(data.normalize(inputs[batch.index]), target[batch.index])
    assert float(known) != pytest.approx(float(expected))


def test_objectives_that_cannot_take_nodes_refuse_or_drop(table):
    with pytest.raises(InputError, match=r"'one-hot' learns from classes only, but 36 training samples .* 'round'"):
        task(table, "one-hot")
    _, dropped = task(table, "one-hot", partial="drop")
    assert len(dropped.trained) == len(dropped.dataset.train)
    _, used = task(table, "kin", partial="drop")
    assert len(used.trained) == len(used.dataset.train) + 36


@pytest.mark.long
@pytest.mark.filterwarnings("default:.*the run was trained on")
def test_the_command_line_trains_on_partial_labels(table, tmp_path):
    base = ("train", table, "--label", "kind,digit", *QUICK)
    told = refused(*base, "--objective", "label-smoothing", "--out", tmp_path / "no")
    assert "leave them out with --partial drop" in told
    assert not (tmp_path / "no").exists()
    assert call(*base, "--out", tmp_path / "run").exit_code == 0
    config = RunFolder(tmp_path / "run").config
    assert (config["objective"], config["data_options"]["label"], config["tree"]) == ("kin", ["kind", "digit"], "own")
    assert call(*base, "--partial", "none", "--out", tmp_path / "none").exit_code == 0
    first, second = (labelkin.load_run(tmp_path / name).model.state_dict() for name in ("run", "none"))
    assert any(not torch.equal(first[name], second[name]) for name in first)
    (tmp_path / "other.csv").write_text(table.read_text())
    evaluated = call("evaluate", tmp_path / "run", tmp_path / "other.csv", "--json")
    assert evaluated.exit_code == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)["samples"] == 6 * 14
    balanced = refused(*base, "--objective", "kin", "--sampler", "balanced", "--out", tmp_path / "b")
    assert "samples without a class cannot be balanced" in balanced


def test_a_taxonomy_without_the_node_is_refused(table, tmp_path):
    (tmp_path / "tree.json").write_text(json.dumps({"a": ["d0", "d1", "d4"], "b": ["d6", "d7", "d8"]}))
    given = ("--label", "kind,digit", "--taxonomy", tmp_path / "tree.json", "--objective", "kin")
    assert "which the taxonomy does not have" in refused("train", table, *given, *QUICK, "--out", tmp_path / "run")


def test_the_estimator_takes_inner_nodes_with_kin():
    tree = {"round": ["d0", "d6", "d8"], "straight": ["d1", "d4", "d7"]}
    rows = np.flatnonzero(np.isin(FOUND.target, list(KINDS)))[:120]
    y = np.array([f"d{digit}" if i % 3 else KINDS[digit] for i, digit in enumerate(FOUND.target[rows])])
    model = KinClassifier("kin", taxonomy=tree, epochs=2, random_state=0).fit(FOUND.data[rows], y)
    assert set(model.classes_) == {"d0", "d6", "d8", "d1", "d4", "d7"}


# Classes that are forgotten, to measure what partial labels are worth


def test_a_share_of_every_class_keeps_only_the_node_above(tmp_path):
    table = write_table(tmp_path / "t.csv", rows_of(unknown=0))
    whole = load(table, label=["kind", "digit"], seed=3)
    found = load(table, label=["kind", "digit"], seed=3, coarse_labels=0.25)
    assert torch.bincount(whole.train.targets).tolist() == [16] * 6
    assert torch.bincount(found.train.targets).tolist() == [12] * 6
    assert found.partial_names == ("round", "straight")
    assert torch.bincount(found.partial.targets).tolist() == [12, 12]
    assert torch.equal(found.test.inputs, whole.test.inputs)
    above = {0: "round", 1: "round", 2: "round", 3: "straight", 4: "straight", 5: "straight"}
    classes = {tuple(x): y for x, y in zip(whole.train.inputs.tolist(), whole.train.targets.tolist(), strict=True)}
    for x, node in zip(found.partial.inputs.tolist(), found.partial.targets.tolist(), strict=True):
        assert above[classes.pop(tuple(x))] == found.partial_names[node]
    assert classes == {
        tuple(x): y for x, y in zip(found.train.inputs.tolist(), found.train.targets.tolist(), strict=True)
    }  # no sample is lost


def test_forgotten_classes_join_those_that_were_unknown(table):
    found = load(table, label=["kind", "digit"], coarse_labels=0.5)
    assert found.partial_names == ("round", "straight")
    known = torch.bincount(load(table, label=["kind", "digit"]).train.targets)
    left = torch.bincount(found.train.targets)
    assert left.tolist() == [int(count) - round(int(count) / 2) for count in known]
    assert len(found.partial) == 36 + int((known - left).sum())
    dropped = load(table, label=["kind", "digit"], coarse_labels=0.5, partial="none")
    assert dropped.partial is None
    assert torch.equal(dropped.train.inputs, found.train.inputs)


def test_the_seed_draws_the_forgotten_classes_and_every_class_keeps_one(table):
    draws = [load(table, label=["kind", "digit"], coarse_labels=0.5, seed=seed).train.inputs for seed in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.bincount(load(table, label=["kind", "digit"], coarse_labels=1).train.targets).tolist() == [1] * 6


def test_samples_to_calibrate_on_have_a_class(tmp_path):
    table = write_table(tmp_path / "t.csv", rows_of(count=180, unknown=0))
    found = load(table, label=["kind", "digit"], coarse_labels=0.5, calibration=0.3)
    alike = load(table, label=["kind", "digit"], coarse_labels=0.5)
    assert len(found.train) + len(found.calibration) == len(alike.train)
    assert len(found.partial) == len(alike.partial)


def test_a_class_below_the_root_keeps_its_labels(tmp_path):
    lines = [*rows_of(unknown=0), *[",".join([*[str(i)] * 32, "other", ""]) for i in range(10)]]
    found = load(write_table(tmp_path / "t.csv", lines), label=["kind", "digit"], coarse_labels=0.5)
    counts = dict(zip(found.classes, torch.bincount(found.train.targets).tolist(), strict=True))
    assert counts.pop("other") == 8
    assert set(counts.values()) == {8}
    assert found.partial_names == ("round", "straight")


@pytest.mark.parametrize("tree", ["none", "flat"])
def test_classes_without_groups_have_no_coarse_labels(tmp_path, tree):
    np.savez(tmp_path / "x.npz", x=np.eye(6), y=np.arange(6) % 2)
    write_images(tmp_path / "flat", {0: "a", 1: "b"})
    path = tmp_path / ("x.npz" if tree == "none" else "flat")
    with pytest.raises(InputError, match=r"coarse_labels: expected data with a tree of groups"):
        load(path, coarse_labels=0.5)


def test_the_option_is_checked():
    with pytest.raises(InputError, match=r"coarse_labels: expected a number in \[0, 1\], got 1\.5"):
        load("digits", coarse_labels=1.5)
