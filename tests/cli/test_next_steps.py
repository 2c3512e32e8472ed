"""What an audit advises comes with the command that does it, and the tree that it suggests with a file."""

import html
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from labelkin import Taxonomy
from labelkin.audit import audit
from support.commands import call, refused

NAMES = ["owl, barn", "owl, snowy", "crane", "crane truck"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scores of 1,200 samples, in which kin classes are often confused; costs by which this matters; a tree."""
    labels = np.random.default_rng(0).integers(4, size=1200)
    near = np.eye(4) + np.kron(np.eye(2), np.ones((2, 2)))
    logits = near[labels] + np.random.default_rng(1).normal(size=(1200, 4))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    header = ["customer", *(f'"{name}"' for name in NAMES), "kind"]
    rows = [
        [f"C{i}", *map(str, row), f'"{NAMES[label]}"'] for i, (row, label) in enumerate(zip(probs, labels, strict=True))
    ]
    (tmp_path / "my scores.csv").write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    costs = [[0 if a == b else 20 if a == NAMES[0] else 1 for b in NAMES] for a in NAMES]
    lines = [["", *header[1:-1]], *([f'"{name}"', *map(str, row)] for name, row in zip(NAMES, costs, strict=True))]
    (tmp_path / "costs.csv").write_text("\n".join(",".join(line) for line in lines) + "\n")
    (tmp_path / "tree.json").write_text(json.dumps({"birds": NAMES[:2], "cranes": NAMES[2:]}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


READ = ("my scores.csv", "--kind", "probs", "--target", "kind", "--ignore", "customer")


def test_the_commands_run_as_they_are_and_do_what_was_advised(folder: Path):
    printed = call("audit", *READ, "--costs", "costs.csv", "--taxonomy", "tree.json").stdout
    title, *commands = printed.splitlines()[-3:]
    assert title == "Next step, one or the other, with the file of new samples in place of my scores.csv"
    found = audit(
        "my scores.csv", kind="probs", target="kind", ignore="customer", costs="costs.csv", taxonomy="tree.json"
    )
    assert found.fallback is not None
    point = next(point for point in found.fallback.points if point.threshold == found.advice.threshold)
    for command, share in zip(commands, (1, point.leaf_share), strict=True):
        assert command.startswith("  labelkin decide 'my scores.csv' -o decisions.csv --kind probs --target kind")
        told = call(*shlex.split(command)[1:], "--json").stdout
        assert abs(json.loads(told)["classes"] / 1200 - share) < 0.05
        assert json.loads(told)["temperature"] == pytest.approx(found.fallback.temperature, abs=5e-4)
    assert "--costs costs.csv" in commands[0]
    assert f"--threshold {point.threshold:g}" in commands[1]


def test_no_command_where_nothing_is_advised(folder: Path):
    assert "Next step" not in call("audit", *READ).stdout
    one = call("audit", *READ, "--taxonomy", "tree.json").stdout.splitlines()[-2:]
    assert one[0] == "Next step, with the file of new samples in place of my scores.csv"


def test_the_suggested_tree_is_written_for_the_next_command(folder: Path):
    call("audit", *READ, "--save-tree", "groups.json")
    tree = Taxonomy.load("groups.json")
    assert set(tree.classes) == set(NAMES)
    assert tree.lca(*(tree.leaves[tree.classes.index(name)] for name in NAMES[:2])) != 0
    assert "Next step" in call("audit", *READ, "--taxonomy", "groups.json").stdout
    call("audit", *READ, "--save-tree", "groups.json")  # the same content may be written again
    assert "Error: groups.txt: expected a name that ends in" in refused("audit", *READ, "--save-tree", "groups.txt")
    assert "there is no folder 'no'" in refused("audit", *READ, "--save-tree", "no/groups.json")
    taken = call("audit", *READ, "--save-tree", "costs.csv")
    assert (taken.exit_code, "this exists and was not written by this command" in taken.stderr) == (2, True)
    assert refused("taxonomy", "convert", "tree.json", "tree.txt").startswith("Error: tree.txt: expected a name")


def test_the_page_shows_the_commands(folder: Path):
    given = (*READ, "--costs", "costs.csv", "--taxonomy", "tree.json")
    printed = call("audit", *given, "--html", "page.html").stdout.splitlines()
    page = html.unescape((folder / "page.html").read_text(encoding="utf-8"))
    shown = page.partition('<pre class="steps"')[2].partition(">")[2].partition("</pre>")[0]
    assert shown.splitlines() == printed[-3:]
    call("audit", *READ, "--html", "none.html")
    assert 'class="steps"' not in (folder / "none.html").read_text(encoding="utf-8")
