"""The page of an audit, from the predictions of a model that labelkin did not train."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from labelkin.audit import audit
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


def test_the_page_says_first_how_good_and_how_mild(arrays: dict[str, np.ndarray], tree: Path, tmp_path: Path):
    found = audit(arrays, taxonomy=tree)
    page = write_audit_page(found, tmp_path / "page.html").read_text()
    right = (arrays["probs"].argmax(1) == arrays["target"]).mean()
    assert f"The accuracy is {100 * right:.1f} %" in page
    assert f"severity {found.hierarchy.severity:.2f} against {found.hierarchy.severity_by_chance:.2f}" in page
    assert "0 <script>" not in page  # names are text
    assert "What arrays learned" not in page
    changed = found.crm[0].changed
    assert f"changes {changed:,} decision" in page
    assert re.search(
        rf"{found.crm[0].became_right:,} becomes? correct and {found.crm[0].became_wrong:,} becomes? wrong", page
    )


def test_without_a_taxonomy_nothing_is_costed_on_a_learned_tree(arrays: dict[str, np.ndarray], tmp_path: Path):
    page = write_audit_page(audit(arrays), tmp_path / "page.html").read_text()
    assert "× distance 2" not in page
    assert "Effect of cost-based decisions" not in page
    assert "Each mistake costs 1." in page
    assert "need a taxonomy" in page
    assert "against" not in page.partition("</h1>")[0].rpartition("<h1")[2]


def test_labels_alone_give_a_page_too(arrays: dict[str, np.ndarray], tree: Path, tmp_path: Path):
    labels = {"predicted": arrays["classes"][arrays["probs"].argmax(1)], "target": arrays["classes"][arrays["target"]]}
    page = write_audit_page(audit(labels, kind="labels", taxonomy=tree), tmp_path / "page.html").read_text()
    assert "The accuracy is" in page


def test_the_command_writes_it_beside_its_text(arrays: dict[str, np.ndarray], tmp_path: Path):
    np.savez(tmp_path / "p.npz", **arrays)
    told = call("audit", tmp_path / "p.npz", "--html", tmp_path / "page.html", "--json")
    assert json.loads(told.stdout)["samples"] == len(arrays["target"])
    assert f"Wrote {tmp_path / 'page.html'}" in told.stderr
    assert (tmp_path / "page.html").stat().st_size < 8e6
    assert "ends in .html" in call("audit", tmp_path / "p.npz", "--html", tmp_path / "page.txt").stderr
    assert "no such file" in refused("audit", tmp_path / "none.npz")
