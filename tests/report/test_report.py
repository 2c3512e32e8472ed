"""What the report says: its first sentence, its numbers, and what it shows where parts are missing."""

import csv
import json
import re
import shutil
from base64 import b64decode, b64encode
from hashlib import sha256
from io import BytesIO
from math import nan
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch
import typer
from PIL import Image
from typer.testing import CliRunner

import labelkin
from labelkin import InputError, Taxonomy
from labelkin.analysis import Activity, Memory, Points
from labelkin.cli._report import report
from labelkin.comparison import Comparison, Row, summarize
from labelkin.report import read_comparisons, targets, write_model_page, write_report
from labelkin.report._build_page import build_page, first_shown
from labelkin.report._groups import superclasses
from labelkin.report._inspect_run import png_uri, subject
from labelkin.report._leaderboard import COLUMNS, COST_COLUMNS, leaderboard
from labelkin.report._learned import Features, feature_panels
from labelkin.report._mistakes import costliest_part, mistakes_of
from labelkin.report._page_model import Page, Panel
from labelkin.report._provenance import compare_command
from labelkin.report._write import render
from labelkin.report.figures._learning import mean_curves
from labelkin.runs import Record, Store
from labelkin.structure import _catalogue as catalogue
from support.clock import units_of_work
from support.commands import call

pytest_plugins = ["support.report_pages"]


def record(label: str, seed: int, severity: float) -> Record:
    config = {"objective": label, "settings": {"seed": seed}}
    return Record("0", Path(label), label, config, {"accuracy": 0.9, "severity": severity}, 1.0)


def row(label: str, difference: float, low: float, high: float, *, runs: int = 3, severity: float = 2.0) -> Row:
    return Row(
        label, label, runs, tuple(range(runs)), 0.9 + difference, 0.01, difference, 0.01, low, high, severity=severity
    )


def compared(
    *rows: Row, reference: str | None = "one-hot", severities: dict[str, list[float]] | None = None
) -> Comparison:
    given = severities or {each.label: [each.severity] * each.runs for each in rows}
    records = {label: [record(label, seed, s) for seed, s in enumerate(found)] for label, found in given.items()}
    return Comparison(list(rows), reference, "digits", "given", Path("runs"), records, [])


REFERENCE = row("one-hot", 0.0, 0.0, 0.0)
ALONE = row("one-hot", 0.0, nan, nan, runs=1)


@pytest.mark.parametrize(
    ("rows", "kind", "advice", "sentence"),
    [
        (
            [REFERENCE, row("a", 0.012, 0.004, 0.02), row("b", 0.02, 0.001, 0.039)],
            "winner",
            "Use b",
            "b is 2.00 percentage points more accurate than one-hot (95 % interval +0.10 to +3.90, n = 3 seeds).",
        ),
        (
            [REFERENCE, row("a", 0.003, -0.002, 0.008), row("b", -0.02, -0.03, -0.01)],
            "tie",
            "Keep one-hot",
            "No objective is shown to be more accurate than one-hot (best: a, +0.30 percentage points, 95 % interval −0.20 to "
            "+0.80 includes 0, n = 3 seeds).",
        ),
        (
            [REFERENCE, row("a", 0.003, -0.002, 0.008)],
            "tie",
            "Keep one-hot",
            "a is not shown to be more accurate than one-hot (+0.30 percentage points, 95 % interval −0.20 to +0.80 includes "
            "0, n = 3 seeds).",
        ),
        (
            [REFERENCE, row("noisy", 0.02, -0.01, 0.05), row("a", 0.012, 0.004, 0.02)],
            "winner",
            "Use a",
            "a is 1.20 percentage points more accurate than one-hot (95 % interval +0.40 to +2.00, n = 3 seeds).",
        ),
        (
            [REFERENCE, row("a", -0.011, -0.02, -0.002)],
            "behind",
            "Keep one-hot",
            "a is 1.10 percentage points less accurate than one-hot (95 % interval −2.00 to −0.20, n = 3 seeds).",
        ),
        (
            [REFERENCE, row("a", -0.011, -0.02, -0.002), row("b", -0.02, -0.03, -0.01)],
            "behind",
            "Keep one-hot",
            "a, the best other objective, is 1.10 percentage points less accurate than one-hot (95 % interval −2.00 to −0.20, "
            "n = 3 seeds).",
        ),
        (
            [ALONE, row("a", 0.05, nan, nan, runs=1)],
            "one seed",
            "Run more seeds",
            "One seed cannot show whether a difference is due to chance; a has the highest accuracy with 95.00 %, one-hot has "
            "90.00 % (n = 1 seed).",
        ),
        (
            [ALONE, row("a", -0.05, nan, nan, runs=1)],
            "one seed",
            "Run more seeds",
            "One seed cannot show whether a difference is due to chance; one-hot has the highest accuracy with 90.00 % "
            "(n = 1 seed).",
        ),
        ([], "nothing", "No results yet", "No run has finished, so there is nothing to compare."),
    ],
)
def test_the_first_sentence_says_what_may_be_said(rows: list[Row], kind: str, advice: str, sentence: str):
    found = compared(*rows).verdict
    assert (found.kind, found.advice, str(found)) == (kind, advice, sentence)


def test_without_a_reference_nothing_is_compared():
    alone = [row("a", nan, nan, nan), row("b", nan, nan, nan)]
    found = compared(*alone, reference=None).verdict
    assert (found.kind, found.winner, found.advice) == ("no reference", None, "Add a reference")
    assert str(found).startswith("No run of the reference has finished, so no differences are known; a has the highest")


def test_a_reference_alone_or_with_other_seeds_is_not_compared():
    found = compared(REFERENCE).verdict
    assert (found.kind, found.advice) == ("no reference", "Add objectives")
    assert str(found) == "one-hot is the only objective with finished runs; its accuracy is 90.00 %."
    other = compared(REFERENCE, row("a", nan, nan, nan)).verdict
    assert (other.kind, other.advice) == ("no reference", "Use the same seeds")
    assert str(other).startswith("No objective has a run with the same seed as one-hot")


@pytest.mark.parametrize(
    ("lows", "expected"),
    [
        ([0.001], None),
        (
            [-0.01, -0.01],
            None,
        ),
        ([-0.01, -0.03], "Of 2 objectives, 1 is shown to be less accurate (o1)."),
        (
            [0.001, -0.01],
            "Of 2 objectives, 1 is shown to be more accurate than one-hot (o0) and none is shown to be less accurate.",
        ),
        (
            [0.001, 0.001, -0.01, -0.01, -0.03],
            "Of 5 objectives, 2 are shown to be more accurate than one-hot (o0, o1) and 1 is shown to be less accurate "
            "(o4). By chance alone, about 0.1 would look better.",
        ),
    ],
)
def test_objectives_are_counted_in_the_singular_and_the_plural(lows: list[float], expected: str | None):
    rows = [row(f"o{i}", low + 0.01, low, low + 0.02, severity=nan) for i, low in enumerate(lows)]
    assert compared(REFERENCE, *rows).verdict.details == (() if expected is None else (expected,))


@pytest.mark.parametrize(("count", "start"), [(1, "This confusion makes up"), (2, "These 2 confusions make up")])
def test_confusions_are_counted_in_the_singular_and_the_plural(count: int, start: str):
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]})
    predicted = torch.tensor([[1, 1, 2, 3], [1, 0, 2, 3]][count - 1])
    found = mistakes_of(torch.eye(4)[predicted], torch.arange(4), tree, log_probs=False)
    note = costliest_part(found.costliest).note
    assert note == f"The cost is the count times the distance in the tree. {start} 100 % of the cost of all mistakes."
    assert costliest_part(found.costliest, unit="").note.startswith("Each mistake costs 1. ")


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (
            [2.0, 2.1, 2.0],
            "a makes less severe mistakes than one-hot and is not shown less accurate (severity 2.00 against 3.00",
        ),
        (
            [2.0, 3.9, 2.2],
            "a is not shown to make less severe mistakes than one-hot at similar accuracy (severity 2.00 against 3.00",
        ),
    ],
)
def test_milder_mistakes_are_claimed_only_where_the_seeds_show_them(theirs: list[float], expected: str):
    rows = [REFERENCE._replace(severity=3.0), row("a", 0.0, -0.01, 0.01), row("worse", -0.1, -0.2, -0.05, severity=0.1)]
    found = compared(*rows, severities={"one-hot": [3.0, 3.1, 2.9], "a": theirs, "worse": [0.1] * 3})
    assert found.verdict.details[1].startswith(expected)


@pytest.mark.parametrize(("rivals", "said"), [(1, False), (4, False), (5, True)])
def test_the_notes_mention_chance_only_for_several_objectives(rivals: int, said: bool):
    rows = [row(f"o{i}", 0.01, 0.001, 0.02) for i in range(rivals)]
    found = compared(REFERENCE, *rows)
    notes = " ".join([*leaderboard(found, []).notes, *found.verdict.details])
    assert ("By chance alone" in notes) == said
    assert "Of 1 objectives" not in notes


def test_the_leaderboard_ranks_by_accuracy_and_draws_intervals_to_scale():
    rows = [row("a", -0.02, -0.03, -0.01, severity=1.0), REFERENCE, row("b", 0.01, 0.002, 0.018)]
    board = leaderboard(compared(*rows), ["a"])
    assert [line.label for line in board.lines] == ["b", "one-hot", "a"]
    assert [line.subject for line in board.lines] == [None, None, 0]
    assert "reference" in board.lines[1].tags
    better, reference, worse = (line.cells[1] for line in board.lines)
    assert (better.tone, reference.text, worse.tone) == ("better", "reference", "worse")
    assert better.interval is not None
    assert worse.interval is not None
    # -3 points lie at the left margin, +1.8 at the right one; 0 is 30/48 of the way.
    assert worse.interval[0] == pytest.approx(0.06)
    assert better.interval[2] == pytest.approx(0.94)
    assert board.zero == pytest.approx(0.06 + 0.88 * 3 / 4.8, abs=1e-4)
    severity = 1 + [column.title for column in COLUMNS].index("severity")
    assert [line.cells[severity].best for line in board.lines] == [False, False, True]


@pytest.mark.parametrize(
    ("others", "labels", "shown"),
    [
        ([row("a", 0.003, -0.002, 0.008)], ["a", "one-hot"], 1),  # keep one-hot
        ([row("b", 0.02, 0.001, 0.039)], ["one-hot", "b"], 1),
        ([row("a", 0.003, -0.002, 0.008)], ["a"], 0),  # one-hot cannot be analyzed
        ([row("a", 0.003, -0.002, 0.008)], [], 0),
    ],
)
def test_the_details_open_with_the_objective_to_use(others: list[Row], labels: list[str], shown: int):
    assert first_shown(compared(*others, REFERENCE), labels) == shown


def test_the_leaderboard_ranks_by_cost_where_it_decides():
    def decided(label: str, low: float, high: float) -> Row:
        change = (low + high) / 2
        given = {"cost_difference": change / 2, "cost_low": low / 2, "cost_high": high / 2, "cost": 0.5 + change / 2}
        given |= {"cost_change": change, "cost_change_low": low, "cost_change_high": high}
        return row(label, 0.0, -0.01, 0.01)._replace(basis="calibrated", decided_accuracy=0.8, **given)

    rows = [decided("dear", 0.02, 0.1), decided("one-hot", 0.0, 0.0), decided("cheap", -0.12, -0.04)]
    board = leaderboard(compared(*rows), [])
    assert [line.label for line in board.lines] == ["cheap", "one-hot", "dear"]
    assert board.columns[:2] == (("cost", False), ("against one-hot %", False))
    titles = [title for title, _ in board.columns]
    assert "AHD@5 above floor" not in titles  # unknown in all rows
    assert set(titles) - {"against one-hot %"} <= {column.title for column in COST_COLUMNS}
    better, reference, worse = (line.cells[1] for line in board.lines)
    assert (better.text, better.spread, better.tone) == ("−8.0", "−12.0 to −4.0", "better")
    assert (reference.text, worse.tone) == ("reference", "worse")


@pytest.mark.long
def test_curves_are_means_over_seeds(digits: Comparison):
    for curve in mean_curves(digits):
        read = []
        for found in digits.records[curve.label]:
            with (found.path / "metrics.csv").open(newline="") as file:
                read.append([float(line["test_accuracy"]) for line in csv.DictReader(file)])
        assert curve.mean == pytest.approx([mean(epoch) for epoch in zip(*read, strict=True)])
        assert curve.spread == pytest.approx([stdev(epoch) for epoch in zip(*read, strict=True)])
        assert curve.epochs == (1, 2, 3)


def test_superclasses_are_a_level_of_the_tree():
    tree = catalogue.taxonomy("cifar100")
    found = superclasses(tree)
    assert found is not None
    assert len(found.names) == 20
    parents = [tree.names[tree.parents[leaf]] for leaf in tree.leaves]
    assert [found.names[k] for k in found.of_class] == parents
    assert superclasses(Taxonomy.from_nested(["a", "b", "c"])) is None
    built = Taxonomy.from_nested([["a", "b"], ["c", "d"]])
    unnamed = superclasses(built, named=False)
    assert unnamed is not None
    assert unnamed.names == ("a, b", "c, d")


def test_what_deciding_by_cost_changes_is_counted_case_by_case():
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]})
    probs = torch.tensor([[0.4, 0.0, 0.3, 0.3], [0.1, 0.2, 0.3, 0.4], [0.6, 0.4, 0.0, 0.0]], dtype=torch.float64)
    target = torch.tensor([2, 3, 1])
    found = mistakes_of((probs + 1e-12).log(), target, tree, log_probs=True)
    expected = probs @ torch.as_tensor(tree.distance("height")).double()
    decided = [min(range(4), key=lambda k: float(costs[k])) for costs in expected]
    assert found.cost_rule is not None
    assert decided == [2, 3, 0]  # of the first sample only machines are likely enough, together
    assert found.cost_rule.before.accuracy == pytest.approx(1 / 3)
    assert found.cost_rule.after.accuracy == pytest.approx(2 / 3)
    changed = found.cost_rule.changed
    assert (changed.different, changed.only_a, changed.only_b) == (1, 0, 1)
    assert [(c.true, c.predicted, c.cost) for c in found.costliest.confusions] == [
        ("car", "cat", 2.0),
        ("dog", "cat", 1.0),
    ]
    assert found.samples == ((0,), (2,))
    assert mistakes_of(probs, target, tree, log_probs=False).calibration is None


def test_a_picture_is_the_sample_itself():
    image = torch.arange(48, dtype=torch.uint8).reshape(3, 4, 4) * 5
    head, _, body = png_uri(image).partition(",")
    assert head == "data:image/png;base64"
    opened = torch.tensor(list(Image.open(BytesIO(b64decode(body))).tobytes())).reshape(4, 4, 3)
    assert torch.equal(opened.permute(2, 0, 1).to(torch.uint8), image)


def test_names_are_text_and_nothing_else(hostile_page: tuple[Path, list[str]]):
    text = hostile_page[0].read_text(encoding="utf-8")
    assert "<script>window" not in text
    assert "<img src=x" not in text
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, flags=re.DOTALL)
    assert [attributes.strip() for attributes, _ in scripts] == [
        'type="application/json" id="shared"',
        'type="application/json" class="subject-data"',
        "",
        "",
    ]
    subject = json.loads(scripts[1][1])
    rows = subject["tables"]["similarity"]["rows"]
    assert sorted(line[0] for line in rows) == sorted(hostile_page[1])
    assert "49" not in re.findall(r"<bdi>([^<]*)</bdi>", subject["html"])
    assert "&lt;script&gt;window.broken = 1&lt;/script&gt;" in subject["html"]


@pytest.mark.long
def test_only_the_pages_own_scripts_may_run(digits_page: Path):
    text = digits_page.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    running = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    hashes = {f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'" for code in running}
    assert set(policy[1].split("script-src ")[1].split(";")[0].split()) == hashes


@pytest.mark.long
def test_a_report_on_digits_is_small_and_soon_made(digits: Comparison, digits_page: Path, tmp_path: Path):
    again = tmp_path / "again.html"
    assert units_of_work(lambda: write_report(digits, again), times=1) * 15 / len(digits.rows) < 1000
    assert digits_page.stat().st_size < 8e6
    assert (tmp_path / "again.html").read_bytes() == digits_page.read_bytes()


def copied(found: Comparison, folder: Path) -> Path:
    shutil.copytree(found.folder, folder)
    return folder


def panel(page: Page, key: str, subject: int = 0) -> Panel:
    chosen = page.subjects[subject]
    return next(p for p in (*chosen.learned, *chosen.mistakes) if p.key == key)


@pytest.mark.long
def test_a_killed_run_is_left_out_and_named(digits: Comparison, tmp_path: Path):
    runs = copied(digits, tmp_path / "runs")
    killed = next(r for r in Store(runs).records() if r.label == "label-embedding" and r.seed == 1)
    (killed.path / "final.json").unlink()
    page = build_page(summarize(Store(runs).records()))
    assert any(f"labelkin train --resume {killed.path}" in told for told in page.missing)
    assert any("one seed" in told for told in page.missing)


@pytest.mark.long
def test_what_is_gone_from_a_run_takes_nothing_else_with_it(digits: Comparison, tmp_path: Path):
    runs = copied(digits, tmp_path / "runs")
    for found in Store(runs).records():
        if found.label == "one-hot":
            (found.path / "outputs.safetensors").unlink()
        if found.label == "static-labels":
            (found.path / "setup.safetensors").unlink()
        if found.label == "label-embedding":  # as --keep results leaves it
            (found.path / "model.safetensors").unlink()
    page = build_page(summarize(Store(runs).records()))
    labels = [subject.label for subject in page.subjects]
    assert "static-labels" not in labels
    assert any(told.startswith("static-labels cannot be analyzed") for told in page.missing)
    one_hot = labels.index("one-hot")
    assert "outputs.safetensors" in panel(page, "confusions", one_hot).missing
    assert panel(page, "projection", one_hot).figures
    bare = labels.index("label-embedding")
    assert panel(page, "confusions", bare).figures
    assert "because the weights are missing" in panel(page, "similarity", bare).note
    assert "no weights" in panel(page, "projection", bare).missing
    assert len(page.leaderboard.lines) == 3 if page.leaderboard else False
    render(page)


@pytest.mark.long
def test_data_that_are_gone_leave_what_the_runs_kept(hostile_page: tuple[Path, list[str]], tmp_path: Path):
    shutil.copytree(hostile_page[0].parent / "runs", tmp_path / "runs")
    for config in (tmp_path / "runs").glob("*/config.json"):
        config.write_text(config.read_text().replace("names.csv", "gone.csv"))
    page = build_page(read_comparisons(tmp_path / "runs").comparisons[0])
    assert "gone.csv" in panel(page, "projection").missing
    assert panel(page, "confusions").figures
    assert "Pictures are missing. Not available: there is no file" in page.subjects[0].costliest.note


def test_nothing_finished_gives_a_page_that_says_so(digits: Comparison, tmp_path: Path):
    runs = copied(digits, tmp_path / "runs")
    for final in runs.glob("*/final.json"):
        final.unlink()
    page = build_page(summarize(Store(runs).records()))
    assert page.verdict.kind == "nothing"
    assert len(page.missing) >= 6
    assert "No run has finished" in render(page)


@pytest.mark.long
def test_objectives_without_probabilities_say_so_unless_they_are_calibrated(digits: Comparison, tmp_path: Path):
    calibrated = build_page(digits)
    static = [subject.label for subject in calibrated.subjects].index("static-labels")
    assert panel(calibrated, "calibration", static).missing == ""
    objectives = ["one-hot", "static-labels"]
    page = build_page(labelkin.compare("digits", objectives=objectives, out=tmp_path, epochs=1, calibration=0.0))
    labels = [subject.label for subject in page.subjects]
    static = labels.index("static-labels")
    assert panel(page, "calibration", static).missing == "This objective defines no probabilities."
    assert page.subjects[static].decisions is None
    assert page.subjects[labels.index("one-hot")].decisions is not None


@pytest.mark.long
def test_the_command_that_is_shown_makes_the_same_runs(digits: Comparison):
    from support.commands import call

    command = compare_command(digits)
    told = call(*command.split()[1:], "--dry-run").stdout.strip().splitlines()
    assert len(told) == 6
    assert all(line.endswith("finished") for line in told)


def reported(*arguments: object) -> object:
    app = typer.Typer()
    app.command()(report)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.long
def test_the_command_writes_a_page(digits: Comparison, tmp_path: Path):
    result = reported(digits.folder, "-o", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"The report is in {tmp_path / 'page.html'}\n"
    assert (tmp_path / "page.html").stat().st_size > 1e6


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["missing"], "no such folder"),
        (["."], "the folder has no readable run"),
        (["runs", "-o", "page.txt"], r"ends in \.html"),
        (["runs", "-o", "nowhere/page.html"], "there is no folder 'nowhere'"),
        (["runs", "--reference", "one-hott"], "no run of 'one-hott' has finished"),
    ],
)
def test_what_the_command_refuses(
    arguments: list[str],
    match: str,
    digits: Comparison,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").symlink_to(digits.folder)
    result = reported(*arguments)
    assert isinstance(result.exception, InputError)
    assert re.search(match, str(result.exception))
    assert not list(tmp_path.glob("*.html"))


def test_a_page_on_one_model_is_made_from_plain_numbers(tmp_path: Path):
    """As an audit has them: scores, the truth and a tree."""
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]})
    scores = torch.eye(4).repeat(5, 1).log_softmax(-1)
    target = torch.arange(4).repeat(5)
    found = subject("my model", tree, mistakes=mistakes_of(scores, target, tree, log_probs=True))
    path = write_model_page(found, tmp_path / "model.html", sentence="All 20 are right")
    text = path.read_text(encoding="utf-8")
    assert "<title>my model</title>" in text
    assert "subject-choice" not in text.split("<script")[0]
    assert found.costliest.note == "There are no mistakes on the test set."


def test_several_settings_give_a_page_each(tmp_path: Path):
    assert [path.name for path in targets(tmp_path / "report.html", 1)] == ["report.html"]
    assert [path.name for path in targets(tmp_path / "report.html", 2)] == ["report-1.html", "report-2.html"]


@pytest.mark.long
def test_the_page_of_each_setting_says_which_it_is(tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "data: digits\nbackbone: [tiny-cnn, mlp]\nobjectives: [one-hot]\nseeds: [0]\n"
        "data_options: {subset: 0.2}\ntraining: {epochs: 1, calibration: 0}\n"
    )
    done = call("compare", plan, "--out", tmp_path / "runs", "--html", tmp_path / "page.html")
    assert done.exit_code == 0, done.stderr
    for number, own, other in ((1, "tiny-cnn", "mlp"), (2, "mlp", "tiny-cnn")):
        text = (tmp_path / f"page-{number}.html").read_text(encoding="utf-8")
        title = re.search("<title>(.*?)</title>", text)
        head = text.partition("<h1")[0].rpartition("<body")[2]
        assert title is not None
        assert own in title.group(1) + head
        assert other not in title.group(1) + head


@pytest.mark.long
def test_a_plan_is_reported_from_its_runs(digits: Comparison, tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "data: digits\nobjectives: [one-hot, label-embedding]\nseeds: [0, 1]\n"
        "training: {epochs: 3, batch_size: 64, lr: 5e-3}\n"
    )
    found = read_comparisons(plan, runs=digits.folder)
    assert [each.label for each in found.comparisons[0].rows] == ["one-hot", "label-embedding"]
    with pytest.raises(InputError, match="none of its runs are in"):
        read_comparisons(plan, runs=tmp_path)


@pytest.mark.long
def test_label_vectors_of_the_tree_are_not_shown_as_learned(tmp_path: Path):
    found = labelkin.compare("digits", objectives=["hierarchical-cross-entropy"], out=tmp_path, epochs=1)
    page = build_page(found)
    note = panel(page, "similarity").note
    assert "the mean scores of each class, because the label vectors come from the tree and are not learned" in note
    assert "correlation of their distances is +1.00" not in panel(page, "trees").note


def test_a_network_of_one_layer_has_no_figure_over_layers():
    tree = Taxonomy.from_nested({"a": ["b", "c"], "d": ["e"]})
    distances = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(0))
    points = Points(torch.rand(6, 2).double(), torch.zeros(2), 1.0)
    for layers in (("features",), ("stage", "features")):
        activity = Activity(layers, distances[: len(layers)], torch.full((3,), 2), Memory((), (), (), 0))
        panels = feature_panels(Features(points, torch.arange(6) % 3, activity), tree, None, "")
        assert [p.key for p in panels] == ["projection", "layers"][: len(layers)]
