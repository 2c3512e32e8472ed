"""Runs and files of scores on samples with other class shares: predict, export, serve and decide agree with the equations."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import labelkin
from labelkin import InputError, Taxonomy, decide
from labelkin.audit import decide_file
from labelkin.data import load
from labelkin.runs import RunFolder, load_run
from labelkin.training import shares_for
from support.commands import call, refused

INPUTS = load("digits").test.inputs
TREE = {"round": ["0", "6", "8", "9"], "straight": ["1", "4", "7"], "open": ["2", "3", "5"]}
DIGITS = [str(digit) for digit in range(10)]
SHARES = torch.tensor([0, 1, 1, 1, 1, 1, 1, 9, 9, 9], dtype=torch.float64)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shares")
    Taxonomy.from_nested(TREE).save(folder / "tree.json")
    labelkin.train("digits", "one-hot", out=folder / "run", epochs=1, calibration=0.1, taxonomy=folder / "tree.json")
    np.save(folder / "x.npy", INPUTS.numpy())
    lines = [f"{digit},{share:g}" for digit, share in zip(DIGITS, SHARES.tolist(), strict=True)]
    (folder / "shares.csv").write_text("\n".join(["class,share", *reversed(lines)]))
    return folder


def calibrated(run: Path, scores: Tensor) -> Tensor:
    final = RunFolder(run).final
    assert final is not None
    return (scores.double() / final["temperature"]).softmax(-1)


def expected(run: Path) -> Tensor:
    """Probabilities of the test images for the new shares, from what the run stores."""
    held_out = calibrated(run, RunFolder(run).outputs()["calibration_scores"])
    return decide.adjust_shares(calibrated(run, load_run(run).predict(INPUTS).scores), SHARES, held_out.mean(0))


@pytest.mark.parametrize("name", ["argmax", "crm", "fallback"])
def test_a_run_decides_with_probabilities_for_the_new_shares(name: Any, home: Path):
    model, probs = load_run(home / "run"), expected(home / "run")
    found, plain = model.predict(INPUTS, decide=name, shares=SHARES), model.predict(INPUTS, decide=name)
    assert found.all_probabilities is not None
    torch.testing.assert_close(found.all_probabilities, probs.float())
    answer = decide.Rule(name, model.taxonomy).answer(probs)
    assert found.nodes is not None
    assert torch.equal(found.nodes, answer.nodes)
    assert plain.nodes is not None
    assert not torch.equal(found.nodes, plain.nodes)
    assert "0" not in found.classes
    again = model.predict(INPUTS, decide=model.rule(name, shares=SHARES))
    assert again.nodes is not None
    assert torch.equal(again.nodes, found.nodes)
    with pytest.raises(InputError, match="coverage, costs and shares; pass them to rule"):
        model.predict(INPUTS, decide=model.rule(name), shares=SHARES)


def test_a_coverage_holds_for_the_new_shares(home: Path):
    model, outputs = load_run(home / "run"), RunFolder(home / "run").outputs()
    found = model.rule(coverage=0.8, shares=SHARES)
    scores = outputs["calibration_scores"].double()
    wanted = decide.Rule("fallback", model.taxonomy).fitted(
        scores, outputs["calibration_target"], coverage=0.8, shares=SHARES, prior=1.0
    )
    assert found.guarantee is not None
    assert wanted.rule.guarantee is not None
    assert found.guarantee.thresholds == wanted.rule.guarantee.thresholds


def test_the_command_writes_what_predict_answers(home: Path):
    command = ("predict", home / "run", home / "x.npy", "-o", home / "p.csv", "--shares", home / "shares.csv")
    told = call(*command, "--decide", "crm", "--all-probs")
    assert told.exit_code == 0, told.stderr
    rows = list(csv.DictReader((home / "p.csv").open()))
    found = load_run(home / "run").predict(INPUTS, decide="crm", shares=SHARES)
    assert [row["class"] for row in rows] == found.classes
    assert found.all_probabilities is not None
    written = [[float(row[f"p_{digit}"]) for digit in DIGITS] for row in rows]
    np.testing.assert_allclose(written, found.all_probabilities, atol=1e-6)


def test_the_note_on_a_coverage_names_the_shares(home: Path):
    command = ("predict", home / "run", home / "x.npy", "-o", home / "c.csv", "--coverage", "0.8")
    assert "except for the class shares" in call(*command, "--shares", home / "shares.csv").stderr
    assert "except for the class shares" not in call(*command).stderr


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_an_exported_file_answers_for_the_new_shares(suffix: str, home: Path):
    """The file is compared with `predict` before it is written; here, once more with the runtime alone."""
    if suffix == "onnx":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    told = call("export", home / "run", "-o", home / f"m.{suffix}", "--decide", "crm", "--shares", home / "shares.csv")
    assert told.exit_code == 0, told.stderr
    pixels = (INPUTS.permute(0, 2, 3, 1) if INPUTS.ndim == 4 else INPUTS.unsqueeze(-1)).expand(-1, -1, -1, 3)
    found = load_run(home / "run").predict(INPUTS, decide="crm", shares=SHARES)
    if suffix == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(str(home / "m.onnx"))
        names = [output.name for output in session.get_outputs()]
        values = dict(zip(names, session.run(None, {"inputs": pixels.contiguous().numpy()}), strict=True))
        about = json.loads(session.get_modelmeta().custom_metadata_map["labelkin"])
    else:
        extra = {"labelkin.json": ""}
        program = torch.export.load(home / "m.pt2", extra_files=extra).module()
        values, about = program(pixels.contiguous()), json.loads(extra["labelkin.json"])
    assert np.asarray(values["class_index"]).tolist() == found.positions.tolist()
    np.testing.assert_allclose(np.exp(np.asarray(values["log_probs"])), expected(home / "run"), atol=1e-4)
    assert about["share_ratios"][0] == 0
    assert about["share_ratios"][9] > about["share_ratios"][1]


def test_a_served_run_answers_for_the_new_shares(home: Path):
    pytest.importorskip("fastapi")
    from labelkin.serve._answer import Answering

    model = load_run(home / "run")
    answering = Answering(model, model.rule("crm", shares=SHARES))
    wanted = model.predict(INPUTS[:30], decide="crm", shares=SHARES)
    other = decide.Rule("argmax", model.taxonomy).answer(expected(home / "run")[:30])
    for at, sample in enumerate(INPUTS[:30].split(1)):
        found = answering.answer(sample)
        assert found["answer"]["name"] == wanted.classes[at]
        assert found["rules"]["argmax"]["name"] == model.taxonomy.names[int(other.nodes[at])]


def test_a_run_that_held_nothing_out_has_no_former_shares(home: Path, tmp_path: Path):
    labelkin.train("digits", "one-hot", out=tmp_path / "run", epochs=1, calibration=0)
    with pytest.raises(
        InputError, match=r"shares: .* stores no held-out samples to measure the former shares on; train it with"
    ):
        load_run(tmp_path / "run").rule("argmax", shares=SHARES)
    labelkin.train("digits", "static-labels", out=tmp_path / "plain", epochs=1, calibration=0)
    with pytest.raises(InputError, match=r"shares: they need probabilities, .*; leave them out"):
        load_run(tmp_path / "plain").rule("argmax", shares=SHARES)


# Files of scores.


@pytest.fixture(scope="module")
def files(home: Path) -> Path:
    """Logits of labeled and of new samples, of the run."""
    outputs = RunFolder(home / "run").outputs()
    for name, scores, target in (
        ("held-out", outputs["calibration_scores"], outputs["calibration_target"]),
        ("new", load_run(home / "run").predict(INPUTS).scores, None),
    ):
        given = {} if target is None else {"target": target.numpy()}
        np.savez(home / f"{name}.npz", logits=scores.numpy(), classes=np.array(DIGITS), **given)
    return home


@pytest.mark.parametrize("given", ["csv", "json", "mapping", "numbers"])
def test_files_are_decided_for_the_new_shares(given: str, files: Path, tmp_path: Path):
    by_name = dict(zip(reversed(DIGITS), reversed(SHARES.tolist()), strict=True))
    (tmp_path / "shares.json").write_text(json.dumps(by_name))
    shares = {"csv": files / "shares.csv", "json": tmp_path / "shares.json", "mapping": by_name, "numbers": SHARES}[
        given
    ]
    options = {"labeled": files / "held-out.npz", "taxonomy": files / "tree.json", "explain": True}
    found = decide_file(files / "new.npz", tmp_path / "out.csv", shares=shares, **options)
    with np.load(files / "held-out.npz") as held, np.load(files / "new.npz") as new:
        scores, logits = torch.from_numpy(held["logits"]).double(), torch.from_numpy(new["logits"]).double()
    trained = (scores / found.temperature).softmax(-1).mean(0)
    probs = decide.adjust_shares((logits / found.temperature).softmax(-1), SHARES, trained)
    tree = Taxonomy.load(files / "tree.json").reorder(DIGITS)
    answers = decide.least_cost(probs, tree)
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [row["decision"] for row in rows] == [DIGITS[at] for at in answers]
    written = [float(row["decision_probability"]) for row in rows]
    np.testing.assert_allclose(written, probs.gather(1, answers.unsqueeze(1)).squeeze(1), rtol=1e-4)
    reasons = decide.explain(probs, tree, torch.from_numpy(tree.leaves.copy())[answers])
    assert [row["decision_path"] for row in rows] == [str(reason) for reason in reasons]
    assert found.shifted is None
    assert found.changed == int((answers != probs.argmax(-1)).sum())
    plain = decide_file(files / "new.npz", tmp_path / "plain.csv", **options)
    assert plain.shifted is not None
    assert (tmp_path / "plain.csv").read_text() != (tmp_path / "out.csv").read_text()


def test_shares_without_labeled_samples_are_refused(files: Path, tmp_path: Path):
    command = ("decide", files / "new.npz", "-o", tmp_path / "out.csv", "--taxonomy", files / "tree.json")
    told = refused(*command, "--shares", files / "shares.csv")
    assert "labeled: class shares need samples with the former shares and true classes" in told
    assert not (tmp_path / "out.csv").exists()


BAD = {
    "missing": ("0,1\n1,2\n", "has no share of '2', '3', '4'"),
    "unknown": (
        "\n".join([*(f"{digit},1" for digit in DIGITS), "ten,1"]),
        "has a share of 'ten', which is not a class",
    ),
    "negative": ("\n".join([*(f"{digit},1" for digit in DIGITS[:9]), "9,-1"]), "the share of '9'"),
    "a word": ("\n".join([*(f"{digit},1" for digit in DIGITS[:9]), "9,many"]), "is not a file of shares by class name"),
    "three columns": ("0,1,1\n", "expected a class and a share in each line"),
    "zeros": ("\n".join(f"{digit},0" for digit in DIGITS), "expected at least one share above 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_file_of_shares_is_refused(case: str, files: Path, tmp_path: Path):
    text, message = BAD[case]
    (tmp_path / "shares.csv").write_text(text)
    command = ("decide", files / "new.npz", "-o", tmp_path / "out.csv", "--labeled", files / "held-out.npz")
    told = refused(*command, "--taxonomy", files / "tree.json", "--shares", tmp_path / "shares.csv")
    assert "Error: shares: " in told
    assert message in " ".join(told.split())
    assert not (tmp_path / "out.csv").exists()


def test_other_sources_of_shares_are_refused(tmp_path: Path):
    for source, message in (
        (tmp_path / "none.csv", "shares: there is no file"),
        (tmp_path, "shares: there is no file"),
        ("shares.txt", "shares: there is no file 'shares.txt'"),
        (object(), "shares: expected a file, a mapping"),
        ({"cat": 1}, "shares: the mapping has no share of 'dog'"),
    ):
        with pytest.raises(InputError, match=message):
            shares_for(source, ("cat", "dog"))
    (tmp_path / "shares.txt").write_text("cat,1\ndog,2\n")
    with pytest.raises(InputError, match=r"expected a \.csv or \.json file"):
        shares_for(tmp_path / "shares.txt", ("cat", "dog"))
    (tmp_path / "semicolons.csv").write_text("class;share\ncat;0,25\ndog;0,75\n")
    assert shares_for(tmp_path / "semicolons.csv", ("dog", "cat")).tolist() == [0.75, 0.25]
