"""The README's own lines, run."""

import re
import shlex
from pathlib import Path

import pytest
import torch
from torch import nn

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_loop_runs():
    torch.manual_seed(0)
    backbone = nn.Linear(10, 512)
    names = {
        "backbone": backbone,
        "batches": [(torch.randn(8, 10), torch.randint(4, (8,)))] * 3,
    }
    start = backbone.weight.clone()
    (code,) = (block for block in blocks("python") if "\nfor " in block)
    setup, loop = code.split("\nfor ")
    exec(setup, names)
    head_start = names["head"].head.weight.clone()
    exec(f"for {loop}", names)
    assert names["predicted"].shape == (8,)
    assert not torch.equal(backbone.weight, start)
    assert not torch.equal(names["head"].head.weight, head_start)


def test_the_audit_runs(capsys):
    (code,) = (block for block in blocks("python") if "audit_predictions" in block)
    names = {"y_test": torch.randint(4, (100,)).numpy(), "probs": torch.rand(100, 4).softmax(-1).numpy()}
    exec(code, names)
    assert "accuracy" in capsys.readouterr().out
    assert names["audit"].hierarchy.severity > 0
    tree, probs = names["tree"].reorder(["car", "cat", "dog", "truck"]), torch.from_numpy(names["probs"])
    costs = probs.double() @ torch.from_numpy(tree.distance())
    assert torch.equal(names["decisions"], costs.argmin(-1))


def test_it_is_short():
    """A stranger reads it to the end; all else is in docs/."""
    assert len(README.splitlines()) <= 110
    assert all(len(block.splitlines()) <= 14 for block in blocks("python"))


@pytest.mark.long
@pytest.mark.parametrize("line", [line for block in blocks("sh") for line in block.splitlines() if "labelkin " in line])
def test_the_commands_exist(line: str):
    """Each word after `labelkin` that is a command, and every option, is one that its help names."""
    from typer.testing import CliRunner

    from labelkin.cli._app import app

    words = shlex.split(line, comments=True)[1:]
    command = words[:2] if words[0] in ("taxonomy", "data", "runs", "bench") else words[:1]
    shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    for option in (word for word in words if word.startswith("--")):
        assert option in shown.output


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (Path(__file__).resolve().parents[1] / target).exists(), target
