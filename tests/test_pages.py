"""The pages of the documentation: code that runs and prints what the page shows, and commands that exist."""

import re
from pathlib import Path

import pytest
import torch

from labelkin import Taxonomy
from support.snippets import command_lines, fences, printed_and_shown, unknown_words

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("how-to/*.md"), *(DOCS / f"{name}.md" for name in ("install", "faq", "commands"))])
TUTORIALS = sorted(DOCS.glob("tutorials/*.py"))
COMMANDS = sorted({line for path in DOCS.rglob("*.md") for line in command_lines(path)})


@pytest.mark.long
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_page_prints_what_the_page_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    for printed, shown in printed_and_shown(path.read_text(encoding="utf-8")):
        assert printed == shown


def test_the_code_about_texts_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"a {word} book,{stars}\n" for word, stars in (("good", 5), ("bad", 1)) for _ in range(10))
    Path("reviews.csv").write_text(f"body,stars\n{rows}")
    ((printed, _),) = printed_and_shown((DOCS / "text.md").read_text("utf-8"))
    assert re.fullmatch(r"a (good|bad) book torch\.Size\(\[\d+\]\)\n", printed)


def test_the_code_about_diagnosis_runs(capsys: pytest.CaptureFixture[str]):
    from labelkin import HierarchicalCrossEntropy

    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "truck"]})
    generator = torch.Generator().manual_seed(0)
    names = {
        "tree": tree,
        "objective": HierarchicalCrossEntropy(tree),
        "outputs": torch.randn(200, 4, generator=generator),
        "target": torch.randint(4, (200,), generator=generator),
        "plain_log_probs": torch.randn(200, 4, generator=generator).log_softmax(-1),
    }
    (code,) = (code for language, code in fences((DOCS / "diagnosis.md").read_text("utf-8")) if language == "python")
    exec(code, names)
    assert capsys.readouterr().out.lower().startswith(names["found"].cause)


@pytest.mark.long
@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_pages_exist(line: str):
    assert unknown_words(line) == []


@pytest.mark.long
def test_the_commands_within_sentences_exist():
    """Also those of the tutorials; `a|b` names two values."""
    texts = {path: path.read_text("utf-8") for path in [ROOT / "README.md", *DOCS.rglob("*.md")]}
    texts |= {path: path.read_text("utf-8").replace("\n# ", " ") for path in TUTORIALS}
    wrong = [
        (path.name, command)
        for path, text in texts.items()
        for command in re.findall(r"`(labelkin [a-z][^`]*)`", text)
        if unknown_words(command.replace("|", " "))
    ]
    assert wrong == []


@pytest.mark.long
def test_an_unknown_command_or_option_is_seen():
    assert unknown_words("labelkin audits x.csv") == ["audits"]
    assert unknown_words("labelkin decide x.csv -o y.csv --cost c.csv") == ["--cost"]
    assert unknown_words("labelkin runs pack runs -o x.zip  # --nothing") == []


def test_the_plan_of_the_page_is_one(tmp_path: Path):
    pytest.importorskip("yaml")
    from labelkin.comparison import read_plan

    (code,) = (
        code for language, code in fences((DOCS / "how-to" / "plans.md").read_text("utf-8")) if language == "yaml"
    )
    (tmp_path / "plan.yaml").write_text(code, encoding="utf-8")
    assert read_plan(tmp_path / "plan.yaml").seeds == (0, 1, 2)
