"""Plans: what they stand for, what is refused, and how the value of a grid is chosen."""

import json
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

from labelkin import OBJECTIVES, InputError
from labelkin.comparison import Plan, compare_plan, describe_plan, execute, read_plan, summarize
from labelkin.comparison import _work as work
from labelkin.comparison._api import compare_stored_runs
from labelkin.comparison._work import Work, in_words
from labelkin.runs import Event, Store
from labelkin.runs._identity import run_id
from labelkin.runs._run_files import locked
from labelkin.training import Settings
from labelkin.training import _settings as settings
from support.commands import call, refused, run_in
from support.digit_tables import rows_of, write_table

QUICK = {"epochs": 1, "batch_size": 256}
PLAN = """
data: digits
data_options: {subset: 0.3, validation_fraction: 0.2}
objectives:
  one-hot:
  label-embedding: {tau: {grid: [1, 4]}}
  released: {objective: label-embedding, weights: released}
seeds: [0, 1]
training: {epochs: 2, lr: 5e-3}
"""


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path / "plan.yaml"


def test_a_plan_is_the_product_of_its_parts(plan_file: Path):
    runs = read_plan(plan_file).runs()
    assert len(runs) == 2 * (1 + 2 + 1)
    assert len({run.id for run in runs}) == len(runs)
    found = [(run.label, dict(run.spec.options), run.spec.settings.seed) for run in runs[:4]]
    assert found == [
        ("one-hot", {}, 0),
        ("label-embedding", {"tau": 1}, 0),
        ("label-embedding", {"tau": 4}, 0),
        ("released", {"preset": "released"}, 0),
    ]
    assert runs[0].spec.settings == Settings(epochs=2, lr=5e-3, preprocessing="data")
    wide = Plan.from_dict(
        {"data": ["digits", "mnist"], "taxonomy": ["a", None], "backbone": ["mlp", "lenet"], "seeds": [3]}
    )
    assert len(wide.runs()) == 8 * len(OBJECTIVES)
    size = f"{len(OBJECTIVES)} objectives: {8 * len(OBJECTIVES)} runs, 0 finished"
    assert f"digits, mnist x 2 backbones x 2 trees x {size}" in describe_plan(wide, Path("none"))


@pytest.mark.long
def test_the_chosen_value_is_the_best_on_validation_data_and_not_on_test_data(plan_file: Path, tmp_path: Path):
    plan = read_plan(plan_file)
    (compared,) = compare_plan(plan, tmp_path / "runs")
    by_tau: dict[int, list[float]] = {}
    for record in Store(tmp_path / "runs").records():
        if "tau" in record.options:
            history = record.history()
            by_tau.setdefault(record.options["tau"], []).append(history[int(record.final["epoch"]) - 1]["val_accuracy"])
    best = max(sorted(by_tau), key=lambda tau: mean(by_tau[tau]))
    labels = [row.label for row in compared.rows]
    assert labels == ["one-hot", f"label-embedding tau={best}", "released"]
    assert [row.runs for row in compared.rows] == [2, 2, 2]
    # Were the test set to choose, the other value would win here: the table must not change.
    for record in Store(tmp_path / "runs").records():
        if record.options.get("tau") not in (None, best):
            final = json.loads((record.path / "final.json").read_text())
            (record.path / "final.json").write_text(json.dumps({**final, "accuracy": 1.0}))
    (again,) = compare_plan(plan, tmp_path / "runs")
    assert [row.label for row in again.rows] == labels


BAD = {
    "an unknown key": ({"dta": "digits"}, "a plan has no key 'dta'.*Did you mean 'data'"),
    "an unknown objective": ({"objectives": ["one-hott"]}, "no objective 'one-hott'.*Did you mean 'one-hot'"),
    "an unknown option": ({"objectives": {"label-embedding": {"tua": 1}}}, "no option 'tua'.*Did you mean 'tau'"),
    "an unknown setting": ({"training": {"epoch": 1}}, "epoch: there is no training setting .*Did you mean 'epochs'"),
    "training of its own": (
        {"objectives": {"one-hot": {"training": QUICK}}},
        "the clean protocol trains all objectives with the same settings",
    ),
    "the best test epoch": ({"training": {"report": "best-test"}}, "report: the clean protocol takes auto or last"),
    "training mode": ({"training": {"evaluation": "batch-statistics"}}, "evaluation: the clean protocol takes eval"),
    "no validation split": (
        {"objectives": {"label-embedding": {"tau": {"grid": [1]}}}},
        "chosen on a validation split",
    ),
    "an empty grid": (
        {"objectives": {"label-embedding": {"tau": {"grid": []}}}, "data_options": {"validation_fraction": 0.1}},
        "the grid of 'tau' has no values",
    ),
    "a grid of one number": ({"objectives": {"label-embedding": {"tau": {"grid": 3}}}}, "expected a list of values"),
    "a protocol": ({"protocol": "dirty"}, "protocol: expected one of 'clean', 'as-published'"),
    "a reference": (
        {"objectives": ["one-hot"], "reference": "onehot"},
        "reference: 'onehot' is not among.*Did you mean",
    ),
    "a seed in training": ({"training": {"seed": 1}}, "a plan takes its seeds from `seeds`"),
    "a seed twice": ({"seeds": [1, 1]}, "seeds: expected no duplicates"),
    "a seed that is too large": ({"seeds": [0, 2**63]}, "seed: expected a whole number from 0 to 9223372036854775807"),
    "data twice": ({"data": ["digits", "digits"]}, "data: expected no duplicates, got digits, digits"),
    "a backbone twice": ({"backbone": ["mlp", None, "mlp"]}, "backbone: expected no duplicates"),
    "a tree twice": ({"taxonomy": [None, None]}, "taxonomy: expected no duplicates"),
    "a value twice": (
        {
            "objectives": {"label-embedding": {"tau": {"grid": [1, 2, 1.0]}}},
            "data_options": {"validation_fraction": 0.1},
        },
        "label-embedding, the grid of 'tau': expected no duplicates, got 1, 2, 1.0",
    ),
    "a relation that is not": (
        {"objectives": {"semantic-smoothing": {"relation": "ordinl"}}},
        "relation: expected tree, .* got 'ordinl'. Did you mean 'ordinal'",
    ),
    "a relation that is not, in a grid": (
        {
            "objectives": {"semantic-smoothing": {"relation": {"grid": ["tree", "nope"]}}},
            "data_options": {"validation_fraction": 0.1},
        },
        "relation: expected tree, .* got 'nope'",
    ),
    "no seeds": ({"seeds": []}, "seeds: expected at least one value, got an empty list"),
    "no data": ({"data": []}, "data: expected at least one value, got an empty list"),
    "no backbone": ({"backbone": []}, "backbone: expected at least one value, got an empty list"),
    "no tree": ({"taxonomy": []}, "taxonomy: expected at least one value, got an empty list"),
    "a seed that is a word": ({"seeds": ["a"]}, "seed: expected a whole number"),
    "objectives that are a number": ({"objectives": 3}, "objectives: expected names"),
    "one number as seeds": ({"seeds": 3}, r"seeds: expected a list such as \[0, 1, 2\], got 3; for one seed"),
    "data that are a number": ({"data": 12}, "data: expected a name, got 12"),
    "a backbone that is a number": ({"backbone": 3}, "backbone: expected a name, or nothing for the default, got 3"),
    "a tree that is a list": ({"taxonomy": [1]}, "taxonomy: expected a name, or nothing for the default, got 1"),
    "augmentation that is a number": ({"training": {"augment": 1.5}}, "augment: expected a list of names of augment"),
    "milestones that are a number": ({"training": {"milestones": 3}}, "milestones: expected a list of epochs, got 3"),
    "an option without a name": (
        {"objectives": {"label-embedding": {None: 1}}},
        "label-embedding: expected names of options, got None",
    ),
    "an objective that is a list": (
        {"objectives": {"x": {"objective": ["one-hot"]}}},
        "x: expected one name as `objective`, got",
    ),
    "training of an objective that is a number": (
        {"protocol": "as-published", "objectives": {"one-hot": {"training": 3}}},
        "one-hot: expected keys and values as `training`, got 3",
    ),
    "training that is a list": ({"training": [1]}, "training: expected keys and values"),
}


@pytest.mark.parametrize(("values", "sentence"), BAD.values(), ids=BAD)
def test_a_plan_that_makes_no_sense_is_refused(values: dict, sentence: str):
    with pytest.raises(InputError, match=sentence):
        Plan.from_dict(values).runs()


def test_what_papers_did_is_allowed_where_it_is_called_so():
    values = {
        "protocol": "as-published",
        "objectives": {"one-hot": {"training": {"epochs": 7}}},
        "training": {"report": "best-test", "evaluation": "batch-statistics"},
    }
    (run,) = Plan.from_dict(values).runs()
    assert (run.spec.settings.epochs, run.spec.settings.report) == (7, "best-test")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("data: [", "not YAML at line"),
        ("- one-hot", "expected keys such as `data`"),
        ("data: digits\ndata: mnist", "line 2 (the key 'data' is given twice"),
        ("objectives: [one-hot]", "plan.yaml: expected the key `data`"),
        ("[" * 5000, "nested too deeply"),
        ("data: no-such-set", "no-such-set"),
        ("dat: digits", "plan.yaml: a plan has no key 'dat'"),
        ("", "plan.yaml: the plan is empty; expected keys such as `data: digits`"),
        ("data: digits\nepochs: 3", "a plan has no key 'epochs'; write it below `training:`"),
        (
            "data: digits\nobjectives:\n- kin: {tau: 3}",
            "got {'kin': {'tau': 3}}; write objectives with options as keys",
        ),
        ("data: digits\nbackbone: resnet99", "expected a name from `labelkin backbones`"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_in_a_sentence(text: str, sentence: str, tmp_path: Path):
    (tmp_path / "plan.yaml").write_text(text)
    assert sentence in refused("compare", tmp_path / "plan.yaml", "--out", tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("data: no-such-set", "no-such-set"),
        ("data: digits\nobjectives: {adaptive-labels: {dims: -1}}", "dims: expected"),
        ("data: digits\nbackbone: no-such-net", "no-such-net"),
        ("data: digits\ntaxonomy: no-such-tree", "no-such-tree"),
        ("data: digits\nobjectives: [label-embedding]\ntraining: {accumulate: 2}", "accumulate: expected 1"),
    ],
)
def test_a_dry_run_refuses_what_the_run_refuses(lines: str, sentence: str, tmp_path: Path):
    (tmp_path / "plan.yaml").write_text(lines)
    for arguments in ((), ("--dry-run",)):
        assert sentence in refused("compare", tmp_path / "plan.yaml", "--out", tmp_path / "runs", *arguments)
    assert not (tmp_path / "runs").exists()


def test_a_plan_and_settings_beside_it_are_refused(plan_file: Path):
    assert "leave --epochs out" in refused("compare", plan_file, "--epochs", "3")
    assert "there is no such plan" in refused("compare", plan_file.parent / "other.yaml")


@pytest.mark.long
def test_a_dry_run_trains_nothing_and_lists_everything(plan_file: Path, tmp_path: Path):
    told = call("compare", plan_file, "--dry-run", "--out", tmp_path / "runs")
    assert len(told.stdout.splitlines()) == 8
    assert "8 runs, 0 finished, 8 to do" in told.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.long
def test_a_dry_run_refuses_words_that_stand_for_nothing(tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("data: digits\nobjectives: {semantic-smoothing: {relation: nope}}")
    assert "got 'nope'" in refused("compare", plan, "--dry-run", "--out", tmp_path / "runs")
    np.save(tmp_path / "relation.npy", (np.ones((10, 10)) - np.eye(10)) / 9)
    for relation in ("tree", "ordinal", "lda", tmp_path / "relation.npy"):
        plan.write_text(f"data: digits\nobjectives: {{semantic-smoothing: {{relation: '{relation}'}}}}")
        assert call("compare", plan, "--dry-run", "--out", tmp_path / "runs").exit_code == 0


@pytest.mark.long
def test_under_a_label_a_run_counts_once_however_often_the_plan_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plan = Plan.from_dict({"objectives": ["one-hot", "label-smoothing"], "training": QUICK})
    (once,) = compare_plan(plan, tmp_path)
    runs = plan.runs()
    monkeypatch.setattr(Plan, "runs", lambda self: [*runs, *runs])
    (twice,) = compare_stored_runs(plan, tmp_path)
    assert [row.runs for row in twice.rows] == [1, 1]
    assert repr(twice) == repr(once)  # NaN is not equal to itself


@pytest.mark.long
def test_the_command_line_has_grids_too(tmp_path: Path):
    told = call(
        *(
            "compare",
            "--objectives",
            "one-hot,label-embedding",
            "--grid",
            "label-embedding.tau=1,4",
            "--validation",
            0.2,
        ),
        *("--epochs", 1, "--batch-size", 256, "--out", tmp_path, "--json"),
    )
    assert told.exit_code == 0, told.stderr
    for tau in (1, 4):
        assert f"label-embedding tau={tau} seed 0  epoch 1/1" in told.stderr
    labels = [row["label"] for row in json.loads(told.stdout)["rows"]]
    assert labels[0] == "one-hot"
    assert labels[1] in ("label-embedding tau=1", "label-embedding tau=4")


# Ids


def test_an_id_is_all_that_a_result_depends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.csv").write_text("label,x\n0,1\n1,2\n")
    base = {"data": str(tmp_path / "a.csv"), "objectives": ["one-hot"]}

    def one(**values: object) -> str:
        return run_id(Plan.from_dict({**base, **values}).runs()[0].spec)

    first = one()
    assert one() == first
    assert one(data_options={"data_dir": "elsewhere"}) == one()  # where data lie is not what they are
    others = [
        one(seeds=[1]),
        one(data_options={"seed": 1}),
        one(folds=2),
        one(training={"lr": 0.1}),
        one(backbone="mlp"),
        one(objectives=["label-smoothing"]),
    ]
    (tmp_path / "b.csv").write_text((tmp_path / "a.csv").read_text())
    assert one(data=str(tmp_path / "b.csv")) == first
    (tmp_path / "a.csv").write_text("label,x\n0,1\n1,3\n")
    others.append(one())
    monkeypatch.setattr(OBJECTIVES["one-hot"], "revision", 2)
    others.append(one())
    assert len({first, *others}) == 1 + len(others)


@pytest.mark.long
def test_runs_that_would_not_end_in_time_are_not_begun(tmp_path: Path):
    plan = Plan.from_dict({"objectives": ["one-hot"], "seeds": [0, 1, 2], "training": QUICK})
    outcome = execute(plan, tmp_path, budget=1e-6)
    assert (len(outcome.finished), len(outcome.skipped)) == (0, 3)
    said: list[str] = []
    outcome = execute(plan, tmp_path, say=said.append)
    assert len(outcome.finished) == 3
    assert "about" in said[1]
    assert said[1].startswith("[1/3] one-hot seed 0")


def test_a_budget_counts_runs_that_train_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The first of four runs at once ends after 50 s: another one takes as long, and not four times as long."""
    plan = Plan.from_dict({"objectives": ["one-hot"], "seeds": list(range(12)), "training": QUICK})
    now, said = [0.0], []
    monkeypatch.setattr(work, "monotonic", lambda: now[0])
    waiting = Work(tmp_path, plan.runs(), 120.0, said.append, at_once=4, weights=True)
    jobs = waiting.jobs()
    handed = [next(jobs) for _ in range(4)]
    now[0] = 50.0
    for job in handed:
        waiting.handle(Event(job, "finished"))
    assert said[0].endswith("about 2 min left")  # eleven runs, four at once
    handed = [next(jobs) for _ in range(4)]  # until 100 s
    now[0] = 100.0
    for job in handed:
        waiting.handle(Event(job, "finished"))
    assert list(jobs) == []  # 150 s would be too late
    assert len(waiting.queue) == 4


@pytest.mark.long
def test_what_a_budget_leaves_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Work, "_has_time", lambda self: self.done < 2)
    command = ("compare", "--objectives", "one-hot,static-labels", "--seeds", "0,1", "--epochs", 1, "--budget", "90s")
    told = call(*command, "--out", tmp_path, "--json")
    left = (
        "2 of 4 runs were skipped, because they would not have finished within the budget of 90 s; run the same command"
    )
    assert f"{left} again to train them." in told.stderr.splitlines()
    found = json.loads(told.stdout)
    assert [row["seeds"] for row in found["rows"]] == [[0], [0]]
    assert [name.rpartition("-")[0] for name in found["not_begun"]] == ["one-hot-seed1", "static-labels-seed1"]
    monkeypatch.setattr(Work, "_has_time", lambda self: False)
    assert "2 runs of the plan have not started and are not in the table." in call(*command, "--out", tmp_path).stdout
    monkeypatch.undo()
    whole = call(*command[:-2], "--out", tmp_path, "--json")
    assert "are left" not in whole.stderr
    assert json.loads(whole.stdout)["not_begun"] == []


def test_a_run_that_another_process_has_not_ended_in_time_is_not_finished(tmp_path: Path):
    plan = Plan.from_dict({"objectives": ["one-hot"], "training": QUICK})
    (run,) = plan.runs()
    with locked(tmp_path / run.name):
        outcome = execute(plan, tmp_path, budget=0.1)
    assert (outcome.finished, outcome.skipped) == ([], [run])


@pytest.mark.long
def test_weights_are_kept_only_where_they_are_wanted(tmp_path: Path):
    plan = Plan.from_dict({"objectives": ["one-hot"], "training": QUICK})
    execute(plan, tmp_path, keep="results")
    run = run_in(tmp_path, "one-hot")
    assert not list(run.glob("model*")) + list(run.glob("state*"))
    assert {"config.json", "final.json", "metrics.csv", "outputs.safetensors"} <= {file.name for file in run.iterdir()}
    before = (run / "final.json").stat().st_mtime_ns
    assert len(execute(plan, tmp_path, keep="results").finished) == 1
    assert (run / "final.json").stat().st_mtime_ns == before
    assert "keeps its results but no weights" in refused("predict", run, run / "metrics.csv", "-o", tmp_path / "p.csv")
    with pytest.raises(InputError, match="keep: expected one of 'weights', 'results'"):
        execute(plan, tmp_path, keep="none")


def test_a_run_that_fails_takes_no_other_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(self: object, *given: object) -> None:
        raise RuntimeError("out of memory\nand more")

    monkeypatch.setattr(OBJECTIVES["label-smoothing"], "compute", broken)
    plan = Plan.from_dict({"objectives": ["label-smoothing", "one-hot"], "training": QUICK})
    with pytest.raises(InputError, match="label-smoothing seed 0 failed: out of memory"):
        compare_plan(plan, tmp_path)
    assert [record.label for record in Store(tmp_path).records() if record.finished] == ["one-hot"]
    assert "RuntimeError: out of memory" in (run_in(tmp_path, "label-smoothing") / "error.txt").read_text()
    monkeypatch.undo()
    assert len(compare_plan(plan, tmp_path)[0].rows) == 2
    assert not (run_in(tmp_path, "label-smoothing") / "error.txt").exists()


@pytest.mark.long
def test_a_loss_that_is_no_number_any_more_ends_that_run_alone(tmp_path: Path):
    training = {**QUICK, "optimizer": "sgd", "lr": 1e30}
    plan = Plan.from_dict(
        {
            "protocol": "as-published",
            "objectives": {"one-hot": None, "wild": {"objective": "one-hot", "training": training}},
        }
    )
    outcome = execute(plan, tmp_path)
    assert [run.label for run in outcome.finished] == ["one-hot"]
    assert "Loss became NaN or infinite in epoch 1; training stopped. Lower lr" in outcome.failed[0][1]
    refused = call(
        "train", "digits", "--objective", "one-hot", "--optimizer", "sgd", "--lr", 1e30, "--out", tmp_path / "x"
    )
    assert (refused.exit_code, "Loss became NaN or infinite" in refused.stderr) == (2, True)


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (80, "80 s"), (600, "10 min"), (7200, "2.0 h")])
def test_times_in_words(seconds: float, words: str):
    assert in_words(seconds) == words


@pytest.mark.parametrize("name", ["evaluation", "report"])
def test_the_settings_of_papers_have_choices(name: str):
    with pytest.raises(InputError, match=f"{name}: expected one of"):
        Settings(**{name: "other"})
    assert settings.REPORTS[0] == "auto"


def test_waiting_for_another_process_is_said_once_for_each_run(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "PATIENCE", 0.0)
    said: list[str] = []
    runs = Plan.from_dict({"data": "digits", "objectives": ["one-hot", "kin"], "seeds": [0]}).runs()
    waiting = Work(tmp_path, runs, None, said.append, at_once=1, weights=True)
    for _, job in zip(range(6), waiting.jobs(), strict=False):
        waiting.handle(Event(job, "busy"))
    assert said == [f"{name} seed 0: another process is training it; waiting" for name in ("one-hot", "kin")]


PARTIAL = {
    "data": "digits.csv",
    "data_options": {"label": ["kind", "digit"], "coarse_labels": 0.5, "partial": "drop"},
    "objectives": {"one-hot": None, "kin": None, "kin, classes only": {"objective": "kin", "partial": "none"}},
    "training": QUICK,
}


def test_objectives_of_a_plan_may_differ_in_what_they_do_with_partial_labels(tmp_path):
    table = write_table(tmp_path / "digits.csv", rows_of(count=60, unknown=0))
    plan = Plan.from_dict({**PARTIAL, "data": str(table)})
    assert [run.spec.data_options["partial"] for run in plan.runs()] == ["drop", "drop", "none"]
    compared = compare_plan(plan, tmp_path / "runs")[0]
    rows = {row.label: row for row in compared.rows}
    assert list(rows) == ["one-hot", "kin", "kin, classes only"]
    assert rows["kin"].cost != rows["kin, classes only"].cost
    assert not np.isnan(rows["kin, classes only"].cost_difference)  # the test samples are the same
    stored = summarize(Store(tmp_path / "runs").records(), reference="kin partial=none")
    assert {row.label for row in stored.rows} == {"one-hot", "kin", "kin partial=none"}
    assert stored.reference == "kin partial=none"


def test_an_unknown_use_of_partial_labels_is_refused():
    with pytest.raises(InputError, match=r"kin: partial: expected one of 'use', 'drop', 'none', got 'never'"):
        Plan.from_dict({**PARTIAL, "objectives": {"kin": {"partial": "never"}}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("data: 12", "data: expected a name, got 12."),
        ("data: digits\nbackbone: 3", "backbone: expected a name"),
        ("data: digits\nobjectives: [one-hotx]", "there is no objective 'one-hotx'"),
        ("data: digits\ntraining: {epochs: -1}", "epochs"),
        ("objectives: [one-hot]", "expected the key `data`"),
    ],
)
def test_an_error_in_a_plan_names_its_file(tmp_path: Path, text: str, said: str):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_plan(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert said in str(raised.value)


def test_states_that_a_killed_run_left_when_it_was_finished_are_deleted(tmp_path: Path):
    """Killed after state.json was deleted and before its tensors were; files with other names are kept."""
    plan = Plan.from_dict({"data": "digits", "objectives": ["one-hot"], "seeds": [0], "training": {"epochs": 1}})
    (run,) = execute(plan, tmp_path).finished
    left, own = (tmp_path / run.name / name for name in ("state-00001-0000000.safetensors", "state-mine.safetensors"))
    left.write_bytes(b"")
    own.write_bytes(b"")
    execute(plan, tmp_path)
    assert (left.exists(), own.exists()) == (False, True)


def test_the_runs_of_several_plans_share_the_processes(tmp_path: Path):
    """The last run of one plan and the first of the next are trained at once, and lines of status name the plan.

    On a busy machine, one process may be done before the other has started, so one of three attempts has to show it.
    """
    same = {"data_options": {"subset": 0.3}, "training": QUICK}
    plans = {name: Plan.from_dict({"objectives": [name], **same}) for name in ("one-hot", "label-smoothing")}
    both = Plan.from_dict({"objectives": ["one-hot", "label-smoothing"], **same})
    together = []
    for attempt in range(3):
        folder, said = tmp_path / str(attempt), list[str]()
        outcome = execute(
            {"A": plans["one-hot"], "B": plans["label-smoothing"], "C": both}, folder, jobs=2, say=said.append
        )
        assert [run.title for run in outcome.finished] == ["A: one-hot seed 0", "B: label-smoothing seed 0"]
        assert said[2].startswith("C: digits x 2 objectives: 2 runs, 0 finished")
        assert len([line for line in said if line.startswith(("[1/2] ", "[2/2] "))]) == 2
        begun, ended = (
            [(record.path / name).stat().st_mtime for record in Store(folder).records()]
            for name in ("config.json", "final.json")
        )
        together.append(max(begun) < min(ended))
        if together[-1]:
            break
    assert any(together)
