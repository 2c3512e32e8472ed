"""Data are read once per process, ids are computed once per run, and runs are dispatched by their kind."""

import ast
import json
from pathlib import Path

import pytest

import labelkin
from labelkin.comparison import _plan as plan_model
from labelkin.comparison._api import compare_stored_runs, plan_for
from labelkin.comparison._summary import group_by_setting
from labelkin.data._sets import sources
from labelkin.runs import DataCache, RunFolder, RunSpec, Store
from labelkin.runs import train_run as train
from labelkin.runs._identity import data_changed, data_id
from labelkin.runs._kinds import KINDS, kind_in, kind_name
from labelkin.runs._store import read_record
from labelkin.training import Settings
from support.commands import call
from support.sentences import write_corpus

pytestmark = pytest.mark.long

PACKAGE = Path(labelkin.__file__).parent
NET = "lstm-512x2:embedding=8,hidden=8,layers=1,dropout=0.1"
TABLE = "a,label\n" + "".join(f"{7 * i % 20}.5,{'xy'[i % 2]}\n" for i in range(20))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Counts how often digits are read."""
    found: list[str] = []
    source = sources.DATASETS["digits"]

    def read(path: Path):
        found.append("digits")
        return source.read(path)

    monkeypatch.setitem(sources.DATASETS, "digits", source._replace(read=read))
    return found


def test_compare_with_a_page_reads_the_data_once(reads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    asked = ("digits", "--objectives", "one-hot,label-embedding", "--set", "label-embedding.tau=3", "--seeds", "0,1")
    assert call("compare", *asked, "--epochs", 1, "--html", "page.html").exit_code == 0
    assert Path("page.html").exists()
    assert reads == ["digits"]


def test_a_plan_with_two_trees_reads_the_data_once(reads: list[str], tmp_path: Path):
    cache = DataCache()
    (tmp_path / "tree.json").write_text(
        json.dumps({"low": ["0", "1", "2", "3", "4"], "high": ["5", "6", "7", "8", "9"]})
    )
    first = cache.workspace(RunSpec())
    second = cache.workspace(RunSpec(taxonomy=str(tmp_path / "tree.json")))
    assert first.dataset is second.dataset
    assert first.context.taxonomy is None
    assert second.context.taxonomy is not None
    assert reads == ["digits"]


def test_data_that_changed_are_read_again(tmp_path: Path):
    cache, spec = DataCache(), RunSpec(data=str(tmp_path / "t.csv"))
    (tmp_path / "t.csv").write_text(TABLE)
    assert cache.workspace(spec) is cache.workspace(RunSpec(data=spec.data, objective="label-smoothing"))
    before = cache.workspace(spec).dataset
    (tmp_path / "t.csv").write_text(TABLE.replace("x", "z"))
    assert cache.workspace(spec).dataset.classes != before.classes


def test_a_cache_drops_the_least_recently_used():
    cache = DataCache(limit=2)
    specs = [RunSpec(data_options={"seed": seed}) for seed in range(3)]
    first, second = (cache.workspace(spec) for spec in specs[:2])
    assert cache.workspace(specs[0]) is first
    cache.workspace(specs[2])
    assert cache.workspace(specs[0]) is first
    assert cache.workspace(specs[1]) is not second


def test_a_planned_run_computes_its_id_once(monkeypatch: pytest.MonkeyPatch):
    run, calls, real = plan_for("digits").runs()[0], [], plan_model.run_id
    monkeypatch.setattr(plan_model, "run_id", lambda spec: calls.append(spec) or real(spec))
    assert {run.id, run.id} == {real(run.spec)}
    assert run.name == f"one-hot-seed0-{run.id}" or run.id in run.name
    assert len(calls) == 1


def test_the_page_of_a_command_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`--reported-epoch last` can be given on the command line, so the runs need no plan."""
    monkeypatch.chdir(tmp_path)
    asked = ("digits", "--objectives", "one-hot", "--epochs", 1, "--reported-epoch", "last", "--html", "page.html")
    assert call("compare", *asked).exit_code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "PLAN.yaml" not in page
    assert "--reported-epoch last" in page


def test_a_record_and_a_run_folder_read_the_same(tmp_path: Path):
    train(RunSpec(settings=Settings(epochs=1)), tmp_path / "run")
    record, folder = read_record(tmp_path / "run"), RunFolder(tmp_path / "run")
    assert record is not None
    assert (record.config, record.history(), record.seconds) == (folder.config, folder.history(), folder.seconds)
    assert record.config["kind"] == "classification"
    (tmp_path / "run" / "metrics.csv").write_text("epoch,loss\n1,many\n")
    for read in (record.history, folder.history):
        with pytest.raises(labelkin.InputError, match=r"metrics\.csv: the file is damaged"):
            read()


def translated(data: str, path: Path, seed: int = 0) -> None:
    settings = Settings(epochs=1, batch_size=5, seed=seed)
    train(RunSpec(data=data, backbone=NET, settings=settings, data_options={"beam": 1}), path)


def test_translation_runs_on_changed_corpora_are_two_settings(tmp_path: Path):
    data = write_corpus(tmp_path)
    translated(data, tmp_path / "runs" / "first")
    config = RunFolder(tmp_path / "runs" / "first").config
    assert not data_changed(config)
    german = tmp_path / "train.de"
    german.write_text(german.read_text(encoding="utf-8").replace("hund", "hand"), encoding="utf-8")
    assert data_changed(config)
    translated(data, tmp_path / "runs" / "second")
    assert len(group_by_setting(Store(tmp_path / "runs").records())) == 2


def test_a_plan_compares_old_translation_runs_without_data_id_with_new_ones(tmp_path: Path):
    data = write_corpus(tmp_path)
    training = {"epochs": 1, "batch_size": 5}
    how = {"objectives": ["one-hot"], "backbone": NET, "data_options": {"beam": 1}, "training": training}
    plan = plan_for(data, seeds=(0, 1), **how)
    for run in plan.runs():
        train(run.spec, tmp_path / "runs" / run.name)
    old = tmp_path / "runs" / plan.runs()[0].name / "config.json"
    config = json.loads(old.read_text())
    assert config.pop("data_id") == data_id(plan.runs()[0].spec)
    old.write_text(json.dumps(config))
    (compared,) = compare_stored_runs(plan, tmp_path / "runs")
    assert [row.runs for row in compared.rows] == [2]


def test_kinds_are_told_by_the_data_and_the_config():
    assert set(KINDS) == {"classification", "translation"}
    assert [kind_name(data) for data in ("digits", "cifar100:coarse", "multi30k:en-de")] == [
        "classification",
        "classification",
        "translation",
    ]
    assert kind_in({}) == "classification"
    assert kind_in({"kind": "translation"}) == "translation"
    with pytest.raises(labelkin.InputError, match="kind: expected one of classification, translation, got 'ranking'"):
        kind_in({"kind": "ranking"})


ROOMS_WITHOUT_TRANSLATION = ("data", "runs", "comparison", "report")
FILES = sorted(path for room in ROOMS_WITHOUT_TRANSLATION for path in (PACKAGE / room).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_translation_is_imported_by_its_kind_alone(path: Path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    assert not [name for name in imported if name.startswith("labelkin.translate")]
