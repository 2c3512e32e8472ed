"""Run folders and results files written at commit cf4e300 still load, keep their ids and give the same results."""

import json
import re
import shutil
from dataclasses import fields
from pathlib import Path

import pytest

import labelkin
from labelkin.comparison._summary import group_by_setting
from labelkin.data import load as load_data
from labelkin.papers import documents
from labelkin.runs import RunSpec, Store, _identity, evaluate, run_spec
from labelkin.runs import _identity as identity
from labelkin.runs import train_run as train
from labelkin.runs._compatibility import ADDED_SETTINGS, RENAMED_OPTIONS, current_options, original_options
from labelkin.runs._identity import data_id, run_id
from labelkin.training import Settings
from labelkin.translate import load_translator
from support.commands import call, refused

pytestmark = pytest.mark.long

FIXTURES = Path(__file__).parents[1] / "fixtures" / "cf4e300"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
CLASSIFIER = "runs/label-embedding-seed0-4db2ac0c3e87"
RESULTS_ONLY = "runs/one-hot-seed0-5a9f7917b1c7"
INTERRUPTED = "runs/semantic-smoothing-seed0-fb31bf4e2bc1"
TRANSLATION = "runs/label-embedding-seed0-aba96c63c8eb"
# The training settings at cf4e300, all of which count in an id.
SETTINGS = (
    *("epochs", "batch_size", "optimizer", "lr", "momentum", "nesterov", "weight_decay", "schedule", "warmup", "gamma"),
    *(
        "milestones",
        "clip",
        "accumulate",
        "balanced",
        "augment",
        "evaluation",
        "report",
        "seed",
        "threads",
        "accelerator",
    ),
    *("devices", "strategy", "precision", "compile", "workers"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the fixtures as the working directory: the translation run names its corpus by a relative path."""
    shutil.copytree(FIXTURES, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    return tmp_path / "old"


@pytest.mark.parametrize("name", EXPECTED["ids"])
def test_a_stored_configuration_gives_the_stored_id(name: str, folder: Path):
    config = json.loads((folder / "runs" / name / "config.json").read_text())
    spec = RunSpec.from_dict(config)
    assert _identity._id(spec.as_dict(), config["revision"]) == config["id"] == EXPECTED["ids"][name]
    revised = config["options"].get("weights") == "released-text"  # its results changed, so a new run has another id
    assert (run_id(spec) != config["id"]) == revised
    if "data_id" in config:
        assert data_id(spec) == config["data_id"]


def test_old_runs_are_listed_shown_and_compared(folder: Path):
    assert {record.path.name: record.id for record in Store("runs").records()} == EXPECTED["ids"]
    listed = json.loads(call("runs", "list", "runs", "--json").stdout)
    assert {run["id"]: run["state"] for run in listed} == {
        "4db2ac0c3e87": "finished",
        "5a9f7917b1c7": "finished",
        "aba96c63c8eb": "finished",
        "fb31bf4e2bc1": "unfinished",
    }
    assert json.loads(call("runs", "show", "4db2", "--store", "runs").stdout)["id"] == "4db2ac0c3e87"
    compared = json.loads(call("runs", "compare", "runs", "--data", "digits", "--json").stdout)
    assert [(row["objective"], row["runs"]) for row in compared["rows"]] == [("label-embedding", 1), ("one-hot", 1)]


def test_an_old_run_predicts_and_evaluates_as_it_did(folder: Path):
    predicted = labelkin.load_run(CLASSIFIER).predict(load_data("digits").test.inputs[:20])
    assert predicted.classes == EXPECTED["classes"]
    assert predicted.probabilities is not None
    assert predicted.probabilities.tolist() == pytest.approx(EXPECTED["probabilities"], abs=1e-4)
    found = evaluate(CLASSIFIER)
    measured = {"samples": found.samples, **found.metrics}  # later versions have more metrics
    then = EXPECTED["evaluated"]
    assert {name: measured[name] for name in then} == pytest.approx(then, abs=1e-4)


def test_an_old_translation_run_translates_as_it_did(folder: Path):
    sentences = ["a dog runs .", "the girl drinks milk .", "two men eat bread ."]
    assert load_translator(TRANSLATION).translate(sentences) == EXPECTED["translated"]


def test_an_interrupted_old_run_resumes(folder: Path):
    trained = train(run_spec(INTERRUPTED), INTERRUPTED, resume=True)
    assert [row["epoch"] for row in trained.history] == [1, 2]
    assert json.loads(Path(INTERRUPTED, "final.json").read_text())["accuracy"] == trained.metrics["accuracy"]
    assert json.loads(Path(INTERRUPTED, "config.json").read_text())["id"] == "fb31bf4e2bc1"


def test_a_finished_old_run_is_not_trained_again(folder: Path):
    command = ["digits", "--objective", "one-hot", "--backbone", "tiny-cnn", "--epochs", "2", "--optimizer", "sgd"]
    told = refused("train", *command, "--lr", "0.005", "--out", RESULTS_ONLY, "--calibration", "0")
    assert "this run is finished" in told
    other = refused("train", *command, "--lr", "0.005", "--out", RESULTS_ONLY)
    assert "calibration 0.0, not 0.05" in other
    with pytest.raises(labelkin.InputError, match="no weights"):
        labelkin.load_run(RESULTS_ONLY)


def test_a_report_is_made_of_old_runs(folder: Path):
    assert call("report", "runs", "-o", "page.html").exit_code == 0
    pages = [Path(name).read_text(encoding="utf-8") for name in ("page-1.html", "page-2.html")]  # one per setting
    assert "run 4db2ac0c3e87" in pages[0]
    assert "run 5a9f7917b1c7" in pages[0]
    assert "labelkin train --resume runs/semantic-smoothing-seed0-fb31bf4e2bc1" in pages[1]


def numbers_in_tables(text: str) -> list[list[str]]:
    """The numbers of each row of each Markdown table."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [re.findall(r"[-+−±]?\d[\d.,]*", row) for row in rows]


@pytest.mark.parametrize("name", ["results.md", "reproduction.md"])
def test_old_results_files_regenerate_the_documents(name: str):
    """Every number of the old tables is there, in its order; later versions add columns and tables.

    The last table of reproduction.md has no results, but an estimate of what all tables cost, for another number of seeds.
    """
    old, _, _ = (FIXTURES / "docs" / name).read_text(encoding="utf-8").partition("## All tables and figures")
    expected = numbers_in_tables(old)
    assert sum(map(len, expected)) > 30
    rows = iter(numbers_in_tables(documents(FIXTURES / "results")[name]))
    for row in filter(None, expected):
        assert any(is_part(row, new) for new in rows), row


def is_part(row: list[str], of: list[str]) -> bool:
    """Whether the numbers of a row are in another one, in the same order."""
    left = iter(of)
    return all(number in left for number in row)


def test_settings_that_were_added_later_stay_out_of_the_id_at_their_former_values(monkeypatch: pytest.MonkeyPatch):
    """A setting that is not in `ADDED_SETTINGS` would change every id."""
    counted = {field.name for field in fields(Settings)} - set(_identity.PLACES["settings"])
    assert counted - set(SETTINGS) == ADDED_SETTINGS.keys()
    before = {name: value for name, value in RunSpec().as_dict()["settings"].items() if name in SETTINGS}
    former = RunSpec.from_dict({**RunSpec().as_dict(), "settings": before})
    assert {name: getattr(former.settings, name) for name in ADDED_SETTINGS} == ADDED_SETTINGS
    assert run_id(former) == "8cfedb8c3919"  # as it was at cf4e300
    plain, longer = run_id(RunSpec()), run_id(RunSpec(settings=Settings(warmup=1)))
    monkeypatch.setitem(ADDED_SETTINGS, "warmup", 0)
    assert run_id(RunSpec()) != plain  # left out at its default ...
    assert run_id(RunSpec(settings=Settings(warmup=1))) == longer  # ... and kept at any other value


def test_renamed_options_are_translated_on_reading_and_keep_the_id(monkeypatch: pytest.MonkeyPatch):
    asked = {**RunSpec(objective="label-smoothing").as_dict(), "options": {"amount": 0.2}}
    before = identity._id(
        asked, labelkin.OBJECTIVES["label-smoothing"].revision
    )  # as it was when `amount` was the name
    monkeypatch.setitem(RENAMED_OPTIONS, ("label-smoothing", "amount"), "smoothing")
    read = RunSpec.from_dict(asked)
    assert dict(read.options) == {"smoothing": 0.2}
    assert run_id(read) == before
    assert current_options("label-smoothing", {"amount": 0.2}) == {"smoothing": 0.2}
    assert current_options("one-hot", {"amount": 0.2}) == {"amount": 0.2}
    assert original_options("label-smoothing", {"smoothing": 0.2}) == {"amount": 0.2}


def test_a_record_shows_options_under_their_current_names(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(RENAMED_OPTIONS, ("label-embedding", "tau"), "temperature")
    record = Store("runs").find("4db2")
    assert record.options["temperature"] == 3.0
    assert "temperature=3.0" in record.label


def test_a_setting_that_a_run_does_not_name_had_its_former_value(folder: Path, monkeypatch: pytest.MonkeyPatch):
    first, second = (record for record in Store("runs").records() if record.id in ("4db2ac0c3e87", "5a9f7917b1c7"))
    monkeypatch.setitem(ADDED_SETTINGS, "later", "off")
    second.config["settings"]["later"] = "off"
    assert len(group_by_setting([first, second])) == 1
    second.config["settings"]["later"] = "on"
    assert len(group_by_setting([first, second])) == 2
