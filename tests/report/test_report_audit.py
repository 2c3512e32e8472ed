"""The page of an audit, from the predictions of a model that labelkin did not train."""

import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import labelkin
from labelkin import Taxonomy
from labelkin.audit import as_text, audit
from labelkin.report._audit_page import write_audit_page
from support.commands import call, refused


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    inputs, target = load_digits(return_X_y=True)
    model = LogisticRegression(C=1e-4, max_iter=300).fit(inputs[:600], target[:600])
    names = np.array([f"{digit} <script>" for digit in range(10)])
    return {"probs": model.predict_proba(inputs[600:]), "target": target[600:], "classes": names}


@pytest.fixture
def tree(arrays: dict[str, np.ndarray], tmp_path: Path) -> Path:
    names = arrays["classes"].tolist()
    (tmp_path / "tree.json").write_text(json.dumps({"low": names[:5], "high": names[5:]}))
    return tmp_path / "tree.json"


def shown(page: str) -> str:
    """What the page shows, without its scripts."""
    return unescape(page.partition("<script")[0]).replace("\u00a0", " ")


def heading(page: str) -> str:
    inside = shown(page).partition("</h1>")[0].rpartition("<h1>")[2]
    return " ".join(re.sub(r"<[^>]+>", "", inside).split())


@pytest.mark.long
def test_the_page_opens_with_what_to_do_and_what_it_is_worth(arrays: dict[str, np.ndarray], tree: Path, tmp_path: Path):
    found = audit(arrays, taxonomy=tree)
    page = write_audit_page(found, tmp_path / "page.html").read_text()
    assert heading(page).startswith(found.advice.headline)
    assert f'<p class="also">{found.advice.fallback}</p>' in shown(page)
    right = (arrays["probs"].argmax(1) == arrays["target"]).mean()
    assert f"The accuracy is {100 * right:.1f} %" in page
    assert f"severity {found.hierarchy.severity:.2f} against {found.hierarchy.severity_by_chance:.2f}" in page
    assert "0 <script>" not in page  # names are text


@pytest.mark.long
def test_costs_of_ones_own_change_the_heading_and_the_confusions(
    arrays: dict[str, np.ndarray], tree: Path, tmp_path: Path
):
    costs = np.where(np.arange(10)[:, None] < np.arange(10), 30.0, 1.0)
    np.fill_diagonal(costs, 0)
    found = audit(arrays, taxonomy=tree, costs=costs)
    page = write_audit_page(found, tmp_path / "page.html").read_text()
    by_tree = write_audit_page(audit(arrays, taxonomy=tree), tmp_path / "tree.html").read_text()
    assert found.advice.rule == "crm"
    saved = 100 * found.advice.saved.share
    assert f"a decision costs {saved:.0f} % less" in heading(page) != heading(by_tree)
    assert f'<p class="evidence">95 % interval, {found.advice.samples} samples' in page
    assert "× cost 30" in shown(page)
    assert "× distance" not in shown(page)
    worst = found.worst.confusions[0]
    assert f"<b>{worst.cost:g}</b> = {worst.times} times × cost 30" in shown(page)


@pytest.mark.long
def test_the_details_have_the_command_and_do_not_repeat_the_heading(arrays: dict[str, np.ndarray], tmp_path: Path):
    rules = set()
    for high in (1.0, 30.0):
        costs = np.where(np.arange(10)[:, None] < np.arange(10), high, 1.0)
        np.fill_diagonal(costs, 0)
        found = audit(arrays, costs=costs)
        page = shown(write_audit_page(found, tmp_path / "page.html").read_text())
        detail = page.partition('<ul class="detail">')[2].partition("</ul>")[0]
        assert ("labelkin decide --rule crm" in detail) == (found.advice.rule == "crm")
        assert "The accuracy is" in detail
        assert "Keep the most probable class" not in detail
        rules.add(found.advice.rule)
    assert rules == {"argmax", "crm"}


@pytest.mark.long
def test_the_evidence_comes_in_its_order(arrays: dict[str, np.ndarray], tree: Path, tmp_path: Path):
    page = shown(write_audit_page(audit(arrays, taxonomy=tree), tmp_path / "page.html").read_text())
    titles = re.findall(r"<h3[^>]*>([^<]+)</h3>", page)
    assert titles[:9] == [
        "Cost before and after",
        "Before and after",
        "Reliability of the probabilities",
        "Risk and coverage",
        "Naming an ancestor when unsure",
        "Costliest confusions",
        "Map of the confusions",
        "Taxonomy and learned tree",
        "Far apart in the taxonomy, but often confused",
    ]


@pytest.mark.long
def test_the_figures_have_the_numbers_of_the_audit(arrays: dict[str, np.ndarray], tree: Path, tmp_path: Path):
    found = audit(arrays, taxonomy=tree)
    page = write_audit_page(found, tmp_path / "page.html").read_text()
    (shared,) = re.findall(r'<script type="application/json" id="shared">(.*?)</script>', page)
    drawn = json.loads(shared)["figures"]
    assert list(drawn) == ["cost", "calibration", "risk", "confusions", "learned"]
    (cost,) = drawn["cost"].values()
    before, after = cost["data"][-2:]
    assert before["x"] == [part.distance_at_1.before for part in found.crm]
    assert after["x"] == [part.distance_at_1.after for part in found.crm]
    change = found.crm[1].distance_at_1
    assert after["error_x"]["array"][1] == pytest.approx(change.high - change.change)
    assert after["error_x"]["arrayminus"][1] == pytest.approx(change.change - change.low)
    _, unscaled, scaled = drawn["calibration"][""]["data"]
    kept = [n for n in found.calibration.scaled.before.samples if n]
    assert unscaled["customdata"] == kept
    assert scaled["customdata"] == [n for n in found.calibration.scaled.after.samples if n] != kept
    lines = {line["name"]: line for line in drawn["risk"][""]["data"]}
    assert list(lines) == ["10 classes", "2 groups"]
    assert lines["2 groups"]["y"][-1] == pytest.approx(found.fallback.levels[1].risk[-1], abs=1e-5)
    table = re.search(r"<bdi>95 % right</bdi>.*?</tr>", page, re.DOTALL)
    point = next(point for point in found.fallback.points if point.goal == 0.95)
    assert table is not None
    shares = (point.correctness, point.leaf_share, point.above_share, point.unanswered)
    assert re.findall(r"<td[^>]*><bdi>([^<]+)</bdi>", table[0])[1:] == [f"{100 * share:.1f}" for share in shares]


@pytest.mark.long
def test_without_a_taxonomy_nothing_is_costed_on_a_learned_tree(arrays: dict[str, np.ndarray], tmp_path: Path):
    page = write_audit_page(audit(arrays), tmp_path / "page.html").read_text()
    assert "× distance" not in page
    assert heading(page) == "Say what mistakes cost (--costs or --taxonomy)."
    assert "a group of confused classes below a probability of" in shown(page)
    assert "while all cost the same" in page  # where the costs would be
    assert "Each mistake costs 1." in page
    assert "need a taxonomy" in page
    assert "Learned tree" in page


@pytest.mark.long
def test_labels_alone_give_a_page_too(arrays: dict[str, np.ndarray], tree: Path, tmp_path: Path):
    labels = {"predicted": arrays["classes"][arrays["probs"].argmax(1)], "target": arrays["classes"][arrays["target"]]}
    page = write_audit_page(audit(labels, kind="labels", taxonomy=tree), tmp_path / "page.html").read_text()
    assert heading(page).startswith("Save logits or probabilities")
    assert "The accuracy is" in page
    assert page.count('<p class="absent">This needs logits or probabilities') == 3


def test_few_samples_and_few_classes_give_a_page_too(tmp_path: Path):
    given = {"target": [0, 1, 1], "probs": [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]}
    page = shown(write_audit_page(audit(given, costs=[[0, 1], [9, 0]]), tmp_path / "page.html").read_text())
    assert "This needs more samples" in page
    assert "The learned tree needs at least 3 classes." in page
    many = np.arange(200).repeat(2)
    page = shown(
        write_audit_page(audit({"target": many, "predicted": np.roll(many, 1)}), tmp_path / "page.html").read_text()
    )
    assert "drawn for at most 150 classes" in page


@pytest.mark.long
def test_the_command_writes_it_beside_its_text(arrays: dict[str, np.ndarray], tmp_path: Path):
    np.savez(tmp_path / "p.npz", **arrays)
    told = call("audit", tmp_path / "p.npz", "--html", tmp_path / "page.html", "--json")
    assert json.loads(told.stdout)["samples"] == len(arrays["target"])
    assert f"Wrote {tmp_path / 'page.html'}" in told.stderr
    assert (tmp_path / "page.html").stat().st_size < 8e6
    assert "ends in .html" in call("audit", tmp_path / "p.npz", "--html", tmp_path / "page.txt").stderr
    assert "no such file" in refused("audit", tmp_path / "none.npz")


@pytest.mark.long
def test_a_table_and_a_run_have_the_same_page(arrays: dict[str, np.ndarray], tree: Path, tmp_path: Path):
    """A CSV file gives the page of the arrays, and a run that of its predictions."""
    names = arrays["classes"].tolist()
    rows = zip(arrays["target"].tolist(), arrays["probs"].tolist(), strict=True)
    lines = [",".join(["target", *names]), *(",".join([names[t], *map(repr, row)]) for t, row in rows)]
    (tmp_path / "p.csv").write_text("\n".join(lines), encoding="utf-8")
    np.savez(tmp_path / "p.npz", **arrays)
    pages = []
    for source in ("p.csv", "p.npz"):
        call("audit", tmp_path / source, "--kind", "probs", "--taxonomy", tree, "--html", tmp_path / "page.html")
        pages.append(heading((tmp_path / "page.html").read_text()))
    assert pages[0] == pages[1] != ""
    groups = labelkin.Taxonomy.from_nested({"low": list("01234"), "high": list("56789")})
    groups.save(tmp_path / "groups.json")
    run = labelkin.train("digits", out=tmp_path / "run", backbone="mlp", epochs=1, taxonomy=tmp_path / "groups.json")
    call("audit", tmp_path / "run", "--html", tmp_path / "run.html")
    page = shown((tmp_path / "run.html").read_text())
    assert f"The accuracy is {100 * run.metrics['accuracy']:.1f} %" in page
    assert "Risk and coverage" in page
    assert "Taxonomy: of the run (10 classes, 13 nodes, height 2)" in page
    digits = "0123456789"
    costs = {true: {**{answer: float(answer != true) for answer in digits}, "ask": 0.1} for true in digits}
    helped = audit(tmp_path / "run", costs=costs)
    assert helped.advice.rule == "crm"
    assert "(labelkin predict --decide crm --costs FILE): the cost per sample falls" in helped.advice.sentence
    assert audit(tmp_path / "run", taxonomy=groups).taxonomy == "as given (10 classes, 13 nodes, height 2)"


def test_large_numbers_are_written_out_and_random_mistakes_are_called_so(tmp_path: Path):
    make = np.random.default_rng(0)
    target, noise = make.integers(0, 4, 40_000), make.normal(size=(40_000, 4))
    classes = ["cat", "dog", "car", "bus"]
    probs = torch.from_numpy(noise + np.eye(4)[target]).softmax(-1).numpy()
    nested = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]})
    costs = 1e4 * (1 - np.eye(4))
    found = audit({"target": target, "probs": probs, "classes": classes}, taxonomy=nested, costs=costs)
    page = write_audit_page(found, tmp_path / "a.html").read_text()
    worst = found.worst.confusions[0]
    assert worst.cost > 1e6
    assert f"{worst.cost:,.0f}</b> = {worst.times:,} times" in page
    assert "mistakes are about as severe as random ones: severity 1.67 against 1.67" in page
    text = as_text(found)
    assert f"{worst.times:,}  " in text
    assert f"{worst.cost:,.0f}" in text
    assert f"on the other {found.calibration.scaled.measured_on:,}: ECE" in text
    for written in (text, shown(page)):
        assert not re.search(r"\de\+\d\d expected|>\d[.\d]*e\+\d\d<|  \d[.\d]*e\+\d\d ", written)
