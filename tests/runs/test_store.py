"""The store: thousands of runs at once, without torch; what is damaged, old or in use is said."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import labelkin
from labelkin import InputError
from labelkin.comparison import Plan, execute, summarize
from labelkin.runs import Store, read_results
from labelkin.runs._engines.ray import TOKEN, _token
from labelkin.runs._run_files import RunInUse, is_locked, locked
from support.commands import call, processor_seconds, refused, run_in, start

pytestmark = pytest.mark.long

QUICK = {"epochs": 2, "batch_size": 256}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("store")
    labelkin.compare(objectives=["one-hot", "label-smoothing"], seeds=(0, 1), out=out, **QUICK)
    return out


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


def test_records_say_what_the_folders_hold(store: Path):
    records = Store(store).records()
    assert [(r.label, r.seed) for r in records] == [(n, s) for n in ("label-smoothing", "one-hot") for s in (0, 1)]
    record = records[2]
    assert record.final == json.loads((record.path / "final.json").read_text())
    assert (record.data, record.backbone, record.options) == ("digits", "tiny-cnn", {})
    assert len(record.history()) == 2
    assert record.path.name.endswith(record.id)
    found = call("runs", "list", store, "--json")
    assert [entry["id"] for entry in json.loads(found.stdout)] == [r.id for r in records]
    shown = json.loads(call("runs", "show", record.id[:6], "--store", store).stdout)
    assert (shown["objective"], shown["final"]) == ("one-hot", record.final)


def test_recorded_runs_are_compared_without_training(store: Path):
    told = json.loads(call("runs", "compare", store, "--json").stdout)
    assert told["rows"] == json.loads(
        json.dumps(summarize(Store(store).records()).as_dict()["rows"]).replace("NaN", "null")
    )
    assert "label-smoothing" not in call("runs", "compare", store, "--objectives", "one-hot").stdout
    assert "no runs of 'one-hat'" in refused("runs", "compare", store, "--objectives", "one-hat")
    assert "no finished runs on 'mnist'" in refused("runs", "compare", store, "--data", "mnist")


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_runs_are_exported(store: Path, tmp_path: Path, suffix: str):
    file = tmp_path / f"results.{suffix}"
    given = ("--recipe", "003-table2", "--missing", "all of it", "--command", "labelkin compare")
    assert call("runs", "export", store, "-o", file, *given).stdout == f"Wrote 4 runs to {file}\n"
    if suffix == "csv":
        assert len(file.read_text().splitlines()) == 5
        return
    told = json.loads(file.read_text())
    assert (told["name"], told["recipe"], told["missing"]) == ("results", "003-table2", ["all of it"])
    assert not read_results(tmp_path)[0].follow_up
    assert call("runs", "export", store, "-o", file, "--follow-up").exit_code == 0
    assert read_results(tmp_path)[0].follow_up
    for run, record in zip(told["runs"], Store(store).records(), strict=True):
        assert run["final"] == record.final
        assert run["curve"] == pytest.approx([row["test_accuracy"] for row in record.history()], abs=1e-6)
    assert "ends in .json or .csv" in refused("runs", "export", store, "-o", tmp_path / "results.txt")


def test_runs_are_removed_after_a_question(store: Path):
    ids = [record.id for record in Store(store).records()]
    assert call("runs", "rm", ids[0], "--store", store).exit_code == 1  # nobody says yes
    assert len(Store(store).records()) == 4
    assert call("runs", "rm", ids[0], ids[1], "--store", store, "--yes").exit_code == 0
    assert [record.id for record in Store(store).records()] == ids[2:]
    assert "there is no run 'ffffffffffff' in this folder" in refused(
        "runs", "rm", "ffffffffffff", "--store", store, "--yes"
    )
    assert "runs match ''" in refused("runs", "show", "", "--store", store)


def test_a_run_of_an_older_version_or_a_damaged_one_is_said_and_the_others_listed(store: Path):
    old, broken = run_in(store, "one-hot", 0), run_in(store, "one-hot", 1)
    config = json.loads((old / "config.json").read_text())
    (old / "config.json").write_text(json.dumps({**config, "version": 1}))
    (broken / "final.json").write_text("{")
    told = call("runs", "list", store)
    assert told.exit_code == 0
    assert f"{old}: this run uses layout 1, but this labelkin reads layout 2" in told.stderr
    assert f"{broken / 'final.json'}: the file is damaged" in told.stderr
    assert len(told.stdout.splitlines()) == 3
    (store / "notes").mkdir()  # not a run, and no problem
    assert len(Store(store).records()) == 2
    assert "there is no such folder" in refused("runs", "list", store / "nothing")


def test_one_process_at_a_time_trains_a_run(store: Path, tmp_path: Path):
    folder = run_in(store, "one-hot")
    code = f"""
import sys, time
from pathlib import Path
from labelkin.runs._run_files import locked
with locked(Path({str(folder)!r})):
    print("held", flush=True)
    time.sleep(1200)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        assert is_locked(folder)
        with pytest.raises(RunInUse, match="another process is training this run"), locked(folder):
            pass
        assert "another process is training this run" in refused("train", "--resume", folder)
        with pytest.raises(InputError, match="is being trained"):
            Store(store).remove(Store(store).find(folder.name))
        other.kill()
    assert not is_locked(folder)  # the lock dies with its process
    assert call("train", "--resume", folder).exit_code == 0


@pytest.mark.slow
def test_two_comparisons_share_a_store(tmp_path: Path):
    """Each run is trained by one of them, and both print the same table."""
    command = ("compare", "--objectives", "one-hot,label-smoothing,confidence-penalty", "--seeds", "0,1", "--epochs", 4)
    both = [start(*command, "--batch-size", 32, "--out", tmp_path, "--json") for _ in range(2)]
    told = [process.communicate(timeout=1200) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert told[0][0] == told[1][0]
    trained = [sum("epoch 4/4" in line for line in errors.splitlines()) for _, errors in told]
    assert sum(trained) == 6


def test_two_thousand_runs_cost_little_more_than_reading_their_files(store: Path, tmp_path: Path):
    many = tmp_path / "many"
    for record in Store(store).records():
        for copy in range(500):
            folder = many / f"{record.objective}-seed{copy}-{copy:012x}{record.seed}"
            folder.mkdir(parents=True)
            config = {**record.config, "id": folder.name[-13:], "settings": {**record.settings, "seed": copy}}
            (folder / "config.json").write_text(json.dumps(config))
            for name in ("final.json", "timing.json", "metrics.csv"):
                shutil.copy(record.path / name, folder / name)
    read = f"import json, pathlib; [json.loads(p.read_bytes()) for p in pathlib.Path({str(many)!r}).glob('*/*.json')]"
    least, _ = processor_seconds("-c", read, times=2)
    for command in ("list", "compare"):
        few, _ = processor_seconds("-m", "labelkin", "runs", command, store, times=2)
        seconds, _ = processor_seconds("-m", "labelkin", "runs", command, many, times=2)
        assert seconds - few < 20 * least, (command, seconds, few, least)  # reading the files is most of it


def test_listing_needs_no_torch(store: Path):
    code = (
        "import sys\nfrom labelkin.cli._app import app\n"
        "for command, unused in (('list', {'torch', 'numpy'}), ('compare', {'torch'})):\n"
        f"    app(['runs', command, {str(store)!r}], standalone_mode=False)\n"
        "    print('unused:', unused & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.count("unused: set()\n") == 2, told


DAMAGE: dict[str, tuple[str, object, str]] = {
    "config-list": ("config.json", [], "config.json: the file is damaged (it is [], expected an object)"),
    "config-deep": ("config.json", "[" * 100_000, "nested too deeply"),
    "no-settings": ("config.json", {"settings": None}, "'settings' is None, expected an object"),
    "seed": ("config.json", {"settings": {"seed": "x"}}, "settings: seed: expected a whole number"),
    "revision": ("config.json", {"revision": None}, "revision: expected a whole number of at least 0, got None"),
    "fold": ("config.json", {"data_options": {"fold": "x"}}, "data_options: fold: expected a whole number"),
    "id": ("config.json", {"id": 7}, "'id' is 7, expected text"),
    "data": ("config.json", {"data": ["digits"]}, "'data' is ['digits'], expected text"),
    "timing": ("timing.json", {}, "timing.json: the file is damaged (it has no 'seconds')"),
    "timing-list": ("timing.json", [], "timing.json: the file is damaged (it is [], expected an object of numbers)"),
    "final-text": ("final.json", {"accuracy": "high"}, "'accuracy' is 'high', expected a number"),
    "final-large": ("final.json", {"accuracy": 10**400}, "expected a number"),
    "final-null": ("final.json", None, "it is None, expected an object of numbers"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_one_damaged_run_is_named_and_the_others_are_used(store: Path, kind: str):
    bad = run_in(store, "one-hot", 0)
    file, content, sentence = DAMAGE[kind]
    whole = json.loads((bad / file).read_text())
    if isinstance(content, dict) and content:
        content = {**whole, **content}
    (bad / file).write_text(content if isinstance(content, str) else json.dumps(content))
    for command, lines in (("list", 4), ("compare", 3)):
        told = call("runs", command, store)
        assert told.exit_code == 0, told.stderr
        assert sentence in told.stderr
        assert len(told.stdout.splitlines()) >= lines
    assert len(Store(store).records()) == 3


@pytest.mark.parametrize(
    "metrics",
    ['{"a": 1}', '{"accuracy": null}', '{"accuracy": Infinity}', '{"accuracy": 1e-300, "decided_cost": 1e300}'],
)
def test_runs_without_a_usable_accuracy_are_compared_with_what_they_have(store: Path, metrics: str):
    for seed in (0, 1):
        (run_in(store, "label-smoothing", seed) / "final.json").write_text(metrics)
    told = call("runs", "compare", store)
    assert told.exit_code == 0, told.stderr
    assert {"one-hot", "label-smoothing"} <= {line.partition(" ")[0] for line in told.stdout.splitlines()}


@pytest.mark.filterwarnings("default:.*The run is left out:UserWarning")
def test_damaged_decisions_or_curves_leave_out_one_run(store: Path, tmp_path: Path):
    decisions, curve = run_in(store, "one-hot", 0) / "decisions.npz", run_in(store, "one-hot", 1) / "metrics.csv"
    for at in range(40, 400, 20):  # headers and compressed data
        content = bytearray(decisions.read_bytes())
        content[at] ^= 0xFF
        decisions.write_bytes(content)
    curve.write_text("epoch,test_accuracy\n1,good\n")
    told = call("runs", "compare", store)
    assert told.exit_code == 0
    assert f"Note: {decisions}: not a readable numpy file" in told.stderr
    assert "Note:" not in call("runs", "list", store).stderr
    found = Store(store)
    assert len(found.readable()) == 2
    assert [problem.partition(": ")[0] for problem in found.problems] == [str(decisions), str(curve)]
    page = tmp_path / "page.html"
    told = call("report", store, "-o", page, "--reference", "label-smoothing")
    assert told.exit_code == 0, told.stderr
    assert f"Note: {curve}: the file is damaged" in told.stderr
    assert "the file is damaged" in page.read_text()
    (run_in(store, "label-smoothing", 0) / "measures.json").write_text("[]")
    for command, file in (("export", "runs.json"), ("pack", "runs.zip")):
        told = call("runs", command, store, "-o", tmp_path / file)
        assert told.exit_code == 0, told.stderr
        assert f"Note: {curve}: the file is damaged" in told.stderr
        assert told.stderr.count("The run is left out.") == 3
        assert f"Wrote 1 run to {tmp_path / file}" in told.stdout


def test_runs_that_differ_in_augmentation_do_not_look_alike(tmp_path: Path):
    for name, augment in (("plain", ()), ("shifted", ("flip",))):
        labelkin.train("digits", out=tmp_path / name, augment=augment, **{**QUICK, "epochs": 1})
    told = call("runs", "list", tmp_path).stdout.splitlines()
    assert told[0].endswith("differs in")
    assert told[1].endswith("augment none")
    assert told[2].endswith("augment flip")
    listed = json.loads(call("runs", "list", tmp_path, "--json").stdout)
    assert [run["differs"] for run in listed] == [{"augment": []}, {"augment": ["flip"]}]
    told = call("report", tmp_path, "-o", tmp_path / "page.html").stdout.splitlines()
    assert told[0].startswith(f"The report is in {tmp_path / 'page-1.html'}: digits, tiny-cnn")
    assert told[0].endswith("augment none")
    assert told[1].endswith("augment flip")


def test_the_list_names_no_differences_where_there_are_none(store: Path):
    assert "differs in" not in call("runs", "list", store).stdout


def test_the_token_of_a_killed_command_is_deleted_by_the_next_one(tmp_path: Path):
    plan = Plan.from_dict({"objectives": ["one-hot"], "training": {"epochs": 1}, "data_options": {"subset": 0.1}})
    lost = tmp_path / f"{TOKEN}lost"
    for _ in range(2):  # the second time, no run is left to train
        lost.touch()
        with _token(tmp_path) as held:  # of another command
            execute(plan, tmp_path)
            assert not lost.exists()
            assert held.exists()
        assert not held.exists()
